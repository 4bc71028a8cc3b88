/* What changed per region, on a terminal. */
#include "report/region_reports.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/table.h"
#include "base/wrap.h"
#include "report/comparison_figures.h"

#define NS 1e-9
#define COLUMNS 100
#define NAME_LEAST 16
#define NAME_WHOLE 4000 /* where the width has no limit */

static struct units_text value_text(double value, const char *unit)
{
	if (!*unit && fabs(value) < 1e12 && value == trunc(value))
		return units_count(value);
	return strcmp(unit, "ns") == 0 ? figures_value(value * NS, "s") : figures_value(value, unit);
}

static struct units_text delta_text(double delta, const char *unit)
{
	static const struct units_text none = {"0"};
	struct units_text count;

	if (delta == 0)
		return none;
	if (!*unit && fabs(delta) < 1e12 && delta == trunc(delta)) {
		snprintf(count.text, sizeof count.text, "%c%.*s", delta < 0 ? '-' : '+', (int)sizeof count.text - 2,
			 units_count(fabs(delta)).text);
		return count;
	}
	return strcmp(unit, "ns") == 0 ? figures_difference(delta * NS, "s") : figures_difference(delta, unit);
}

/* A side may have it and yet no figure of it: only counted, or none of its calls found room. */
static bool lacks_figure(const struct region_diff_row *row)
{
	return row->in_a ? !row->in_b && row->ran_b : row->in_b && row->ran_a;
}

static void change_cell(struct table *t, const struct region_diff_row *row)
{
	if (lacks_figure(row))
		table_cell(t, "no figure in %c", row->in_a ? 'B' : 'A');
	else if (row->in_a != row->in_b)
		table_cell(t, "only in %c", row->in_a ? 'A' : 'B');
	else if (row->pct == 0)
		table_cell(t, "0%%");
	else if (!isnan(row->pct))
		table_cell(t, "%s", figures_change(1 + row->pct / 100).text);
	else
		table_cell(t, "%s", row->delta > 0 ? "from 0" : "-");
}

static void verdict_cells(struct table *t, const struct region_diff_row *row)
{
	if (isnan(row->low))
		table_cell(t, "-");
	else
		table_cell(t, "%s to %s", figures_change(1 + row->low / 100).text,
			   figures_change(1 + row->high / 100).text);
	table_cell(t, "%s", region_verdict_text(row->verdict));
}

static void head(struct table *t, const struct region_diff *d)
{
	table_init(t, d->judged ? 7 : 5);
	table_cell(t, "region");
	table_cell(t, "A");
	table_cell(t, "B");
	table_cell(t, "delta");
	table_cell(t, "change");
	if (d->judged) {
		table_cell(t, "interval");
		table_cell(t, "verdict");
	}
}

static void put_row(struct table *t, const struct region_diff *d, const struct region_diff_row *row, size_t columns)
{
	CLEANUP(buf_release) struct buf name;
	const char *unit = region_metric_unit(d->options.metric);

	buf_init(&name);
	figures_name(&name, row->name, columns);
	table_cell(t, "%s", name.text);
	table_cell(t, "%s", value_text(row->in_a ? row->a : NAN, unit).text);
	table_cell(t, "%s", value_text(row->in_b ? row->b : NAN, unit).text);
	table_cell(t, "%s", isnan(row->delta) || !(row->in_a || row->in_b) || lacks_figure(row)
				    ? "-" : delta_text(row->delta, unit).text);
	change_cell(t, row);
	if (d->judged)
		verdict_cells(t, row);
}

/* What the figures leave for the names, where there is a limit. */
static size_t room_for_names(const struct region_diff *d, unsigned width)
{
	CLEANUP(table_release) struct table t;
	size_t used = 2;

	head(&t, d);
	for (size_t i = 0; i < d->count; i++)
		put_row(&t, d, &d->rows[i], NAME_LEAST);
	for (size_t i = 1; i < t.columns; i++)
		used += t.widths[i] + 2;
	return width > used + NAME_LEAST ? width - used : NAME_LEAST;
}

static void put_table(const struct region_diff *d, unsigned width, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	size_t columns = width ? room_for_names(d, width) : NAME_WHOLE;

	head(&t, d);
	for (size_t i = 0; i < d->count; i++)
		put_row(&t, d, &d->rows[i], columns);
	table_print(&t, d->judged ? "lrrrrrl" : "lrrrr", "", out);
	out->failed |= t.failed;
}

/* Whether a region's interval is beyond the margin and yet no claim, being one among so many. */
static bool lost_to_number(const struct region_diff *d)
{
	double margin = d->options.margin * 100;

	for (size_t i = 0; i < d->count; i++) {
		const struct region_diff_row *row = &d->rows[i];

		if (row->verdict == REGION_UNDECIDED && (row->low > margin || row->high < -margin))
			return true;
	}
	return false;
}

/* What the repeats could bear at best: the p of n pairs that all agree is 2 / 2^n, that of two groups that do not
 * overlap 2 / (n + m over n). */
static void put_what_it_takes(const struct region_diff *d, struct buf *out)
{
	double wanted = (1 - d->options.confidence) / (double)d->claims, a = (double)d->runs_a, b = (double)d->runs_b;
	double groupings = exp(lgamma(a + b + 1) - lgamma(a + 1) - lgamma(b + 1));
	double best = d->paired ? exp2(1 - (double)d->pairs) : 2 / groupings;

	if (!lost_to_number(d))
		return;
	if (best <= wanted)
		buf_puts(out, " An interval that is beyond the margin is no claim yet among so many.");
	else if (d->paired)
		buf_printf(out, " No change, however clear, could hold among so many with %zu pairs: it takes %.0f, or "
				"fewer regions (--include).", d->pairs, ceil(1 - log2(wanted)));
	else
		buf_puts(out, " No change, however clear, could hold among so many with so few runs: it takes more of "
			      "them, or fewer regions (--include).");
}

static void put_judge(const struct region_diff *d, struct buf *out)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	buf_printf(&text, "Medians of %zu run%s of A and %zu of B. ", d->runs_a, d->runs_a == 1 ? "" : "s", d->runs_b);
	if (d->paired)
		buf_printf(&text, "They took turns: %zu pair%s of neighbours decide. ", d->pairs,
			   d->pairs == 1 ? "" : "s");
	else
		buf_puts(&text, "They did not take turns (or do not say when they ran), so ranks decide, and a drift "
				"of the machine from one side to the other would look like a change. ");
	buf_printf(&text, "Intervals of B / A at %g%%; better and worse are beyond %g%%", d->options.confidence * 100,
		   d->options.margin * 100);
	if (d->claims > 1)
		buf_printf(&text, " and hold among %zu regions (Holm)", d->claims);
	buf_puts(&text, ".");
	put_what_it_takes(d, &text);
	buf_putc(out, '\n');
	wrap_append(out, text.text, 0, 0, COLUMNS);
	out->failed |= text.failed;
}

int region_diff_text(const struct region_diff *d, const struct region_report_options *o, FILE *out, struct error *err)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	buf_printf(&text, "%s of each region\n\n", region_metric_name(d->options.metric));
	if (d->count)
		put_table(d, o->width, &text);
	else
		buf_puts(&text, d->hidden ? "No region changed so much.\n" : "There are no regions to compare.\n");
	if (d->hidden)
		buf_printf(&text, "\n%zu that changed by less than %g%% %s not shown\n", d->hidden,
			   d->options.threshold, d->hidden == 1 ? "is" : "are");
	if (d->judged)
		put_judge(d, &text);
	if (text.failed)
		return error_set(err, "out of memory for the answer");
	fwrite(text.text, 1, text.length, out);
	return 0;
}
