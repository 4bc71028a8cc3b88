#include "judge/region_diff.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "judge/compare_pairs.h"
#include "judge/stats_ranks.h"

#define DIRECTION (-1) /* of every metric of a region less is better */

static const struct {
	const char *name, *text;
} verdicts[] = {
	[REGION_NOT_JUDGED] = {"not_judged", ""},
	[REGION_TOO_FEW] = {"too_few", "too few runs"},
	[REGION_BETTER] = {"better", "better"},
	[REGION_WORSE] = {"worse", "worse"},
	[REGION_EQUIVALENT] = {"equivalent", "equivalent"},
	[REGION_SMALL] = {"small", "small"},
	[REGION_UNDECIDED] = {"undecided", "undecided"},
	[REGION_BELOW_RESOLUTION] = {"below_resolution", "below resolution"},
	[REGION_ONE_SIDED] = {"one_sided", "one-sided"},
};

const char *region_verdict_text(enum region_verdict v)
{
	return verdicts[v].text;
}

const char *region_verdict_name(enum region_verdict v)
{
	return verdicts[v].name;
}

void region_diff_init(struct region_diff *d)
{
	*d = (struct region_diff){0};
}

void region_diff_release(struct region_diff *d)
{
	for (size_t i = 0; i < d->count; i++)
		free(d->rows[i].name);
	free(d->rows);
	region_diff_init(d);
}

/* A region in one run. */
struct entry {
	const struct region_row *row;
	bool of_b;
	size_t run;
};

/* What one comparison works with. */
struct work {
	const struct region_diff_options *options;
	struct entry *entries; /* by name, side, run */
	size_t entry_count;
	struct pair *pairs;
	size_t pair_count;
	double *values[2];   /* by run: the metric, NaN where the run has none */
	double *resolved[2]; /* those of a side that have it, without gaps */
	double *ratios;      /* one log-ratio per pair */
	struct rank_sums ranks;
};

static void work_release(struct work *w)
{
	free(w->entries);
	free(w->pairs);
	for (int side = 0; side < 2; side++) {
		free(w->values[side]);
		free(w->resolved[side]);
	}
	free(w->ratios);
	rank_sums_release(&w->ranks);
}

static int by_name(const void *one, const void *other)
{
	const struct entry *x = one, *y = other;
	int order = strcmp(x->row->name, y->row->name);

	if (order == 0)
		order = (int)x->of_b - (int)y->of_b;
	return order ? order : (x->run > y->run) - (x->run < y->run);
}

static size_t add_entries(struct entry *entries, const struct region_table *tables, size_t count, bool of_b)
{
	size_t added = 0;

	for (size_t run = 0; run < count; run++)
		for (size_t i = 0; i < tables[run].count; i++)
			if (tables[run].rows[i].rank < 0 && tables[run].rows[i].thread < 0)
				entries[added++] = (struct entry){&tables[run].rows[i], of_b, run};
	return added;
}

static size_t row_total(const struct region_table *tables, size_t count)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += tables[i].count;
	return total;
}

static bool has_metric(const struct region_row *row, enum region_metric m)
{
	switch (m) {
	case REGION_METRIC_CALLS:
		return row->calls > 0;
	case REGION_METRIC_GPU_TOTAL:
	case REGION_METRIC_GPU_AVG:
		return row->gpu_calls > 0;
	default:
		return row->timed > 0;
	}
}

/* Calls without times on a GPU have none to lose. */
static bool ran(const struct region_row *row, enum region_metric m)
{
	bool gpu = m == REGION_METRIC_GPU_TOTAL || m == REGION_METRIC_GPU_AVG;

	return has_metric(row, m) || (!gpu && (row->calls > 0 || row->dropped > 0));
}

static bool is_percentile(enum region_metric m)
{
	return m == REGION_METRIC_P50 || m == REGION_METRIC_P95 || m == REGION_METRIC_P99;
}

/* The median of a side's known values, which are packed into *resolved on the way; NaN where there are none. */
static double middle_of(const double *values, size_t runs, double *resolved, size_t *ret_count)
{
	size_t count = 0;

	for (size_t i = 0; i < runs; i++)
		if (!isnan(values[i]))
			resolved[count++] = values[i];
	*ret_count = count;
	return stats_middle(resolved, count);
}

/* The metric by run and side, and what is summed over the runs. */
static void gather(struct work *w, const struct entry *entries, size_t count, const struct region_diff *d,
		   struct region_diff_row *row)
{
	enum region_metric metric = w->options->metric;

	for (size_t i = 0; i < d->runs_a; i++)
		w->values[0][i] = NAN;
	for (size_t i = 0; i < d->runs_b; i++)
		w->values[1][i] = NAN;
	for (size_t i = 0; i < count; i++) {
		const struct entry *e = &entries[i];

		*(e->of_b ? &row->dropped_b : &row->dropped_a) += e->row->dropped;
		if (e->row->timed)
			row->most_total = fmax(row->most_total, (double)e->row->total);
		*(e->of_b ? &row->ran_b : &row->ran_a) |= ran(e->row, metric);
		if (!has_metric(e->row, metric))
			continue;
		*(e->of_b ? &row->in_b : &row->in_a) = true;
		row->approximate |= e->row->approximate && is_percentile(metric);
		w->values[e->of_b][e->run] = region_row_metric(e->row, metric);
	}
	row->a = middle_of(w->values[0], d->runs_a, w->resolved[0], &row->runs_a);
	row->b = middle_of(w->values[1], d->runs_b, w->resolved[1], &row->runs_b);
	row->delta = (row->in_b ? row->b : 0) - (row->in_a ? row->a : 0);
	row->pct = row->in_a && row->a != 0 ? row->delta / row->a * 100 : NAN;
}

static enum region_verdict verdict_of(enum paired_verdict v)
{
	static const enum region_verdict of[] = {
		[PAIRED_TOO_FEW] = REGION_TOO_FEW,
		[PAIRED_BETTER] = REGION_BETTER,
		[PAIRED_WORSE] = REGION_WORSE,
		[PAIRED_EQUIVALENT] = REGION_EQUIVALENT,
		[PAIRED_SMALL] = REGION_SMALL,
		[PAIRED_UNDECIDED] = REGION_UNDECIDED,
		[PAIRED_BELOW_RESOLUTION] = REGION_BELOW_RESOLUTION,
	};

	return of[v];
}

static void put_verdict(struct region_diff_row *row, enum paired_verdict verdict, double low, double high, double p)
{
	row->verdict = verdict_of(verdict);
	row->low = (low - 1) * 100;
	row->high = (high - 1) * 100;
	row->p_adjusted = p;
}

static void judge_pairs(struct work *w, struct region_diff_row *row)
{
	const struct region_diff_options *o = w->options;
	size_t n = 0, unresolved = 0;
	struct paired paired;

	for (size_t i = 0; i < w->pair_count; i++) {
		double a = w->values[0][w->pairs[i].a], b = w->values[1][w->pairs[i].b];

		if (isnan(a) || isnan(b))
			continue;
		if (a >= DBL_MIN && b >= DBL_MIN)
			w->ratios[n++] = log(b) - log(a);
		else
			unresolved++;
	}
	stats_paired(w->ratios, n, unresolved, DIRECTION, o->margin, 1 - o->confidence, &paired);
	put_verdict(row, paired.verdict, paired.low, paired.high, stats_claim_p(w->ratios, n, o->margin, &paired));
}

static int judge_sides(struct work *w, struct region_diff_row *row, struct error *err)
{
	const struct region_diff_options *o = w->options;
	struct unpaired unpaired;

	for (int side = 0; side < 2; side++) {
		for (size_t i = 0; i < (side ? row->runs_b : row->runs_a); i++) {
			if (!(w->resolved[side][i] >= DBL_MIN)) {
				row->verdict = REGION_BELOW_RESOLUTION;
				return 0;
			}
		}
	}
	if (stats_unpaired(&w->ranks, w->resolved[0], row->runs_a, w->resolved[1], row->runs_b, DIRECTION, o->margin,
			   1 - o->confidence, &unpaired, err) < 0)
		return -1;
	put_verdict(row, unpaired.verdict, unpaired.low, unpaired.high, unpaired.claim_p);
	return 0;
}

static bool all_zero(const double *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (values[i] != 0)
			return false;
	return true;
}

static int judge_row(struct work *w, const struct region_diff *d, struct region_diff_row *row, struct error *err)
{
	row->verdict = REGION_TOO_FEW;
	if (row->in_a != row->in_b)
		row->verdict = REGION_ONE_SIDED;
	else if (row->runs_a < 2 || row->runs_b < 2)
		return 0;
	else if (all_zero(w->resolved[0], row->runs_a) && all_zero(w->resolved[1], row->runs_b))
		row->verdict = REGION_EQUIVALENT;
	else if (d->paired)
		judge_pairs(w, row);
	else
		return judge_sides(w, row, err);
	return 0;
}

static int make_rows(struct work *w, struct region_diff *d, struct error *err)
{
	for (size_t i = 0, end; i < w->entry_count; i = end) {
		struct region_diff_row *row = &d->rows[d->count];
		const char *name = w->entries[i].row->name;

		for (end = i + 1; end < w->entry_count && strcmp(w->entries[end].row->name, name) == 0;)
			end++;
		*row = (struct region_diff_row){.name = strdup(name), .most_total = NAN, .low = NAN, .high = NAN,
						.p_adjusted = NAN};
		if (!row->name)
			return error_set(err, "out of memory for the comparison of a region");
		d->count++;
		gather(w, &w->entries[i], end - i, d, row);
		if (d->judged && judge_row(w, d, row, err) < 0)
			return -1;
	}
	return 0;
}

/* Among many regions one is beyond its margin by chance more often than one alone: Holm's correction. */
static int correct(struct region_diff *d, struct error *err)
{
	CLEANUP(free_cleanup) double *p = calloc(d->count + 1, sizeof *p);
	CLEANUP(free_cleanup) double *adjusted = calloc(d->count + 1, sizeof *adjusted);

	for (size_t i = 0; p && i < d->count; i++)
		p[i] = d->rows[i].p_adjusted;
	if (!p || !adjusted || stats_holm(p, d->count, adjusted) < 0)
		return error_set(err, "out of memory for the comparison of %zu regions", d->count);
	for (size_t i = 0; i < d->count; i++) {
		struct region_diff_row *row = &d->rows[i];

		d->claims += isnan(p[i]) ? 0 : 1;
		row->p_adjusted = adjusted[i];
		if ((row->verdict == REGION_BETTER || row->verdict == REGION_WORSE) &&
		    adjusted[i] > 1 - d->options.confidence)
			row->verdict = REGION_UNDECIDED;
	}
	return 0;
}

/* One-sided rows and, of the others, those without a percentage though something changed stand before any percentage.
 */
static double magnitude(const struct region_diff_row *row, enum region_sort sort)
{
	double delta = isnan(row->delta) ? -1 : fabs(row->delta);

	if (sort == REGION_SORT_DELTA)
		return delta;
	if (row->in_a != row->in_b)
		return INFINITY;
	return !isnan(row->pct) ? fabs(row->pct) : delta > 0 ? DBL_MAX : delta;
}

static int by_magnitude(const struct region_diff_row *x, const struct region_diff_row *y, enum region_sort sort)
{
	double first = magnitude(x, sort), second = magnitude(y, sort);

	if (first != second)
		return first > second ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int by_delta(const void *x, const void *y)
{
	return by_magnitude(x, y, REGION_SORT_DELTA);
}

static int by_pct(const void *x, const void *y)
{
	return by_magnitude(x, y, REGION_SORT_PCT);
}

/* They are in the order of their names already. */
static void arrange(struct region_diff *d)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->count; i++) {
		struct region_diff_row *row = &d->rows[i];

		if (row->in_a == row->in_b && fabs(row->pct) < d->options.threshold) {
			free(row->name);
			d->hidden++;
		} else {
			d->rows[kept++] = *row;
		}
	}
	d->count = kept;
	if (d->options.sort != REGION_SORT_NAME && d->count)
		qsort(d->rows, d->count, sizeof *d->rows, d->options.sort == REGION_SORT_PCT ? by_pct : by_delta);
}

static int add_arms(struct arms *arms, const int64_t *started, size_t count, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		struct arm *arm = arms_add(arms);

		if (!arm)
			return error_set(err, "out of memory for %zu runs", count);
		arm->started_ns = started[i];
	}
	return 0;
}

static int find_pairs(struct work *w, struct region_diff *d, struct error *err)
{
	CLEANUP(arms_release) struct arms a;
	CLEANUP(arms_release) struct arms b;

	arms_init(&a);
	arms_init(&b);
	if (!w->options->started_a || !w->options->started_b)
		return 0;
	if (add_arms(&a, w->options->started_a, d->runs_a, err) < 0 ||
	    add_arms(&b, w->options->started_b, d->runs_b, err) < 0 ||
	    compare_find_pairs(&a, &b, &w->pairs, &w->pair_count, &d->paired, err) < 0)
		return -1;
	d->pairs = w->pair_count;
	return 0;
}

static int prepare(struct work *w, const struct region_table *a, const struct region_table *b, struct region_diff *d,
		   struct error *err)
{
	size_t rows = row_total(a, d->runs_a) + row_total(b, d->runs_b), runs = d->runs_a + d->runs_b + 1;

	w->entries = calloc(rows + 1, sizeof *w->entries);
	d->rows = calloc(rows + 1, sizeof *d->rows);
	w->ratios = calloc(runs, sizeof *w->ratios);
	for (int side = 0; side < 2; side++) {
		w->values[side] = calloc(runs, sizeof *w->values[side]);
		w->resolved[side] = calloc(runs, sizeof *w->resolved[side]);
		if (!w->values[side] || !w->resolved[side])
			return error_set(err, "out of memory for %zu runs", runs);
	}
	if (!w->entries || !d->rows || !w->ratios)
		return error_set(err, "out of memory for %zu rows of regions", rows);
	w->entry_count = add_entries(w->entries, a, d->runs_a, false);
	w->entry_count += add_entries(w->entries + w->entry_count, b, d->runs_b, true);
	if (w->entry_count)
		qsort(w->entries, w->entry_count, sizeof *w->entries, by_name);
	return 0;
}

int region_diff(const struct region_table *a, size_t a_count, const struct region_table *b, size_t b_count,
		const struct region_diff_options *o, struct region_diff *ret, struct error *err)
{
	CLEANUP(work_release) struct work w = {.options = o};
	CLEANUP(region_diff_release) struct region_diff d = {.options = *o, .runs_a = a_count, .runs_b = b_count};

	d.options.started_a = d.options.started_b = NULL;
	d.judged = a_count > 1 || b_count > 1;
	if (a_count > REGION_RUNS_MOST || b_count > REGION_RUNS_MOST)
		return error_set(err, "%zu files of a side are more than are compared (%d)",
				 a_count > b_count ? a_count : b_count, REGION_RUNS_MOST);
	if (prepare(&w, a, b, &d, err) < 0 || (d.judged && find_pairs(&w, &d, err) < 0) ||
	    make_rows(&w, &d, err) < 0 || correct(&d, err) < 0)
		return -1;
	arrange(&d);
	*ret = d;
	region_diff_init(&d); /* handed over */
	return 0;
}
