/* The answer of `assay check` on a terminal: what fails, what came or went, and the verdict last. */
#include "report/check_format.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/wrap.h"
#include "report/check_words.h"

#define COLUMNS 100
#define NAME_COLUMNS 40
#define PATH_COLUMNS 90

static void put_side(char side, const char *path, struct buf *out)
{
	buf_printf(out, "%c: ", side);
	utf8_append_line(out, path, PATH_COLUMNS);
	buf_putc(out, '\n');
}

static void put_notes(const struct check_report *r, struct buf *out)
{
	for (size_t i = 0; i < r->note_count; i++) {
		CLEANUP(buf_release) struct buf line;

		buf_init(&line);
		utf8_append_line(&line, r->notes[i], SIZE_MAX);
		buf_puts(out, i ? "  " : "\nTo know:\n  ");
		wrap_append(out, line.text, 2, 4, COLUMNS);
	}
}

static void put_table(const struct check_report *r, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	const char *align;
	size_t left_out = check_words_table(r, NAME_COLUMNS, &t, &align);

	out->failed |= t.failed;
	if (t.count > t.columns) {
		buf_putc(out, '\n');
		table_print(&t, align, "  ", out);
	}
	if (left_out)
		buf_printf(out, "\n%zu that passed %s not shown; --all shows them\n", left_out,
			   left_out == 1 ? "is" : "are");
}

int check_format_text(const struct check_report *r, FILE *out, struct error *err)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	put_side('A', r->a, &text);
	put_side('B', r->b, &text);
	check_words_budget(r, &text);
	buf_putc(&text, '\n');
	put_table(r, &text);
	put_notes(r, &text);
	buf_printf(&text, "\n%s", !r->colour ? "" : r->result->failed ? "\033[31m" : "\033[32m");
	check_words_verdict(r, &text);
	buf_printf(&text, "%s\n", r->colour ? "\033[0m" : "");
	if (text.failed)
		return error_set(err, "out of memory for the answer");
	fwrite(text.text, 1, text.length, out);
	return 0;
}
