#include "judge/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "judge/bench_notes.h"

/* A deviation's size from a MAD, for values from a normal distribution. */
#define MAD_TO_DEVIATION 1.4826
/* What the shell's start-up scatters by, between these quantiles, leaves nothing of a time that is shorter. */
#define STARTUP_LOW 0.05
#define STARTUP_HIGH 0.95

const char *bench_verdict(enum paired_verdict v)
{
	return v == PAIRED_BETTER ? "faster" : v == PAIRED_WORSE ? "slower" : paired_verdict_name(v);
}

void bench_answer_release(struct bench_answer *a)
{
	for (size_t i = 0; i < a->count; i++) {
		free(a->items[i].times);
		warnings_release(&a->items[i].notes);
	}
	free(a->items);
	*a = (struct bench_answer){0};
}

/* One figure of all runs that count, sorted; how many. */
static size_t collect(const struct bench_runs *runs, size_t offset, double *values)
{
	size_t n = 0;

	for (size_t i = 0; i < runs->count; i++)
		if (runs->items[i].counts)
			memcpy(&values[n++], (const char *)&runs->items[i] + offset, sizeof *values);
	stats_sort(values, n);
	return n;
}

static double median_of(const struct bench_runs *runs, size_t offset, double *scratch)
{
	return stats_median(scratch, collect(runs, offset, scratch));
}

static double mean_of(const struct bench_runs *runs, size_t offset, double *scratch)
{
	size_t n = collect(runs, offset, scratch);

	return n ? stats_mean(scratch, n) : NAN;
}

static double *scratch_for(const struct bench_runs *runs, struct error *err)
{
	double *values = malloc((runs->count + 1) * sizeof *values);

	if (!values)
		error_set(err, "out of memory for the times of %zu runs", runs->count);
	return values;
}

static int measure_startup(const struct bench *b, struct bench_answer *a, struct error *err)
{
	CLEANUP(free_cleanup) double *values = scratch_for(&b->startup, err);
	size_t n;

	if (!values)
		return -1;
	a->resolution_s = b->clock_s;
	n = collect(&b->startup, offsetof(struct bench_run, wall_s), values);
	if (n == 0)
		return 0;
	a->startup_s = stats_median(values, n);
	a->resolution_s =
		fmax(b->clock_s, stats_quantile(values, n, STARTUP_HIGH) - stats_quantile(values, n, STARTUP_LOW));
	a->startup_user_s = mean_of(&b->startup, offsetof(struct bench_run, user_s), values);
	a->startup_system_s = mean_of(&b->startup, offsetof(struct bench_run, system_s), values);
	return 0;
}

/* A run's own time; 0 where it is not to be told from nothing. */
static double own_time(const struct bench_answer *a, const struct bench_run *r)
{
	double own = r->wall_s - a->startup_s;

	return own > a->resolution_s ? own : 0;
}

static void interval(const double *sorted, size_t n, double alpha, struct bench_figures *f)
{
	size_t rank = stats_sign_rank(n, alpha);

	f->low = rank ? sorted[rank - 1] : NAN;
	f->high = rank ? sorted[n - rank] : NAN;
}

static double alpha_of(const struct bench *b)
{
	return (1 - b->confidence) / (double)(b->looks ? b->looks : 1);
}

static void flag(struct bench_figures *f, const double *sorted, bool *outlier)
{
	size_t n = f->counted;

	f->outliers = stats_outliers(f->times, n, outlier);
	f->first_outlier = n > 0 && outlier[0] && f->times[0] > f->median;
	f->bimodal = stats_bimodal(sorted, n);
	f->drift = stats_drift(f->times, n, &f->drifts);
}

static void count(const struct bench_runs *runs, const struct bench_answer *a, struct bench_figures *f)
{
	f->attempted = runs->count;
	for (size_t i = 0; i < runs->count; i++) {
		const struct bench_run *r = &runs->items[i];

		f->timed_out += r->timed_out;
		f->failed += !r->timed_out && r->status != 0;
		if (!r->counts)
			continue;
		f->unresolved += own_time(a, r) <= 0;
		f->times[f->counted++] = fmax(0, r->wall_s - a->startup_s);
	}
	f->below_resolution = f->counted && 2 * f->unresolved > f->counted;
}

static int figures(const struct bench *b, const struct bench_answer *a, const struct bench_runs *runs,
		   struct bench_figures *f, struct error *err)
{
	CLEANUP(free_cleanup) double *values = scratch_for(runs, err);
	CLEANUP(free_cleanup) bool *outlier = calloc(runs->count + 1, sizeof *outlier);

	f->times = scratch_for(runs, err);
	if (!values || !f->times)
		return -1;
	if (!outlier)
		return error_set(err, "out of memory for the flags of %zu runs", runs->count);
	count(runs, a, f);
	f->user = fmax(0, mean_of(runs, offsetof(struct bench_run, user_s), values) - a->startup_user_s);
	f->system = fmax(0, mean_of(runs, offsetof(struct bench_run, system_s), values) - a->startup_system_s);
	f->peak_bytes = median_of(runs, offsetof(struct bench_run, peak_bytes), values);
	f->minor_faults = median_of(runs, offsetof(struct bench_run, minor_faults), values);
	f->major_faults = median_of(runs, offsetof(struct bench_run, major_faults), values);
	f->voluntary_switches = median_of(runs, offsetof(struct bench_run, voluntary_switches), values);
	f->involuntary_switches = median_of(runs, offsetof(struct bench_run, involuntary_switches), values);
	memcpy(values, f->times, f->counted * sizeof *values);
	stats_sort(values, f->counted);
	f->median = stats_median(values, f->counted);
	f->mean = f->counted ? stats_mean(f->times, f->counted) : NAN;
	f->deviation = stats_deviation(f->times, f->counted);
	f->spread = f->counted ? MAD_TO_DEVIATION * stats_mad(values, f->counted) : NAN;
	f->min = f->counted ? values[0] : NAN;
	f->max = f->counted ? values[f->counted - 1] : NAN;
	interval(values, f->counted, alpha_of(b), f);
	if (f->counted)
		flag(f, values, outlier);
	return 0;
}

/* Pairs are the neighbours of one turn; one that has a run that does not count is none. */
static int compare_with(const struct bench *b, const struct bench_answer *a, const struct bench_runs *reference,
			const struct bench_runs *runs, struct bench_figures *f, struct error *err)
{
	CLEANUP(free_cleanup) double *d = scratch_for(runs, err);
	size_t n = 0, unresolved = 0;

	if (!d)
		return -1;
	for (size_t i = 0; i < runs->count && i < reference->count; i++) {
		const struct bench_run *x = &reference->items[i], *y = &runs->items[i];
		double from = own_time(a, x), to = own_time(a, y);

		if (!x->counts || !y->counts)
			continue;
		if (from > 0 && to > 0)
			d[n++] = log(to / from);
		else
			unresolved++;
	}
	stats_paired(d, n, unresolved, -1, b->margin, alpha_of(b), &f->paired);
	/* "small" claims a difference, not one beyond the margin. */
	f->claim_p = f->paired.verdict == PAIRED_SMALL ? f->paired.p : stats_claim_p(d, n, b->margin, &f->paired);
	return 0;
}

/* With several comparisons one of them finds something by chance more often than one in twenty: Holm's correction. A
 * finding that does not survive it is none. */
static int correct(const struct bench *b, struct bench_answer *a, struct error *err)
{
	CLEANUP(free_cleanup) double *p = calloc(2 * a->count + 2, sizeof *p);
	double *adjusted = p + a->count;
	size_t n = 0;

	if (!p)
		return error_set(err, "out of memory for %zu comparisons", a->count);
	for (size_t i = 0; i < a->count; i++)
		if (a->items[i].compared && a->items[i].paired.pairs)
			p[n++] = a->items[i].claim_p;
	if (stats_holm(p, n, adjusted) < 0)
		return error_set(err, "out of memory for %zu comparisons", a->count);
	for (size_t i = 0, k = 0; i < a->count; i++) {
		struct paired *pair = &a->items[i].paired;
		bool finding = pair->verdict == PAIRED_BETTER || pair->verdict == PAIRED_WORSE ||
			       pair->verdict == PAIRED_SMALL;

		if (!a->items[i].compared || !pair->pairs)
			continue;
		if (adjusted[k++] > alpha_of(b) && finding) {
			pair->verdict = PAIRED_UNDECIDED;
			pair->pairs_needed = NAN;
			a->items[i].held_back = true;
		}
	}
	return 0;
}

int bench_judge(const struct bench *b, struct bench_answer *ret, struct error *err)
{
	CLEANUP(bench_answer_release) struct bench_answer a = {0};

	a.items = calloc(b->count + 1, sizeof *a.items);
	if (!a.items)
		return error_set(err, "out of memory for %zu commands", b->count);
	a.count = b->count;
	if (measure_startup(b, &a, err) < 0)
		return -1;
	for (size_t i = 0; i < b->count; i++) {
		struct bench_figures *f = &a.items[i];

		warnings_init(&f->notes);
		if (figures(b, &a, &b->commands[i].runs, f, err) < 0)
			return -1;
		f->compared = i != b->reference;
		if (f->compared && compare_with(b, &a, &b->commands[b->reference].runs, &b->commands[i].runs,
						f, err) < 0)
			return -1;
	}
	if (correct(b, &a, err) < 0)
		return -1;
	for (size_t i = 0; i < b->count; i++)
		bench_notes(b, &a, i);
	*ret = a;
	a = (struct bench_answer){0};
	return 0;
}

int bench_decided(const struct bench *b, bool *ret, struct error *err)
{
	CLEANUP(bench_answer_release) struct bench_answer a = {0};
	bool decided = true;

	if (bench_judge(b, &a, err) < 0)
		return -1;
	for (size_t i = 0; i < a.count; i++) {
		const struct bench_figures *f = &a.items[i];

		if (f->compared)
			decided = decided && f->paired.verdict != PAIRED_UNDECIDED &&
				  f->paired.verdict != PAIRED_SMALL && f->paired.verdict != PAIRED_TOO_FEW;
		else if (a.count == 1)
			decided = f->high - f->low <= 2 * b->margin * f->median;
	}
	*ret = decided;
	return 0;
}

static bool has_verdict(const struct bench_answer *a, enum paired_verdict v)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->items[i].compared && a->items[i].paired.verdict == v)
			return true;
	return false;
}

bool bench_has_slower(const struct bench_answer *a)
{
	return has_verdict(a, PAIRED_WORSE);
}

bool bench_has_undecided(const struct bench_answer *a)
{
	return has_verdict(a, PAIRED_UNDECIDED) || has_verdict(a, PAIRED_TOO_FEW);
}
