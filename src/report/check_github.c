/* The answer of `assay check` as workflow commands of GitHub Actions, which it shows as annotations: an error for each
 * failure, a warning for each note and what came or went, and a notice with the verdict. GitHub shows ten of a kind in
 * a step; the log has them all. */
#include "report/check_format.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/check_words.h"

/* Its own escapes: '%' and line ends everywhere, ':' and ',' in a property. Line ends are gone before: a name is one
 * line. */
static void put_escaped(struct buf *out, const char *text, bool property)
{
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	utf8_append_line(&line, text, SIZE_MAX);
	out->failed |= line.failed;
	for (const char *c = line.text; *c; c++) {
		if (*c == '%' || (property && (*c == ':' || *c == ',')))
			buf_printf(out, "%%%02X", (unsigned)(unsigned char)*c);
		else
			buf_putc(out, *c);
	}
}

static void put_row(const struct check_report *r, const struct check_row *row, struct buf *out)
{
	CLEANUP(buf_release) struct buf sentence;

	buf_init(&sentence);
	buf_printf(&sentence, "%s: ", row->item.name);
	check_words_sentence(r, row, &sentence);
	out->failed |= sentence.failed;
	buf_printf(out, "::%s title=assay check%%3A ", row->fails ? "error" : "warning");
	put_escaped(out, row->item.name, true);
	buf_puts(out, "::");
	put_escaped(out, sentence.text, false);
	buf_putc(out, '\n');
}

int check_format_github(const struct check_report *r, FILE *out, struct error *err)
{
	CLEANUP(buf_release) struct buf text;
	CLEANUP(buf_release) struct buf verdict;

	buf_init(&text);
	buf_init(&verdict);
	for (size_t i = 0; i < r->result->count; i++) {
		const struct check_row *row = &r->result->rows[i];

		if (row->fails || row->finding == CHECK_NEW || row->finding == CHECK_VANISHED)
			put_row(r, row, &text);
	}
	for (size_t i = 0; i < r->note_count; i++) {
		buf_puts(&text, "::warning title=assay check::");
		put_escaped(&text, r->notes[i], false);
		buf_putc(&text, '\n');
	}
	check_words_verdict(r, &verdict);
	buf_puts(&verdict, "; ");
	check_words_budget(r, &verdict);
	buf_printf(&text, "::%s title=assay check::", r->result->failed ? "error" : "notice");
	put_escaped(&text, verdict.text, false);
	buf_putc(&text, '\n');
	if (text.failed || verdict.failed)
		return error_set(err, "out of memory for the answer");
	fwrite(text.text, 1, text.length, out);
	return 0;
}
