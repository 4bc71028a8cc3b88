#include "report/check_words.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/comparison_figures.h"

#define NS 1e-9
#define UNIT_ROOM 20 /* for the figure itself */
#define NAME_COLUMNS 4000

struct units_text check_words_value(double value, const char *unit)
{
	struct units_text t;

	if (strcmp(unit, "ns") == 0)
		return figures_value(value * NS, "s");
	t = figures_value(value, "");
	if (strcmp(unit, "s") == 0 || strcmp(unit, "%") == 0)
		return figures_value(value, unit);
	if (!isnan(value) && *unit && strcmp(unit, "count") != 0 && strlen(unit) + UNIT_ROOM <= sizeof t.text)
		strcat(strcat(t.text, " "), unit);
	return t;
}

struct units_text check_words_change(const struct check_row *row)
{
	static const struct units_text none = {"-"}, from_zero = {"from 0"};

	if (row->finding == CHECK_FROM_ZERO)
		return from_zero;
	return row->item.in_a && row->item.in_b && !isnan(row->pct) ? figures_change(1 + row->pct / 100) : none;
}

static void put_unknown(const struct check_item *i, struct buf *out)
{
	bool a = i->in_a && !isfinite(i->a), b = i->in_b && !isfinite(i->b);

	buf_printf(out, "is not a number on %s", a && b ? "both sides" : a ? "side A" : "side B");
}

void check_words_sentence(const struct check_report *r, const struct check_row *row, struct buf *out)
{
	const struct check_item *i = &row->item;
	struct units_text a = check_words_value(i->a, i->unit), b = check_words_value(i->b, i->unit);

	if (r->metric)
		buf_printf(out, "%s ", r->metric);
	switch (row->finding) {
	case CHECK_UNKNOWN:
		put_unknown(i, out);
		return;
	case CHECK_NEW:
		buf_printf(out, "is new: %s", b.text);
		return;
	case CHECK_VANISHED:
		buf_printf(out, "vanished: it was %s", a.text);
		return;
	case CHECK_TOO_SMALL:
		buf_puts(out, "is below the least total that is compared");
		return;
	case CHECK_FROM_ZERO:
		buf_printf(out, "went from 0 to %s", b.text);
		return;
	default:
		buf_printf(out, "went from %s to %s, %s", a.text, b.text, check_words_change(row).text);
		if (row->finding == CHECK_REGRESSED)
			buf_printf(out, " where %g%% worse is allowed", r->result->budget.max_regression);
	}
}

/* " (4 within the budget, 1 improved)": of the findings that were compared, or that were not; of what fails, or not. */
static void put_counts(const struct check_result *result, bool (*is_told)(const struct check_row *row),
		       const char *first, const char *last, struct buf *out)
{
	size_t counts[CHECK_FINDINGS] = {0};
	const char *between = first;

	for (size_t i = 0; i < result->count; i++)
		counts[result->rows[i].finding] += is_told(&result->rows[i]);
	for (enum check_finding f = 0; f < CHECK_FINDINGS; f++) {
		if (!counts[f])
			continue;
		buf_printf(out, "%s%s %s", between, units_count((double)counts[f]).text, check_finding_text(f));
		between = ", ";
	}
	buf_puts(out, between == first ? "" : last);
}

static bool is_failure(const struct check_row *row)
{
	return row->fails;
}

static bool is_comparison(const struct check_row *row)
{
	return check_was_compared(row->finding);
}

/* What passed without having been compared. */
static bool is_passed_over(const struct check_row *row)
{
	return !row->fails && !check_was_compared(row->finding);
}

void check_words_verdict(const struct check_report *r, struct buf *out)
{
	const struct check_result *result = r->result;

	if (result->failed) {
		buf_printf(out, "failed: %s", units_count((double)result->failed).text);
		put_counts(result, is_failure, " (", ")", out);
		buf_printf(out, "; %s compared", units_count((double)result->compared).text);
	} else {
		buf_printf(out, "passed: %s compared", units_count((double)result->compared).text);
		put_counts(result, is_comparison, " (", ")", out);
	}
	put_counts(result, is_passed_over, ", ", "", out);
}

void check_words_budget(const struct check_report *r, struct buf *out)
{
	const struct check_budget *b = &r->result->budget;

	if (r->metric)
		buf_printf(out, "%s of each region, ", r->metric);
	buf_printf(out, "at most %g%% worse", b->max_regression);
	if (b->fail_on_new)
		buf_puts(out, "; new ones fail");
	if (b->fail_on_missing)
		buf_puts(out, "; vanished ones fail");
	if (b->min_total > 0)
		buf_printf(out, "; below %s in total they are left out", units_seconds(b->min_total * NS).text);
}

static bool is_shown(const struct check_report *r, const struct check_row *row)
{
	return r->all || row->fails || row->finding == CHECK_NEW || row->finding == CHECK_VANISHED;
}

static void name_cell(struct table *t, const char *name, size_t columns)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	figures_name(&text, name, columns ? columns : NAME_COLUMNS);
	table_cell(t, "%s", text.text);
}

size_t check_words_table(const struct check_report *r, size_t columns, struct table *t, const char **ret_align)
{
	const struct check_result *result = r->result;
	size_t left_out = 0;

	table_init(t, 6);
	*ret_align = "lrrrll";
	table_cell(t, r->metric ? "region" : "metric");
	table_cell(t, "A");
	table_cell(t, "B");
	table_cell(t, "change");
	table_cell(t, "finding");
	table_cell(t, "%s", "");
	for (size_t i = 0; i < result->count; i++) {
		const struct check_row *row = &result->rows[i];

		if (!is_shown(r, row)) {
			left_out++;
			continue;
		}
		name_cell(t, row->item.name, columns);
		table_cell(t, "%s", check_words_value(row->item.in_a ? row->item.a : NAN, row->item.unit).text);
		table_cell(t, "%s", check_words_value(row->item.in_b ? row->item.b : NAN, row->item.unit).text);
		table_cell(t, "%s", check_words_change(row).text);
		table_cell(t, "%s", check_finding_text(row->finding));
		table_cell(t, "%s", row->fails ? "FAILS" : "");
	}
	return left_out;
}
