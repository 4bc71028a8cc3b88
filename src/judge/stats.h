/* Statistics that hold without assumptions about the noise: order statistics and exact sign intervals.
 *
 * Pure functions on arrays; values are finite, callers have sorted out the rest. Each formula's source stands at its
 * function; docs/statistics.md has them all with examples. */
#ifndef ASSAY_JUDGE_STATS_H
#define ASSAY_JUDGE_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* Sorts ascending, in place. */
void stats_sort(double *values, size_t n);

/* Of sorted values; NaN where n is 0. The median of an even number is the mean of the middle two. Quantile: linear
 * between order statistics (Hyndman and Fan, type 7). */
double stats_median(const double *sorted, size_t n);
double stats_quantile(const double *sorted, size_t n, double q);
double stats_mean(const double *values, size_t n);
double stats_deviation(const double *values, size_t n); /* sample, n - 1; NaN for n < 2 */
double stats_mad(const double *sorted, size_t n);       /* median absolute deviation, not scaled */

/* The same of values in any order, without a copy, in at most 65 passes: the kth smallest, from 1 (NaN where there is
 * none), and the median. */
double stats_order(const double *values, size_t n, size_t k);
double stats_middle(const double *values, size_t n);

/* P(X < k) of X ~ Bin(n, 1/2), exact to the last bits for n up to 10,000. */
double stats_binomial_below(size_t n, size_t k);

/* The rank of the sign interval for a median: the largest k with P(Bin(n, 1/2) < k) <= alpha / 2. The interval is from
 * the kth smallest to the kth largest value. 0: there is none, too few values. */
size_t stats_sign_rank(size_t n, double alpha);

/* Two-sided p of the sign test that the median is `at`: twice the smaller tail, at most 1. Values equal to `at` count
 * half on each side, rounded against rejection. */
double stats_sign_p(const double *values, size_t n, double at);

/* Holm's step-down: adjusted[i] is the smallest level of the family at which p[i] is rejected. A p that is NaN stays
 * NaN and is none of the family. `adjusted` is no part of p. Returns -1 when out of memory. */
int stats_holm(const double *p, size_t n, double *adjusted);

/* Preset looks of a sequential run: after so many pairs, each at alpha / STATS_LOOKS (Bonferroni over the looks). */
#define STATS_LOOKS 5
extern const size_t stats_looks[STATS_LOOKS]; /* 8, 14, 24, 38, 60 */

/* Flags for a person; they decide nothing. */
/* |x - median| > 5 * 1.4826 * MAD, or where the MAD is 0 5 * 1.2533 * the mean absolute deviation; how many. */
size_t stats_outliers(const double *values, size_t n, bool *is_outlier);
bool stats_bimodal(const double *sorted, size_t n); /* two clusters with a gap that chance does not leave; n >= 12 */
/* Spearman's rank correlation with time, in [-1, 1], 0 where all values are equal; and whether |rho| is beyond chance
 * at 1%. Of more than 2,000 values, so many or fewer at even distances. */
double stats_drift(const double *values, size_t n, bool *ret_beyond_chance);

/* A paired comparison, d[i] = ln(b[i] / a[i]). */
enum paired_verdict {
	PAIRED_TOO_FEW,
	PAIRED_BETTER, /* the whole interval is beyond the margin, on the better side */
	PAIRED_WORSE,
	PAIRED_EQUIVALENT, /* the interval at 1 - 2 alpha is inside the margin */
	PAIRED_SMALL,      /* it excludes 0, and not the margin */
	PAIRED_UNDECIDED,
	PAIRED_BELOW_RESOLUTION, /* too many pairs hold a value that is 0 */
};

const char *paired_verdict_name(enum paired_verdict v); /* "too few pairs", "better", ..., "below resolution" */

struct paired {
	enum paired_verdict verdict;
	size_t pairs;      /* that were judged */
	size_t unresolved; /* pairs left out, since one value was 0 or below resolution */
	double ratio;      /* exp(median d) */
	double low, high;  /* of the ratio, at 1 - alpha; NaN where there is no rank */
	double equivalence_low, equivalence_high; /* at 1 - 2 alpha; NaN as above */
	double p;          /* of "no difference", for Holm */
	double detectable; /* minimum detectable effect: 1.43 * half-width of the interval, as a relative change; NaN */
	/* More pairs that would probably decide it, also of PAIRED_SMALL: whether it is beyond the margin; 0: decided;
	 * NaN: not to be told, as with too few pairs, where stats_least_pairs() says what an interval takes. */
	double pairs_needed;
	double confidence; /* 1 - alpha, as used (after the correction for looks) */
};

/* direction: +1 larger is better, -1 smaller is better. margin: relative, e.g. 0.01: beyond ln(1 + margin). d has n
 * values in the order of time; `unresolved` pairs were left out by the caller: since nobody knows their side, each
 * makes the interval one rank wider on both sides, and where that leaves none the verdict is below resolution. A ratio
 * that no double can hold is the largest one that it can. */
void stats_paired(const double *d, size_t n, size_t unresolved, int direction, double margin, double alpha,
		  struct paired *ret);

/* For Holm's correction, of what stats_paired() said of d: the chance of so many pairs beyond the margin, were the true
 * difference no larger than it. 1 where neither better nor worse is claimed; NaN where neither could be. */
double stats_claim_p(const double *d, size_t n, double margin, const struct paired *p);

/* The smallest number of pairs that can give an interval at all at this alpha: 6 at 5%, 8 at 1%. SIZE_MAX where alpha
 * is too small for a double's probabilities. */
size_t stats_least_pairs(double alpha);

#endif
