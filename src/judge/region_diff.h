/* What changed per region between two files, or two groups of repeats. Pure: tables in, rows out.
 *
 * The meaning of a, b, delta and pct is that of scope-profiler's diff: a and b are the metric on each side (NaN where
 * the region is missing or timed no calls there), delta = b - a with a missing side as 0, pct is NaN where a is missing
 * or 0. With several tables a side, a and b are the medians of the repeats that have the region, and where each side
 * has at least two the paired or unpaired judge says whether it is more than noise. */
#ifndef ASSAY_JUDGE_REGION_DIFF_H
#define ASSAY_JUDGE_REGION_DIFF_H

#include "judge/stats.h"
#include "model/region_table.h"

#define REGION_RUNS_MOST 200 /* tables of a side */

enum region_sort { REGION_SORT_DELTA, REGION_SORT_PCT, REGION_SORT_NAME };

struct region_diff_options {
	enum region_metric metric;
	enum region_sort sort; /* delta and pct: by descending magnitude, one-sided rows first for pct */
	double threshold;      /* drops rows below this |pct|, never one-sided ones; NaN: none */
	double confidence;     /* of the judge, 0.95 */
	double margin;         /* of the judge, relative, 0.01 */
	/* When each run began, on one clock for both sides, ns; INT64_MIN: not known; NULL: none is. Runs that took
	 * turns are judged by pairs, as `assay diff` does it. */
	const int64_t *started_a, *started_b;
};

enum region_verdict {
	REGION_NOT_JUDGED, /* one file a side */
	REGION_TOO_FEW,
	REGION_BETTER,
	REGION_WORSE,
	REGION_EQUIVALENT,
	REGION_SMALL,
	REGION_UNDECIDED,
	REGION_BELOW_RESOLUTION, /* too many values are 0, which have no ratio */
	REGION_ONE_SIDED,
};

struct region_diff_row {
	char *name;
	bool in_a, in_b;  /* timed calls there (calls: were called; gpu_...: calls with GPU times) */
	/* It ran there, though no call of it may have the metric: only counted, or none found room. */
	bool ran_a, ran_b;
	double a, b, delta, pct; /* delta is NaN where a side that has the region does not know the metric */
	uint64_t dropped_a, dropped_b; /* the comparison is not whole where these are not 0 */
	size_t runs_a, runs_b; /* how many have it */
	double most_total; /* ns: the largest total that a run of either side has; NaN: none timed it */
	bool approximate;  /* a percentile comes from a histogram */
	enum region_verdict verdict;
	double low, high;  /* of b / a - 1 at the confidence, as pct; NaN */
	double p_adjusted; /* Holm over regions; NaN */
};

struct region_diff {
	struct region_diff_options options; /* started_...: not kept */
	struct region_diff_row *rows;
	size_t count;
	size_t runs_a, runs_b;
	bool judged;     /* several runs on a side */
	bool paired;     /* they took turns: neighbours in time were taken as pairs */
	size_t pairs;
	size_t claims;   /* regions that Holm's correction was over */
	size_t hidden;   /* below the threshold */
};

void region_diff_init(struct region_diff *d);
void region_diff_release(struct region_diff *d);

/* Takes the rows of whole regions alone. Fails for no memory or more than REGION_RUNS_MOST tables a side. */
int region_diff(const struct region_table *a, size_t a_count, const struct region_table *b, size_t b_count,
		const struct region_diff_options *o, struct region_diff *ret, struct error *err);

const char *region_verdict_text(enum region_verdict v); /* "better", "too few runs", ...; "" where it is not judged */
const char *region_verdict_name(enum region_verdict v); /* for scripts: "better", "too_few", ...; "not_judged" */

#endif
