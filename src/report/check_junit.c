/* The answer of `assay check` as JUnit XML, as CI servers read it: a test case per region or metric. What came or went
 * without failing, and what is too small, counts as skipped: it was not compared. */
#include "report/check_format.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/check_words.h"

/* U+FFFE and U+FFFF are valid UTF-8, and no characters of XML. */
static bool is_no_character(const char *at)
{
	return strncmp(at, "\xef\xbf\xbe", 3) == 0 || strncmp(at, "\xef\xbf\xbf", 3) == 0;
}

/* Inside of an attribute or an element. Control characters become '?'. */
static void put_escaped(struct buf *out, const char *text)
{
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	utf8_append_line(&line, text, SIZE_MAX);
	out->failed |= line.failed;
	for (const char *c = line.text; *c; c++) {
		if (*c == '&')
			buf_puts(out, "&amp;");
		else if (*c == '<')
			buf_puts(out, "&lt;");
		else if (*c == '>')
			buf_puts(out, "&gt;");
		else if (*c == '"')
			buf_puts(out, "&quot;");
		else if (is_no_character(c))
			buf_puts(out, "?"), c += 2;
		else
			buf_putc(out, *c);
	}
}

static void put_attribute(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, " %s=\"", name);
	put_escaped(out, value);
	buf_putc(out, '"');
}

static bool is_skipped(const struct check_row *row)
{
	return !row->fails && (row->finding == CHECK_NEW || row->finding == CHECK_VANISHED ||
			       row->finding == CHECK_TOO_SMALL);
}

static void put_case(const struct check_report *r, const struct check_row *row, struct buf *out)
{
	CLEANUP(buf_release) struct buf sentence;

	buf_init(&sentence);
	check_words_sentence(r, row, &sentence);
	buf_puts(out, "    <testcase");
	put_attribute(out, "classname", r->metric ? r->metric : "metrics");
	put_attribute(out, "name", row->item.name);
	buf_puts(out, ">\n      ");
	if (row->fails || is_skipped(row)) {
		buf_puts(out, row->fails ? "<failure" : "<skipped");
		if (row->fails)
			put_attribute(out, "type", check_finding_name(row->finding));
		put_attribute(out, "message", sentence.text);
		buf_puts(out, "/>");
	} else {
		buf_puts(out, "<system-out>");
		put_escaped(out, sentence.text);
		buf_puts(out, "</system-out>");
	}
	buf_puts(out, "\n    </testcase>\n");
}

static void put_property(struct buf *out, const char *name, const char *value)
{
	buf_puts(out, "      <property");
	put_attribute(out, "name", name);
	put_attribute(out, "value", value);
	buf_puts(out, "/>\n");
}

static void put_suite(const struct check_report *r, struct buf *out)
{
	CLEANUP(buf_release) struct buf budget;

	buf_init(&budget);
	check_words_budget(r, &budget);
	buf_puts(out, "    <properties>\n");
	put_property(out, "A", r->a);
	put_property(out, "B", r->b);
	put_property(out, "budget", budget.text);
	buf_puts(out, "    </properties>\n");
	for (size_t i = 0; i < r->result->count; i++)
		put_case(r, &r->result->rows[i], out);
	if (r->note_count) {
		buf_puts(out, "    <system-out>");
		for (size_t i = 0; i < r->note_count; i++) {
			put_escaped(out, r->notes[i]);
			buf_putc(out, '\n');
		}
		buf_puts(out, "</system-out>\n");
	}
}

int check_format_junit(const struct check_report *r, FILE *out, struct error *err)
{
	CLEANUP(buf_release) struct buf text;
	const struct check_result *result = r->result;
	size_t skipped = 0;

	buf_init(&text);
	for (size_t i = 0; i < result->count; i++)
		skipped += is_skipped(&result->rows[i]);
	buf_puts(&text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	buf_printf(&text, "<testsuites tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n", result->count,
		   result->failed, skipped);
	buf_printf(&text, "  <testsuite name=\"assay check\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
			  "skipped=\"%zu\">\n",
		   result->count, result->failed, skipped);
	put_suite(r, &text);
	buf_puts(&text, "  </testsuite>\n</testsuites>\n");
	if (text.failed)
		return error_set(err, "out of memory for the answer");
	fwrite(text.text, 1, text.length, out);
	return 0;
}
