/* Two samples without an order between them: the exact rank-sum test, and the interval of their ratio that it gives.
 *
 * For runs that did not take turns, where stats_paired() has no pairs. Holds for any noise that has the same shape on
 * both sides; it cannot tell a change from a drift of the machine between them. Values are finite and above 0. */
#ifndef ASSAY_JUDGE_STATS_RANKS_H
#define ASSAY_JUDGE_STATS_RANKS_H

#include "base/error.h"
#include "judge/stats.h"

#define STATS_RANKS_MOST 1000 /* values of a side */

/* The distribution of the Mann-Whitney statistic U of n and m values, kept for the next use of the same size. */
struct rank_sums {
	size_t n, m;
	double *below; /* below[u] = P(U <= u), u from 0 to n m; owned */
	double *ratios; /* room for n m log-ratios; owned */
};

void rank_sums_init(struct rank_sums *r);
void rank_sums_release(struct rank_sums *r);

/* For n and m values, each from 1 to STATS_RANKS_MOST. */
int rank_sums_prepare(struct rank_sums *r, size_t n, size_t m, struct error *err);

/* The rank of the interval: the largest k with P(U < k) <= alpha / 2; 0: too few values. */
size_t rank_sums_rank(const struct rank_sums *r, double alpha);

struct unpaired {
	enum paired_verdict verdict; /* none of below resolution */
	double ratio;                /* exp of the median of all ln(b[j] / a[i]): Hodges and Lehmann's estimate */
	double low, high;            /* of the ratio, at 1 - alpha; NaN where there is no rank */
	double claim_p; /* for Holm's correction, as stats_claim_p() has it */
};

/* direction, margin and alpha as in stats_paired(). */
int stats_unpaired(struct rank_sums *r, const double *a, size_t n, const double *b, size_t m, int direction,
		   double margin, double alpha, struct unpaired *ret, struct error *err);

#endif
