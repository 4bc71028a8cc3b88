/* A comparison as Markdown: the reference's table, or with more columns and what was decided below it. */
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/decimal.h"
#include "report/comparison.h"
#include "report/comparison_figures.h"
#include "report/markdown_text.h"

#define ROWS_SHOWN 1000
#define CELL_COLUMNS 200

/* A cell with text from elsewhere. Underscores stay, as in the reference: inside a word they mean nothing. */
static void put_cell(struct buf *out, const char *text)
{
	markdown_put_text(out, text, "\\`*<>|[]", CELL_COLUMNS);
}

/* As the reference prints a number in a table: rounded to 4 places, thousands apart. */
static void put_reference_row(const struct comparison_view *v, const struct compare_metric *m, struct buf *out)
{
	static const char *const marks[] = {[SEPARATION_MISSING] = "",
					    [SEPARATION_SAME] = "",
					    [SEPARATION_BETTER] = "better",
					    [SEPARATION_WORSE] = "**worse**"};

	buf_puts(out, "| ");
	put_cell(out, v->metrics->items[m->metric].name);
	buf_printf(out, " | %s", decimal_grouped(decimal_round(m->a_mean, 4)).text);
	buf_printf(out, " | %s", decimal_grouped(decimal_round(m->b_mean, 4)).text);
	buf_printf(out, " | %s", isfinite(m->ratio) ? decimal_shortest(decimal_round(m->ratio, 4)).text : "None");
	buf_printf(out, " | %s |\n", marks[m->separation]);
}

static void put_reference_table(const struct comparison_view *v, struct buf *out)
{
	buf_puts(out, "| metric | ");
	put_cell(out, v->a);
	buf_puts(out, " | ");
	put_cell(out, v->b);
	buf_puts(out, " | ratio | |\n|---|---:|---:|---:|---|\n");
	for (size_t i = 0; i < v->comparison->count; i++)
		if (v->comparison->metrics[i].separation != SEPARATION_MISSING)
			put_reference_row(v, &v->comparison->metrics[i], out);
}

static void put_table(const struct comparison_view *v, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	const char *align;
	size_t left_out = comparison_table(v, ROWS_SHOWN, true, &t, &align);

	table_print_markdown(&t, align, out);
	if (left_out)
		buf_printf(out, "\n%zu more metrics are left out here; --json has them all.\n", left_out);
}

/* One sentence as an item of a list; what Markdown would take for markup is made plain. */
static void put_item(void *context, enum sentence_kind kind, const char *sentence)
{
	struct buf *out = context;

	buf_puts(out, kind == SENTENCE_OPEN ? "- Open: " : "- ");
	for (const char *c = sentence; *c; c++) {
		if (strchr("\\`*_{}[]<>#|", *c))
			buf_putc(out, '\\');
		buf_putc(out, *c);
	}
	buf_putc(out, '\n');
}

void comparison_markdown(const struct comparison_view *v, struct buf *out)
{
	const struct comparison *c = v->comparison;

	(v->reference ? put_reference_table : put_table)(v, out);
	buf_printf(out, "\nVerdict: **%s**\n", overall_verdict_name(c->overall));
	if (!v->reference) {
		buf_putc(out, '\n');
		comparison_sentences(v, put_item, out);
		return;
	}
	if (c->dropped)
		buf_printf(out, "%zu runs that failed or were traced do not count.\n", c->dropped);
	if (c->dirty)
		buf_printf(out, "Of those that count, %zu started on a machine that was not clean.\n", c->dirty);
}
