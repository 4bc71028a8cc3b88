#include "report/matrix_table.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/table.h"
#include "base/utf8.h"

#define LABEL_COLUMNS 40
#define LABEL_COLUMNS_MARKDOWN 4096

/* The reference tool's columns first, in its order; Markdown has them always. */
static const struct column {
	const char *metric, *title;
	bool always;
} columns[] = {
	{"prefill_tps", "pp", true},	 {"decode_tps", "tg", true}, {"gpu_peak_mib", "GPU mem", true},
	{"host_anon_peak_mib", "host anon", true}, {"load_s", "load", true}, {"decode_j_per_token", "tg J/tok", true},
	{"wall_s", "wall", false},	 {"cpu_s", "CPU", false},
};
#define COLUMNS (sizeof columns / sizeof *columns)

static const struct compare_metric *find(const struct matrix_view *v, const struct matrix_row *row, const char *name)
{
	size_t metric = metric_find(v->metrics, name);

	for (size_t i = 0; row->comparison && i < row->comparison->count; i++)
		if (row->comparison->metrics[i].metric == metric && metric != SIZE_MAX)
			return &row->comparison->metrics[i];
	return NULL;
}

static bool has_ratio(const struct compare_metric *m)
{
	return m && m->a_count && m->b_count;
}

static bool is_shown(const struct matrix_view *v, const struct column *c, bool markdown)
{
	if (markdown && c->always)
		return true;
	for (size_t i = 0; i < v->count; i++)
		if (has_ratio(find(v, &v->rows[i], c->metric)))
			return true;
	return false;
}

/* What stands behind the ratio: a word where something was found, a sign where not. */
static const char *mark(const struct compare_metric *m, bool by_pairs)
{
	if (!by_pairs || m->by_difference)
		return m->separation == SEPARATION_BETTER  ? " better"
		       : m->separation == SEPARATION_WORSE ? " worse"
							   : "";
	switch (m->paired.verdict) {
	case PAIRED_BETTER:
		return " better";
	case PAIRED_WORSE:
		return " worse";
	case PAIRED_EQUIVALENT:
		return " =";
	case PAIRED_SMALL:
		return " ~";
	default:
		return " ?";
	}
}

static void ratio_cell(struct table *t, const struct compare_metric *m, enum compare_rule rule, bool markdown)
{
	bool by_pairs = rule == RULE_PAIRED && m && m->has_pairs;
	double ratio = !has_ratio(m) ? NAN : by_pairs && isfinite(m->paired.ratio) ? m->paired.ratio : m->ratio;
	const char *verdict = has_ratio(m) ? mark(m, by_pairs) : "";
	bool bold = markdown && strcmp(verdict, " worse") == 0;

	if (isfinite(ratio))
		table_cell(t, "%s%.3f%s%s", bold ? "**" : "", ratio, bold ? "**" : "", verdict);
	else
		table_cell(t, "-%s", strlen(verdict) > 2 ? verdict : "");
}

static void put_label(struct buf *out, const char *label, bool markdown)
{
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	utf8_append_line(&line, label, markdown ? LABEL_COLUMNS_MARKDOWN : LABEL_COLUMNS);
	for (const char *c = line.text; *c; c++) {
		if (markdown && strchr("\\`*[]<>", *c))
			buf_putc(out, '\\');
		buf_putc(out, *c);
	}
}

static void put_worse(const struct matrix_view *v, const struct comparison *c, struct buf *out)
{
	const char *before = ": costs ";

	for (size_t i = 0; i < c->count; i++) {
		const struct compare_metric *m = &c->metrics[i];

		if (!m->gated ||
		    strcmp(mark(m, c->rule == RULE_PAIRED && m->has_pairs), " worse") != 0)
			continue;
		buf_puts(out, before);
		utf8_append_line(out, v->metrics->items[m->metric].name, LABEL_COLUMNS);
		before = ", ";
	}
}

static void verdict_cell(struct table *t, const struct matrix_view *v, const struct matrix_row *row)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	if (row->skipped) {
		table_cell(t, "skipped: %s", row->skipped);
		return;
	}
	/* "neutral" in JSON, as in the reference: to a person it would say that something was compared. */
	buf_puts(&text, row->comparison->usable_a && row->comparison->usable_b
				? overall_verdict_name(row->comparison->overall)
				: "no verdict");
	if (row->failed)
		buf_printf(&text, " (%zu arm%s failed)", row->failed, row->failed == 1 ? "" : "s");
	if (row->refused)
		buf_printf(&text, " (%zu arm%s refused)", row->refused, row->refused == 1 ? "" : "s");
	if (row->comparison->dirty)
		buf_printf(&text, " (%zu not clean)", row->comparison->dirty);
	if (row->unfinished)
		buf_puts(&text, " (unfinished)");
	put_worse(v, row->comparison, &text);
	table_cell(t, "%s", text.text);
}

static void fill(const struct matrix_view *v, bool markdown, struct table *t, char *align)
{
	CLEANUP(buf_release) struct buf sides;
	bool shown[COLUMNS];
	size_t count = 0;

	buf_init(&sides);
	for (size_t i = 0; i < COLUMNS; i++) {
		shown[i] = is_shown(v, &columns[i], markdown);
		count += shown[i];
	}
	memset(align, 'r', count + 2);
	align[0] = align[count + 1] = 'l';
	align[count + 2] = '\0';
	table_init(t, count + 2);
	table_cell(t, "case");
	put_label(&sides, v->b, markdown);
	buf_putc(&sides, '/');
	put_label(&sides, v->a, markdown);
	for (size_t i = 0; i < COLUMNS; i++)
		if (shown[i] && markdown)
			table_cell(t, "%s %s", columns[i].title, sides.text);
		else if (shown[i])
			table_cell(t, "%s", columns[i].title);
	table_cell(t, "verdict");
	for (size_t row = 0; row < v->count; row++) {
		CLEANUP(buf_release) struct buf label;

		buf_init(&label);
		put_label(&label, v->rows[row].label, markdown);
		table_cell(t, "%s", label.text);
		for (size_t i = 0; i < COLUMNS; i++)
			if (shown[i])
				ratio_cell(t, find(v, &v->rows[row], columns[i].metric),
					   v->rows[row].comparison ? v->rows[row].comparison->rule : RULE_AUTO,
					   markdown);
		verdict_cell(t, v, &v->rows[row]);
	}
}

static bool any_by_pairs(const struct matrix_view *v)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->rows[i].comparison && v->rows[i].comparison->rule == RULE_PAIRED)
			return true;
	return false;
}

static void put_notes(const struct matrix_view *v, struct buf *out)
{
	if (any_by_pairs(v))
		buf_puts(out,
			 "\n= equivalent within the margin; ~ a difference smaller than the margin; ? not decided.\n");
	if (v->null && v->trusted)
		buf_puts(out, "\nBoth sides are the same: `assay noise` makes noise floors of this matrix.\n");
	else if (v->null)
		buf_puts(out, "\nBoth sides are the same, and a difference was found all the same: these results are "
			      "not to be trusted.\n");
	if (!v->complete)
		buf_puts(out, "\nNot complete: `assay matrix --resume` goes on.\n");
}

void matrix_table_text(const struct matrix_view *v, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	char align[TABLE_COLUMNS_MAX + 1];

	fill(v, false, &t, align);
	t.fold = 100;
	buf_puts(out, "Ratios are ");
	put_label(out, v->b, false);
	buf_puts(out, "/");
	put_label(out, v->a, false);
	buf_puts(out, ".\n\n");
	table_print(&t, align, "", out);
	put_notes(v, out);
}

/* Not by table_print_markdown: the cells hold markup of ours, and their text has been escaped already. */
static void put_rows(const struct table *t, const char *align, struct buf *out)
{
	for (size_t i = 0; i < t->count; i++) {
		size_t column = i % t->columns;

		buf_puts(out, column ? " | " : "| ");
		for (const char *c = t->cells[i]; *c; c++) {
			if (*c == '|')
				buf_putc(out, '\\');
			buf_putc(out, *c);
		}
		if (column + 1 < t->columns)
			continue;
		buf_puts(out, " |\n");
		if (i + 1 > t->columns)
			continue;
		buf_putc(out, '|');
		for (const char *a = align; *a; a++)
			buf_puts(out, *a == 'r' ? "---:|" : "---|");
		buf_putc(out, '\n');
	}
}

void matrix_table_markdown(const struct matrix_view *v, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	char align[TABLE_COLUMNS_MAX + 1];

	fill(v, true, &t, align);
	put_rows(&t, align, out);
	put_notes(v, out);
}
