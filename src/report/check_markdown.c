/* The answer of `assay check` as a table for a pull request. */
#include "report/check_format.h"

#include "base/cleanup.h"
#include "report/check_words.h"
#include "report/markdown_text.h"

#define TEXT_COLUMNS 1000

/* Text from elsewhere, none of which is markup. */
static void put_plain(struct buf *out, const char *text)
{
	markdown_put_text(out, text, "\\`*_<>|[]#~&", TEXT_COLUMNS);
}

int check_format_markdown(const struct check_report *r, FILE *out, struct error *err)
{
	CLEANUP(buf_release) struct buf text;
	CLEANUP(table_release) struct table t;
	const char *align;
	size_t left_out = check_words_table(r, 0, &t, &align);

	buf_init(&text);
	text.failed |= t.failed;
	buf_puts(&text, "**assay check ");
	check_words_verdict(r, &text);
	buf_puts(&text, "**\n\nA: ");
	put_plain(&text, r->a);
	buf_puts(&text, "<br>B: ");
	put_plain(&text, r->b);
	buf_puts(&text, "<br>");
	check_words_budget(r, &text);
	buf_puts(&text, "\n");
	if (t.count > t.columns) {
		buf_putc(&text, '\n');
		table_print_markdown(&t, align, &text);
	}
	if (left_out)
		buf_printf(&text, "\n%zu that passed %s not shown.\n", left_out, left_out == 1 ? "is" : "are");
	for (size_t i = 0; i < r->note_count; i++) {
		buf_puts(&text, i ? "- " : "\n- ");
		put_plain(&text, r->notes[i]);
		buf_putc(&text, '\n');
	}
	if (text.failed)
		return error_set(err, "out of memory for the answer");
	fwrite(text.text, 1, text.length, out);
	return 0;
}
