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

enum region_sort { REGION_SORT_DELTA, REGION_SORT_PCT, REGION_SORT_NAME };

struct region_diff_options {
	enum region_metric metric;
	enum region_sort sort; /* delta and pct: by descending magnitude, one-sided rows first for pct */
	double threshold;      /* drops rows below this |pct|, never one-sided ones; NaN: none */
	double confidence;     /* of the judge, 0.95 */
	double margin;         /* of the judge, relative, 0.01 */
};

enum region_verdict {
	REGION_NOT_JUDGED, /* one file a side */
	REGION_TOO_FEW,
	REGION_BETTER,
	REGION_WORSE,
	REGION_EQUIVALENT,
	REGION_SMALL,
	REGION_UNDECIDED,
	REGION_ONE_SIDED,
};

struct region_diff_row {
	char *name;
	bool in_a, in_b;  /* timed calls there (for calls: were called) */
	double a, b, delta, pct;
	uint64_t dropped_a, dropped_b; /* the comparison is not whole where these are not 0 */
	enum region_verdict verdict;
	double low, high;  /* of b / a - 1 at the confidence, as pct; NaN */
	double p_adjusted; /* Holm over regions; NaN */
};

struct region_diff {
	struct region_diff_options options;
	struct region_diff_row *rows;
	size_t count;
	size_t runs_a, runs_b;
	bool paired;     /* repeats were taken as pairs: A's ith with B's ith (equal numbers) */
	size_t hidden;   /* below the threshold */
};

void region_diff_init(struct region_diff *d);
void region_diff_release(struct region_diff *d);

int region_diff(const struct region_table *a, size_t a_count, const struct region_table *b, size_t b_count,
		const struct region_diff_options *o, struct region_diff *ret, struct error *err);

#endif
