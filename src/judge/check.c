#include "judge/check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two figures that differ by rounding alone are equal: of a 13-day total this is less than a nanosecond. */
#define ROUNDING (4 * DBL_EPSILON)

static const struct {
	const char *name, *text;
} findings[CHECK_FINDINGS] = {
	[CHECK_REGRESSED] = {"regressed", "regressed"},
	[CHECK_FROM_ZERO] = {"from_zero", "new cost where there was none"},
	[CHECK_UNKNOWN] = {"unknown", "not a number"},
	[CHECK_NEW] = {"new", "new"},
	[CHECK_VANISHED] = {"vanished", "vanished"},
	[CHECK_WITHIN] = {"within", "within the budget"},
	[CHECK_IMPROVED] = {"improved", "improved"},
	[CHECK_TOO_SMALL] = {"too_small", "too small to be compared"},
};

const char *check_finding_text(enum check_finding f)
{
	return findings[f].text;
}

const char *check_finding_name(enum check_finding f)
{
	return findings[f].name;
}

void check_result_init(struct check_result *r)
{
	*r = (struct check_result){0};
}

void check_result_release(struct check_result *r)
{
	free(r->rows);
	check_result_init(r);
}

/* Of two finite figures. */
static enum check_finding compare(const struct check_row *row, double max_regression)
{
	double a = row->item.a, b = row->item.b, worse = row->item.higher_is_better ? a - b : b - a;
	double slack = ROUNDING * fmax(fabs(a), fabs(b));

	if (fabs(worse) <= slack)
		return CHECK_WITHIN;
	if (worse < 0)
		return CHECK_IMPROVED;
	if (a == 0)
		return CHECK_FROM_ZERO;
	/* Multiplied, not divided: 110 is 10% more than 100, and not a last digit more than that. */
	return worse * 100 - max_regression * fabs(a) > 100 * slack ? CHECK_REGRESSED : CHECK_WITHIN;
}

static enum check_finding find(const struct check_row *row, const struct check_budget *b)
{
	const struct check_item *i = &row->item;

	if (i->weight < b->min_total)
		return CHECK_TOO_SMALL;
	if ((i->in_a && !isfinite(i->a)) || (i->in_b && !isfinite(i->b)))
		return CHECK_UNKNOWN;
	if (!i->in_a)
		return CHECK_NEW;
	return i->in_b ? compare(row, b->max_regression) : CHECK_VANISHED;
}

static bool fails(enum check_finding f, const struct check_budget *b)
{
	switch (f) {
	case CHECK_REGRESSED:
	case CHECK_FROM_ZERO:
	case CHECK_UNKNOWN:
		return true;
	case CHECK_NEW:
		return b->fail_on_new;
	case CHECK_VANISHED:
		return b->fail_on_missing;
	default:
		return false;
	}
}

static struct check_row judge(const struct check_item *item, const struct check_budget *b)
{
	struct check_row row = {.item = *item};

	row.delta = (item->in_b ? item->b : 0) - (item->in_a ? item->a : 0);
	row.pct = item->in_a && item->a != 0 ? row.delta / fabs(item->a) * 100 : NAN;
	row.worse_pct = item->higher_is_better ? -row.pct : row.pct;
	row.finding = find(&row, b);
	row.fails = fails(row.finding, b);
	return row;
}

static int descending(double x, double y)
{
	if (isnan(x) || isnan(y))
		return (int)isnan(x) - (int)isnan(y);
	return (x < y) - (x > y);
}

static int by_finding(const void *one, const void *other)
{
	const struct check_row *x = one, *y = other;
	int order = (int)y->fails - (int)x->fails;

	if (order == 0)
		order = (int)x->finding - (int)y->finding;
	if (order == 0)
		order = descending(x->worse_pct, y->worse_pct);
	if (order == 0)
		order = descending(fabs(x->delta), fabs(y->delta));
	return order ? order : strcmp(x->item.name, y->item.name);
}

bool check_was_compared(enum check_finding f)
{
	return f == CHECK_REGRESSED || f == CHECK_FROM_ZERO || f == CHECK_WITHIN || f == CHECK_IMPROVED;
}

int check_judge(const struct check_item *items, size_t count, const struct check_budget *b, struct check_result *ret,
		struct error *err)
{
	struct check_result r = {.budget = *b};

	if (!(b->max_regression >= 0) || isinf(b->max_regression))
		return error_set(err, "a budget of %g%% is no number of 0 or more", b->max_regression);
	if (!(b->min_total >= 0) || isinf(b->min_total))
		return error_set(err, "a least total of %g ns is no number of 0 or more", b->min_total);
	r.rows = calloc(count + 1, sizeof *r.rows);
	if (!r.rows)
		return error_set(err, "out of memory for %zu figures", count);
	for (size_t i = 0; i < count; i++) {
		struct check_row *row = &r.rows[r.count];

		if (!items[i].in_a && !items[i].in_b)
			continue;
		*row = judge(&items[i], b);
		r.count++;
		r.failed += row->fails;
		r.compared += check_was_compared(row->finding);
		r.per_finding[row->finding]++;
	}
	qsort(r.rows, r.count, sizeof *r.rows, by_finding);
	*ret = r;
	return 0;
}
