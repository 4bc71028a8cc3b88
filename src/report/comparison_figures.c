#include "report/comparison_figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/decimal.h"
#include "base/utf8.h"
#include "base/wrap.h"

#define NAME_COLUMNS 26 /* of a metric on a terminal */
#define LABEL_COLUMNS 12
#define WIDE_COLUMNS 200 /* of either in Markdown */
#define NAME_MAX 4096
#define UNIT_LENGTH_MAX 3 /* a longer unit stands in the metric's name */

struct units_text figures_change(double ratio)
{
	double percent = (ratio - 1) * 100;
	struct units_text t;

	if (isnan(ratio))
		snprintf(t.text, sizeof t.text, "n/a");
	else if (percent >= 1000)
		snprintf(t.text, sizeof t.text, "x %.3g", ratio);
	else
		snprintf(t.text, sizeof t.text, fabs(percent) < 0.995 ? "%+.2f%%" : "%+.1f%%", percent);
	return t;
}

struct units_text figures_share(double share)
{
	struct units_text t;

	if (isnan(share))
		snprintf(t.text, sizeof t.text, "n/a");
	else
		snprintf(t.text, sizeof t.text, share < 1e6 ? "%.2g%%" : "%.0e%%", share * 100);
	if (share >= 0.995 && share < 1e6)
		snprintf(t.text, sizeof t.text, "%.0f%%", share * 100);
	return t;
}

struct units_text figures_value(double value, const char *unit)
{
	struct units_text t;

	if (isnan(value))
		snprintf(t.text, sizeof t.text, "-");
	else if (strcmp(unit, "s") == 0)
		t = units_seconds(value);
	else if (fabs(value) >= 9999.5 && fabs(value) < 1e12)
		t = units_count(value);
	else
		snprintf(t.text, sizeof t.text, "%.5g", value);
	if (!isnan(value) && strcmp(unit, "s") != 0 && strlen(unit) <= UNIT_LENGTH_MAX &&
	    strlen(t.text) + strlen(unit) + 2 < sizeof t.text)
		strcat(strcat(t.text, strcmp(unit, "%") == 0 ? "" : " "), unit);
	return t;
}

struct units_text figures_difference(double difference, const char *unit)
{
	struct units_text value = figures_value(fabs(difference), unit), t;

	snprintf(t.text, sizeof t.text, "%c%.*s", difference < 0 ? '-' : '+', (int)sizeof t.text - 2, value.text);
	return t;
}

/* Where the character number `at` of valid UTF-8 begins. */
static size_t offset_of(const char *text, size_t at)
{
	size_t offset = 0;

	while (at-- > 0 && text[offset])
		offset += utf8_character(text + offset, strlen(text + offset));
	return offset;
}

void figures_name(struct buf *out, const char *name, size_t columns)
{
	CLEANUP(buf_release) struct buf line;
	size_t width, head = (columns - 3) / 3, tail = columns - 3 - head;

	buf_init(&line);
	utf8_append_line(&line, name, NAME_MAX);
	width = wrap_width(line.text);
	if (width <= columns) {
		buf_puts(out, line.text);
		return;
	}
	buf_append(out, line.text, offset_of(line.text, head));
	buf_printf(out, "...%s", line.text + offset_of(line.text, width - tail));
}

static void name_cell(struct table *t, const char *name, size_t columns)
{
	CLEANUP(buf_release) struct buf shown;

	buf_init(&shown);
	figures_name(&shown, name, columns);
	table_cell(t, "%s", shown.text);
}

static void change_cell(struct table *t, const struct comparison_view *v, const struct compare_metric *m, bool as_ratio)
{
	double ratio = m->has_pairs && !isnan(m->paired.ratio) ? m->paired.ratio : m->ratio;

	if (isnan(ratio) && !isnan(m->difference))
		table_cell(t, "%s", figures_difference(m->difference, v->metrics->items[m->metric].unit).text);
	else if (isnan(ratio))
		table_cell(t, "-");
	else if (as_ratio)
		table_cell(t, "%s", decimal_shortest(decimal_round(ratio, 4)).text);
	else
		table_cell(t, "%s", figures_change(ratio).text);
}

static void pair_cells(struct table *t, const struct compare_metric *m)
{
	if (isnan(m->paired.low))
		table_cell(t, "-");
	else
		table_cell(t, "%s to %s", figures_change(m->paired.low).text, figures_change(m->paired.high).text);
	table_cell(t, m->gated ? "%s" : "(%s)",
		   m->separation == SEPARATION_MISSING ? "missing" : paired_verdict_name(m->paired.verdict));
}

static void put_row(struct table *t, const struct comparison_view *v, const struct compare_metric *m, bool ratio,
		    bool pairs)
{
	const struct metric_desc *desc = &v->metrics->items[m->metric];

	name_cell(t, desc->name, ratio ? WIDE_COLUMNS : NAME_COLUMNS);
	table_cell(t, "%s", figures_value(m->a_mean, desc->unit).text);
	table_cell(t, "%s", figures_value(m->b_mean, desc->unit).text);
	change_cell(t, v, m, ratio);
	if (pairs)
		pair_cells(t, m);
	table_cell(t, m->gated ? "%s" : "(%s)", separation_verdict_name(m->separation));
}

size_t comparison_table(const struct comparison_view *v, size_t most, bool ratio, struct table *t,
			const char **ret_align)
{
	const struct comparison *c = v->comparison;
	bool pairs = c->interleaved || c->same_runs || c->rule == RULE_PAIRED;
	size_t rows = 0;

	table_init(t, pairs ? 7 : 5);
	*ret_align = pairs ? "lrrrrll" : "lrrrl";
	table_cell(t, "metric");
	name_cell(t, v->a, ratio ? WIDE_COLUMNS : LABEL_COLUMNS);
	name_cell(t, v->b, ratio ? WIDE_COLUMNS : LABEL_COLUMNS);
	table_cell(t, ratio ? "ratio" : "change");
	if (pairs) {
		table_cell(t, "interval");
		table_cell(t, "by pairs");
	}
	table_cell(t, "separation");
	for (int gated = 1; gated >= 0; gated--)
		for (size_t i = 0; i < c->count; i++)
			if (c->metrics[i].gated == gated && rows++ < most)
				put_row(t, v, &c->metrics[i], ratio, pairs);
	return rows > most ? rows - most : 0;
}
