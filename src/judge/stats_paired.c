#include "judge/stats.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* The effect that a test at 5% finds in 80% of trials, over the half-width of its interval: (z.975 + z.80) / z.975. */
#define DETECTABLE_HALF_WIDTHS 1.43
#define PAIRS_TELLABLE 1e6 /* more than this is "never" */

/* What rounding can add to ln(b / a). A clock that counts in steps gives many pairs the same ratio, 1.01 say: where
 * that is the margin itself they are not beyond it. */
#define LOG_ROUNDING (4 * DBL_EPSILON)

const size_t stats_looks[STATS_LOOKS] = {8, 14, 24, 38, 60};

/* P(X <= most) of X ~ Bin(n, 1/2), for most < n / 2: the last term, then those before it from it, C(n, i - 1) =
 * C(n, i) i / (n - i + 1). 2^-n leaves every floating-point range, so the binary exponent is carried apart. Multiplied
 * before it is divided each C(n, i) is a whole number: exact as long as it has room in a long double. */
static double lower_tail(size_t n, size_t most)
{
	long double term = 1, sum;
	long exponent = -(long)n;
	int shift;

	for (size_t i = 1; i <= most; i++) {
		term = frexpl(term * (long double)(n - i + 1) / (long double)i, &shift);
		exponent += shift;
	}
	sum = term;
	for (size_t i = most; i > 0 && term > sum * LDBL_EPSILON / 4; i--) {
		term = term * (long double)i / (long double)(n - i + 1);
		sum += term;
	}
	return (double)scalblnl(sum, exponent);
}

double stats_binomial_below(size_t n, size_t k)
{
	if (!k)
		return 0;
	if (k > n)
		return 1;
	if (2 * k == n + 1)
		return 0.5;
	return 2 * k <= n ? lower_tail(n, k - 1) : 1 - lower_tail(n, n - k);
}

size_t stats_sign_rank(size_t n, double alpha)
{
	size_t low = 0, high = n / 2 + n % 2; /* the middle: no rank is beyond it */

	while (low < high) {
		size_t k = high - (high - low) / 2;

		if (stats_binomial_below(n, k) <= alpha / 2)
			low = k;
		else
			high = k - 1;
	}
	return low;
}

size_t stats_least_pairs(double alpha)
{
	for (size_t n = 1; n <= -DBL_MIN_EXP; n++) /* 2^-n is a double */
		if (stats_sign_rank(n, alpha))
			return n;
	return SIZE_MAX;
}

/* Of `against` values nobody knows the side: all are taken to be where they speak against a difference. */
static double sign_p(const double *values, size_t n, size_t against, double at)
{
	size_t below = 0, above = 0, fewer;

	for (size_t i = 0; i < n; i++) {
		below += values[i] < at;
		above += values[i] > at;
	}
	fewer = (below < above ? below : above) + (n - below - above + 1) / 2 + against;
	return fmin(2 * stats_binomial_below(n + against, fewer + 1), 1);
}

double stats_sign_p(const double *values, size_t n, double at)
{
	return sign_p(values, n, 0, at);
}

struct of_family {
	double p;
	size_t at;
};

static int by_p(const void *one, const void *other)
{
	const struct of_family *x = one, *y = other;

	return (x->p > y->p) - (x->p < y->p);
}

/* Holm 1979: the ith smallest p times the number of those that are not smaller, and never below an earlier one. */
int stats_holm(const double *p, size_t n, double *adjusted)
{
	CLEANUP(free_cleanup) struct of_family *family = calloc(n + 1, sizeof *family);
	size_t count = 0;
	double level = 0;

	if (!family)
		return -1;
	for (size_t i = 0; i < n; i++) {
		adjusted[i] = NAN;
		if (!isnan(p[i]))
			family[count++] = (struct of_family){p[i], i};
	}
	qsort(family, count, sizeof *family, by_p);
	for (size_t i = 0; i < count; i++) {
		level = fmax(level, fmin((double)(count - i) * family[i].p, 1));
		adjusted[family[i].at] = level;
	}
	return 0;
}

static const char *const verdict_names[] = {
	[PAIRED_TOO_FEW] = "too few pairs",
	[PAIRED_BETTER] = "better",
	[PAIRED_WORSE] = "worse",
	[PAIRED_EQUIVALENT] = "equivalent",
	[PAIRED_SMALL] = "small",
	[PAIRED_UNDECIDED] = "undecided",
	[PAIRED_BELOW_RESOLUTION] = "below resolution",
};

const char *paired_verdict_name(enum paired_verdict v)
{
	return verdict_names[v];
}

/* An interval of the median of d, in the log; NaN where there is none. */
struct interval {
	double low, high;
};

/* A pair that was not resolved may lie anywhere: with each, the interval goes one rank further out on both sides. */
static struct interval sign_interval(const double *d, size_t n, size_t unresolved, double alpha)
{
	size_t rank = stats_sign_rank(n + unresolved, alpha);

	if (rank <= unresolved)
		return (struct interval){NAN, NAN};
	rank -= unresolved;
	return (struct interval){stats_order(d, n, rank), stats_order(d, n, n - rank + 1)};
}

static double half_width(struct interval i)
{
	return (i.high - i.low) / 2;
}

static enum paired_verdict judge(struct interval strict, struct interval equivalence, int direction, double edge)
{
	if (strict.low > edge)
		return direction > 0 ? PAIRED_BETTER : PAIRED_WORSE;
	if (strict.high < -edge)
		return direction > 0 ? PAIRED_WORSE : PAIRED_BETTER;
	if (equivalence.low >= -edge && equivalence.high <= edge)
		return PAIRED_EQUIVALENT;
	return strict.low > 0 || strict.high < 0 ? PAIRED_SMALL : PAIRED_UNDECIDED;
}

/* The end that is further away decides when all of it is inside. */
static double farther_end(struct interval i, double median)
{
	return fmax(median - i.low, i.high - median);
}

/* The interval narrows with 1 / sqrt(n) around the median as it is: beyond the edge once h sqrt(n / m) < |median| -
 * edge, where h is half of it, inside the edge once the farther end of the narrower one is. */
static double pairs_needed(double n, double median, double edge, struct interval strict, struct interval equivalence)
{
	double away = fabs(median) - edge;
	double narrower = (away > 0 ? half_width(strict) : farther_end(equivalence, median)) / fabs(away);
	double more = ceil(n * narrower * narrower - n);

	return more < PAIRS_TELLABLE ? fmax(more, 1) : NAN;
}

void stats_paired(const double *d, size_t n, size_t unresolved, int direction, double margin, double alpha,
		  struct paired *ret)
{
	double median = stats_middle(d, n), edge = log1p(margin) + LOG_ROUNDING;
	struct interval strict = sign_interval(d, n, unresolved, alpha);
	struct interval equivalence = sign_interval(d, n, unresolved, 2 * alpha);
	bool decided;

	*ret = (struct paired){
		.pairs = n,
		.unresolved = unresolved,
		.ratio = n ? fmin(exp(median), DBL_MAX) : NAN,
		.low = NAN,
		.high = NAN,
		.equivalence_low = NAN,
		.equivalence_high = NAN,
		.p = sign_p(d, n, unresolved, 0),
		.detectable = NAN,
		.pairs_needed = NAN,
		.confidence = 1 - alpha,
	};
	if (isnan(strict.low)) {
		ret->verdict = stats_sign_rank(n + unresolved, alpha) ? PAIRED_BELOW_RESOLUTION : PAIRED_TOO_FEW;
		return;
	}
	ret->low = fmin(exp(strict.low), DBL_MAX);
	ret->high = fmin(exp(strict.high), DBL_MAX);
	ret->equivalence_low = fmin(exp(equivalence.low), DBL_MAX);
	ret->equivalence_high = fmin(exp(equivalence.high), DBL_MAX);
	ret->detectable = fmin(expm1(DETECTABLE_HALF_WIDTHS * half_width(strict)), DBL_MAX);
	ret->verdict = judge(strict, equivalence, direction, edge);
	decided = ret->verdict == PAIRED_BETTER || ret->verdict == PAIRED_WORSE || ret->verdict == PAIRED_EQUIVALENT;
	ret->pairs_needed = decided ? 0 : pairs_needed((double)(n + unresolved), median, edge, strict, equivalence);
}

/* Pairs that were not resolved are taken to speak against the claim. Of pairs that all lie within the margin no way in
 * which the signs of equal sides could fall would make a claim, so that they are none of the family that is corrected
 * (Tarone 1990). */
double stats_claim_p(const double *d, size_t n, double margin, const struct paired *p)
{
	double edge = copysign(log1p(margin), log(p->ratio));
	bool within = true;

	for (size_t i = 0; i < n; i++)
		within &= fabs(d[i]) <= fabs(edge);
	if (within || p->verdict == PAIRED_TOO_FEW)
		return NAN;
	if (p->verdict != PAIRED_BETTER && p->verdict != PAIRED_WORSE)
		return 1;
	return sign_p(d, n, p->unresolved, edge);
}
