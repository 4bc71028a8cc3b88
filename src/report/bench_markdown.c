#include "report/bench_report.h"

#include <math.h>

#include "base/cleanup.h"
#include "base/table.h"
#include "base/units.h"
#include "base/utf8.h"

#define LABEL_COLUMNS 4096
#define COLUMNS 7

/* One unit for the table: that of the shortest time in it. */
static struct bench_unit shared_unit(const struct bench_answer *a)
{
	double shortest = INFINITY;

	for (size_t i = 0; i < a->count; i++)
		if (a->items[i].counted && a->items[i].median > 0)
			shortest = fmin(shortest, a->items[i].median);
	return bench_unit_for(isfinite(shortest) ? shortest : 0);
}

/* As text, which the table escapes. */
static void put_label(struct table *t, const struct bench_command *c)
{
	CLEANUP(buf_release) struct buf label;

	buf_init(&label);
	utf8_append_line(&label, bench_label(c), LABEL_COLUMNS);
	table_cell(t, "%s", label.text);
}

static void put_times(struct table *t, const struct bench_figures *f, const struct bench_unit *u)
{
	if (!f->counted || f->below_resolution) {
		table_cell(t, "%s", f->counted ? "below resolution" : "-");
		table_cell(t, "-");
		table_cell(t, "-");
		return;
	}
	table_cell(t, "%.*f", u->decimals, f->median * u->scale);
	if (isnan(f->low))
		table_cell(t, "-");
	else
		table_cell(t, "%.*f to %.*f", u->decimals, f->low * u->scale, u->decimals, f->high * u->scale);
	table_cell(t, "%.*f to %.*f", u->decimals, f->min * u->scale, u->decimals, f->max * u->scale);
}

static void put_relative(const struct bench *b, const struct bench_answer *a, size_t i, struct table *t)
{
	CLEANUP(buf_release) struct buf words;
	const struct paired *p = &a->items[i].paired;

	buf_init(&words);
	if (i == b->reference) {
		table_cell(t, "1");
		table_cell(t, "reference");
		return;
	}
	bench_say_verdict(b, a, i, &words);
	if (!p->pairs || !isfinite(p->ratio))
		table_cell(t, "-");
	else if (isfinite(p->low) && isfinite(p->high))
		table_cell(t, "%.4g [%.4g, %.4g]", p->ratio, p->low, p->high);
	else
		table_cell(t, "%.4g", p->ratio);
	table_cell(t, "%s", words.text);
}

void bench_markdown(const struct bench *b, const struct bench_answer *a, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	struct bench_unit u = shared_unit(a);

	table_init(&t, COLUMNS);
	table_cell(&t, "Command");
	table_cell(&t, "Median [%s]", u.name);
	table_cell(&t, "%s interval", units_percent(b->confidence).text);
	table_cell(&t, "Range");
	table_cell(&t, "Peak memory");
	table_cell(&t, "Relative");
	table_cell(&t, "Verdict");
	for (size_t i = 0; i < b->count; i++) {
		put_label(&t, &b->commands[i]);
		put_times(&t, &a->items[i], &u);
		table_cell(&t, "%s", units_bytes(a->items[i].peak_bytes).text);
		put_relative(b, a, i, &t);
	}
	table_print_markdown(&t, "lrrrrrl", out);
}
