#include "judge/stats_ranks.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define LOG_ROUNDING (4 * DBL_EPSILON) /* what rounding can add to ln(b / a) */

void rank_sums_init(struct rank_sums *r)
{
	*r = (struct rank_sums){0};
}

void rank_sums_release(struct rank_sums *r)
{
	free(r->below);
	free(r->ratios);
	rank_sums_init(r);
}

/* The number of ways for each U up to `most` are the coefficients of the Gaussian binomial, the product of
 * (1 - q^(m + i)) / (1 - q^i) for i = 1 .. n (Mann and Whitney 1947; Andrews, The Theory of Partitions, 3.2). Each one
 * comes from smaller ones alone, so rounding stays small also far out in the tail. Scaled to shares as it goes: with
 * thousands of values the ways leave every floating-point range. */
static void count_ways(long double *ways, size_t n, size_t m, size_t most)
{
	for (size_t u = 0; u <= most; u++)
		ways[u] = u == 0;
	for (size_t i = 1; i <= n; i++) {
		long double share = (long double)i / (long double)(m + i);

		for (size_t u = most; u >= m + i; u--)
			ways[u] -= ways[u - m - i];
		for (size_t u = i; u <= most; u++)
			ways[u] += ways[u - i];
		for (size_t u = 0; u <= most; u++)
			ways[u] *= share;
	}
}

int rank_sums_prepare(struct rank_sums *r, size_t n, size_t m, struct error *err)
{
	size_t all = n * m, middle = all / 2;
	CLEANUP(free_cleanup) long double *ways = NULL;
	long double sum = 0;

	if (n < 1 || m < 1 || n > STATS_RANKS_MOST || m > STATS_RANKS_MOST)
		return error_set(err, "%zu and %zu runs are not compared by ranks: 1 to %d a side are", n, m,
				 STATS_RANKS_MOST);
	if (r->n == n && r->m == m)
		return 0;
	rank_sums_release(r);
	ways = calloc(middle + 1, sizeof *ways);
	r->below = calloc(all + 1, sizeof *r->below);
	r->ratios = calloc(all, sizeof *r->ratios);
	if (!ways || !r->below || !r->ratios) {
		rank_sums_release(r);
		return error_set(err, "out of memory for the ranks of %zu and %zu runs", n, m);
	}
	count_ways(ways, n, m, middle);
	for (size_t u = 0; u <= middle; u++)
		r->below[u] = (double)(sum += ways[u]);
	for (size_t u = middle + 1; u <= all; u++) /* it is symmetric: P(U <= u) = 1 - P(U <= all - u - 1) */
		r->below[u] = u < all ? 1 - r->below[all - u - 1] : 1;
	r->n = n;
	r->m = m;
	return 0;
}

size_t rank_sums_rank(const struct rank_sums *r, double alpha)
{
	size_t k = 0, middle = (r->n * r->m + 1) / 2;

	while (k < middle && r->below[k] <= alpha / 2)
		k++;
	return k;
}

/* Two-sided, that all of b is a times exp(at). Ties count half on each side, rounded against rejection. */
static double rank_sum_p(const struct rank_sums *r, double at)
{
	size_t count = r->n * r->m, below = 0, above = 0, fewer;

	for (size_t i = 0; i < count; i++) {
		below += r->ratios[i] < at;
		above += r->ratios[i] > at;
	}
	fewer = (below < above ? below : above) + (count - below - above + 1) / 2;
	return fmin(2 * r->below[fewer < count ? fewer : count], 1);
}

/* As in stats_paired(): beyond the edge, inside it, different from nothing, or none of these. */
static enum paired_verdict judge(const struct rank_sums *r, double alpha, int direction, double edge, double low,
				 double high)
{
	size_t count = r->n * r->m, narrower = rank_sums_rank(r, 2 * alpha);

	if (low > edge)
		return direction > 0 ? PAIRED_BETTER : PAIRED_WORSE;
	if (high < -edge)
		return direction > 0 ? PAIRED_WORSE : PAIRED_BETTER;
	if (r->ratios[narrower - 1] >= -edge && r->ratios[count - narrower] <= edge)
		return PAIRED_EQUIVALENT;
	return low > 0 || high < 0 ? PAIRED_SMALL : PAIRED_UNDECIDED;
}

int stats_unpaired(struct rank_sums *r, const double *a, size_t n, const double *b, size_t m, int direction,
		   double margin, double alpha, struct unpaired *ret, struct error *err)
{
	double edge = log1p(margin) + LOG_ROUNDING, low, high;
	size_t count = n * m, rank;

	if (rank_sums_prepare(r, n, m, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < m; j++)
			r->ratios[i * m + j] = log(b[j]) - log(a[i]);
	stats_sort(r->ratios, count);
	rank = rank_sums_rank(r, alpha);
	*ret = (struct unpaired){PAIRED_TOO_FEW, fmin(exp(stats_median(r->ratios, count)), DBL_MAX), NAN, NAN, NAN};
	if (!rank)
		return 0;
	low = r->ratios[rank - 1];
	high = r->ratios[count - rank];
	ret->low = fmin(exp(low), DBL_MAX);
	ret->high = fmin(exp(high), DBL_MAX);
	ret->verdict = judge(r, alpha, direction, edge, low, high);
	/* Where all is within the margin no order of equal sides would make a claim. */
	if (r->ratios[0] < -log1p(margin) || r->ratios[count - 1] > log1p(margin))
		ret->claim_p = ret->verdict == PAIRED_BETTER || ret->verdict == PAIRED_WORSE
				       ? rank_sum_p(r, copysign(log1p(margin), log(ret->ratio)))
				       : 1;
	return 0;
}
