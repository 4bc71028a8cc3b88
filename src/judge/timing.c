#include "judge/timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "judge/stats.h"

/* A batch shorter than this many steps of the clock is known to no better than 1%. */
#define RESOLUTIONS 100
/* What is left of a statement, as a share of the empty loop, that chance and the loop's alignment explain. */
#define LEFT_SHARE 0.2
/* A first batch that is not longer than this many medians is of no interest, outlier or not. */
#define FIRST_RATIO 1.05
#define PLAN_MOST (UINT64_C(1) << 62)
#define PLAN_PATIENT 128

/* One figure of each batch, in order and sorted with its weight. */
struct weighted {
	double value, weight;
};

struct figures {
	const struct timing_batch *batches;
	size_t count;
	const struct timing_options *options;
	double *values, *sorted;
	struct weighted *pairs;
	bool *outlier;
};

static void figures_release(struct figures *f)
{
	free(f->values);
	free(f->sorted);
	free(f->pairs);
	free(f->outlier);
}

static int figures_init(struct figures *f, struct error *err)
{
	f->values = calloc(f->count, sizeof *f->values);
	f->sorted = calloc(f->count, sizeof *f->sorted);
	f->pairs = calloc(f->count, sizeof *f->pairs);
	f->outlier = calloc(f->count, sizeof *f->outlier);
	if (!f->values || !f->sorted || !f->pairs || !f->outlier)
		return error_set(err, "out of memory for the times of %zu batches", f->count);
	return 0;
}

static int check(const struct timing_batch *batches, size_t count, const struct timing_options *o, struct error *err)
{
	if (!count)
		return error_set(err, "there is no batch to make figures of");
	if (o->by_time && !o->div_by_number)
		return error_set(err, "div_by_number has to be set where max_time is: batches differ in number");
	for (size_t i = 0; i < count; i++) {
		if (!batches[i].number)
			return error_set(err, "batch %zu has no execution in it", i + 1);
		if (!isfinite(batches[i].seconds) || batches[i].seconds < 0)
			return error_set(err, "batch %zu took %g s, which is no time", i + 1, batches[i].seconds);
	}
	return 0;
}

static double own_seconds(const struct timing_batch *b, const struct timing_options *o)
{
	return fmax(0, b->seconds - o->overhead_s * (double)b->number);
}

static int ascending(const void *left, const void *right)
{
	double a = ((const struct weighted *)left)->value, b = ((const struct weighted *)right)->value;

	return (a > b) - (a < b);
}

/* The smallest value that a share q of the executions does not exceed. */
static double weighted_quantile(const struct weighted *sorted, size_t n, double q)
{
	double all = 0, below = 0;

	for (size_t i = 0; i < n; i++)
		all += sorted[i].weight;
	for (size_t i = 0; i < n; i++) {
		below += sorted[i].weight;
		if (below >= q * all)
			return sorted[i].value;
	}
	return n ? sorted[n - 1].value : NAN;
}

static double quantile(const struct figures *f, double q)
{
	return f->options->by_time ? weighted_quantile(f->pairs, f->count, q)
				   : stats_quantile(f->sorted, f->count, q);
}

/* The mean and the population's deviation; each value weighs 1, or its executions. Two passes, since the mean of the
 * squares less the square of the mean leaves no digit of a small deviation. */
static void moments(const struct figures *f, struct timing *t)
{
	long double weights = 0, sum = 0, squares = 0, mean;

	for (size_t i = 0; i < f->count; i++) {
		long double weight = f->options->by_time ? (long double)f->batches[i].number : 1;

		weights += weight;
		sum += weight * f->values[i];
	}
	mean = sum / weights;
	for (size_t i = 0; i < f->count; i++) {
		long double weight = f->options->by_time ? (long double)f->batches[i].number : 1;

		squares += weight * (f->values[i] - mean) * (f->values[i] - mean);
	}
	t->average = (double)mean;
	t->deviation = (double)sqrtl(squares / weights);
	t->ttime = (double)sum;
	t->repeat = f->options->by_time ? 1 : f->count;
	t->number = f->options->by_time ? (uint64_t)weights : f->batches[0].number;
}

static void order(const struct figures *f, struct timing *t)
{
	size_t rank = f->options->by_time ? 0 : stats_sign_rank(f->count, 1 - f->options->confidence);

	t->min_exec = f->sorted[0];
	t->max_exec = f->sorted[f->count - 1];
	t->p05 = quantile(f, 0.05);
	t->p25 = quantile(f, 0.25);
	t->p75 = quantile(f, 0.75);
	t->p95 = quantile(f, 0.95);
	t->median = f->options->by_time ? quantile(f, 0.5) : stats_median(f->sorted, f->count);
	t->confidence = f->options->confidence;
	t->low = rank ? f->sorted[rank - 1] : NAN;
	t->high = rank ? f->sorted[f->count - rank] : NAN;
	if (!rank && !f->options->by_time)
		t->warnings |= TIMING_FEW;
}

/* The median of what a counter said per execution, of the batches in which it counted. Uses f->pairs up. */
static double counted(struct figures *f, size_t offset)
{
	size_t n = 0;

	for (size_t i = 0; i < f->count; i++) {
		double number = (double)f->batches[i].number, value;

		memcpy(&value, (const char *)&f->batches[i] + offset, sizeof value);
		if (!isnan(value))
			f->pairs[n++] = (struct weighted){value / number, f->options->by_time ? number : 1};
	}
	qsort(f->pairs, n, sizeof *f->pairs, ascending);
	return weighted_quantile(f->pairs, n, 0.5);
}

/* Of a plan by time only the longest batch matters: it began with one execution. */
static bool unresolved(const struct figures *f)
{
	double least = RESOLUTIONS * f->options->resolution_s, longest = 0;
	size_t shorter = 0;

	for (size_t i = 0; i < f->count; i++) {
		double at_once = f->batches[i].seconds / (f->options->alone ? (double)f->batches[i].number : 1);

		longest = fmax(longest, at_once);
		shorter += at_once < least;
	}
	return f->options->by_time ? longest < least : 2 * shorter > f->count;
}

static bool nothing_left(const struct figures *f, const struct timing *t)
{
	double number = f->options->by_time ? (double)t->number : (double)f->batches[0].number;
	double left = f->options->div_by_number ? t->median : t->median / number;

	return left <= fmax(LEFT_SHARE * f->options->overhead_s, f->options->resolution_s / number);
}

/* What the order and the shape of equal batches say; those of a plan by time are not equal. */
static void flag(const struct figures *f, struct timing *t)
{
	bool drifts;
	size_t outliers = stats_outliers(f->values, f->count, f->outlier);
	bool first = f->outlier[0] && f->values[0] > FIRST_RATIO * t->median;

	if (first)
		t->warnings |= TIMING_FIRST_SLOW;
	if (outliers > first)
		t->warnings |= TIMING_OUTLIERS;
	stats_drift(f->values, f->count, &drifts);
	if (drifts)
		t->warnings |= TIMING_DRIFTS;
	if (stats_bimodal(f->sorted, f->count))
		t->warnings |= TIMING_BIMODAL;
}

int timing_of(const struct timing_batch *batches, size_t count, const struct timing_options *options,
	      struct timing *ret, struct error *err)
{
	CLEANUP(figures_release) struct figures f = {batches, count, options, NULL, NULL, NULL, NULL};
	struct timing t = {.batches = count, .overhead = options->overhead_s, .resolution = options->resolution_s};

	if (check(batches, count, options, err) < 0 || figures_init(&f, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		double number = (double)batches[i].number;
		double value = own_seconds(&batches[i], options) / (options->div_by_number ? number : 1);

		f.values[i] = f.sorted[i] = value;
		f.pairs[i] = (struct weighted){value, number};
	}
	stats_sort(f.sorted, count);
	qsort(f.pairs, count, sizeof *f.pairs, ascending);
	moments(&f, &t);
	order(&f, &t);
	t.cycles = counted(&f, offsetof(struct timing_batch, cycles));
	t.instructions = counted(&f, offsetof(struct timing_batch, instructions));
	if (unresolved(&f))
		t.warnings |= TIMING_UNRESOLVED;
	if (nothing_left(&f, &t))
		t.warnings |= TIMING_NOTHING_LEFT;
	else if (!options->by_time)
		flag(&f, &t);
	*ret = t;
	return 0;
}

const char *timing_warning_text(enum timing_warning bit)
{
	switch (bit) {
	case TIMING_UNRESOLVED:
		return "what is timed at once takes less than 100 steps of the clock, so its time is not known to 1%: "
		       "more executions in a batch help, where they are timed together";
	case TIMING_NOTHING_LEFT:
		return "it takes no longer than an empty loop: the compiler has removed it, perhaps, or reckoned it "
		       "beforehand; ASSAY_KEEP(result) keeps it, ASSAY_HIDE(input) hides an input from the compiler";
	case TIMING_FIRST_SLOW:
		return "the first batch is much slower than the others: it found cold caches, perhaps; more warmup "
		       "leaves such batches out";
	case TIMING_OUTLIERS:
		return "some batches are far from the others (kept; the median does not mind them): something else "
		       "used the machine, perhaps";
	case TIMING_DRIFTS:
		return "the times grow or shrink from batch to batch: the machine or the data changes; more warmup "
		       "lets it settle";
	case TIMING_BIMODAL:
		return "the times fall into two groups, so that no single figure describes them";
	case TIMING_FEW:
		return "there are too few batches for an interval at this confidence: 6 are the least at 95%, 8 at 99%";
	case TIMING_WARNINGS:
		break;
	}
	return NULL;
}

/* The executions that fill the time that is left, by the time that has passed; never fewer than before. */
static uint64_t grown(const struct timing_plan *plan, double max_time)
{
	double least = plan->step > PLAN_PATIENT ? 2 : 1;
	double ratio = plan->total > 0 ? fmax((max_time - plan->total) / plan->total, least) : 10;
	double next = floor((double)plan->i * ratio);

	return next < (double)PLAN_MOST ? (uint64_t)next : PLAN_MOST;
}

uint64_t timing_plan_next(struct timing_plan *plan, double seconds, double max_time)
{
	if (plan->step++ == 0) {
		plan->i = 1;
		return 1;
	}
	plan->total += seconds;
	if (!(plan->total < max_time))
		return 0;
	if (plan->step % 2 == 0)
		return 2 * plan->i;
	plan->i = grown(plan, max_time);
	return plan->i;
}
