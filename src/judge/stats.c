#include "judge/stats.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* stats_outliers: 1.4826 MAD estimates the standard deviation of a normal distribution, 1.2533 mean absolute deviations
 * do the same (Iglewicz and Hoaglin 1993, How to Detect and Handle Outliers). */
#define OUTLIER_DEVIATIONS 5
#define MAD_TO_DEVIATION 1.4826
#define MEAN_TO_DEVIATION 1.2533

/* stats_bimodal: by simulation, docs/statistics.md has the rates. */
#define BIMODAL_LEAST 12
#define CLUSTER_LEAST 4
#define CLUSTER_SHARE 10 /* of n: one tenth, rounded up */
#define GAP_WIDTH 13     /* over sqrt(n): standard deviations of the wider cluster */
#define GAP_STEPS 2.5    /* so many steps of a clock that counts in steps */

/* stats_drift: ranks are counted in n * n steps, so a longer series is looked at in this many places. */
#define DRIFT_LOOKED_AT 2000
#define NORMAL_995 2.5758293035489004

static int ascending(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

void stats_sort(double *values, size_t n)
{
	if (n)
		qsort(values, n, sizeof *values, ascending);
}

/* Doubles as integers in the same order, so that an interval of them can be halved: at most 64 times. */
static uint64_t key_of(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof bits);
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static double value_of(uint64_t key)
{
	uint64_t bits = key >> 63 ? key & ~(UINT64_C(1) << 63) : ~key;
	double x;

	memcpy(&x, &bits, sizeof x);
	return x;
}

/* What is ordered: the values themselves, or their distances from a centre. */
struct view {
	const double *values;
	size_t n;
	bool distances;
	double centre;
};

static double seen(const struct view *v, size_t i)
{
	return v->distances ? fabs(v->values[i] - v->centre) : v->values[i];
}

static double order_of(const struct view *v, size_t k)
{
	double least = DBL_MAX, most = -DBL_MAX;
	uint64_t low, high;

	if (!k || k > v->n)
		return NAN;
	for (size_t i = 0; i < v->n; i++) {
		least = fmin(least, seen(v, i));
		most = fmax(most, seen(v, i));
	}
	low = key_of(least);
	high = key_of(most);
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		double limit = value_of(middle);
		size_t within = 0;

		for (size_t i = 0; i < v->n; i++)
			within += seen(v, i) <= limit;
		if (within >= k)
			high = middle;
		else
			low = middle + 1;
	}
	return value_of(low) + 0.0; /* never -0 */
}

static double middle_of(const struct view *v)
{
	double upper = order_of(v, v->n / 2 + 1);

	return v->n % 2 ? upper : order_of(v, v->n / 2) / 2 + upper / 2;
}

double stats_order(const double *values, size_t n, size_t k)
{
	return order_of(&(struct view){.values = values, .n = n}, k);
}

double stats_middle(const double *values, size_t n)
{
	return n ? middle_of(&(struct view){.values = values, .n = n}) : NAN;
}

double stats_median(const double *sorted, size_t n)
{
	if (!n)
		return NAN;
	return n % 2 ? sorted[n / 2] : sorted[n / 2 - 1] / 2 + sorted[n / 2] / 2;
}

double stats_quantile(const double *sorted, size_t n, double q)
{
	double place, part, low, high;

	if (!n)
		return NAN;
	place = fmin(fmax(q, 0), 1) * (double)(n - 1);
	part = place - floor(place);
	low = sorted[(size_t)place];
	high = sorted[(size_t)ceil(place)];
	return fmin(fmax(low * (1 - part) + high * part, low), high);
}

/* Sums are long double: the squares of large values have room in it where double has none. */
double stats_mean(const double *values, size_t n)
{
	long double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return n ? (double)(sum / (long double)n) : NAN;
}

double stats_deviation(const double *values, size_t n)
{
	long double sum = 0, squares = 0, mean;

	if (n < 2)
		return NAN;
	for (size_t i = 0; i < n; i++)
		sum += values[i];
	mean = sum / (long double)n;
	for (size_t i = 0; i < n; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	return (double)fminl(sqrtl(squares / (long double)(n - 1)), DBL_MAX);
}

double stats_mad(const double *sorted, size_t n)
{
	return n ? middle_of(&(struct view){sorted, n, true, stats_median(sorted, n)}) : NAN;
}

size_t stats_outliers(const double *values, size_t n, bool *is_outlier)
{
	struct view far = {values, n, true, stats_middle(values, n)};
	double deviation;
	size_t count = 0;

	if (!n)
		return 0;
	deviation = MAD_TO_DEVIATION * middle_of(&far);
	if (deviation <= 0) { /* more than half of the values are equal */
		long double sum = 0;

		for (size_t i = 0; i < n; i++)
			sum += seen(&far, i);
		deviation = MEAN_TO_DEVIATION * (double)(sum / (long double)n);
	}
	for (size_t i = 0; i < n; i++) {
		is_outlier[i] = seen(&far, i) / OUTLIER_DEVIATIONS > deviation;
		count += is_outlier[i];
	}
	return count;
}

/* Sums over the values of one cluster, taken from the median so that their squares keep their digits. */
struct cluster {
	size_t n;
	long double sum, squares;
};

static void cluster_add(struct cluster *c, long double x)
{
	c->n++;
	c->sum += x;
	c->squares += x * x;
}

static long double cluster_variance(const struct cluster *c)
{
	return fmaxl(c->squares - c->sum * c->sum / (long double)c->n, 0) / (long double)(c->n - 1);
}

/* The step of a clock that counts in steps: the smallest difference there is. */
static double smallest_step(const double *sorted, size_t n)
{
	double step = INFINITY;

	for (size_t i = 1; i < n; i++)
		if (sorted[i] > sorted[i - 1])
			step = fmin(step, sorted[i] - sorted[i - 1]);
	return step;
}

bool stats_bimodal(const double *sorted, size_t n)
{
	size_t share = (n + CLUSTER_SHARE - 1) / CLUSTER_SHARE, least = share > CLUSTER_LEAST ? share : CLUSTER_LEAST;
	struct cluster all = {0}, left = {0};
	double centre, step;

	if (n < BIMODAL_LEAST)
		return false;
	centre = stats_median(sorted, n);
	step = smallest_step(sorted, n);
	for (size_t i = 0; i < n; i++)
		cluster_add(&all, (long double)sorted[i] - centre);
	for (size_t i = 1; i + least <= n; i++) {
		double gap = sorted[i] - sorted[i - 1];
		struct cluster right;
		long double wider;

		cluster_add(&left, (long double)sorted[i - 1] - centre);
		if (i < least || gap <= GAP_STEPS * step)
			continue;
		right = (struct cluster){n - i, all.sum - left.sum, all.squares - left.squares};
		wider = sqrtl(fmaxl(cluster_variance(&left), cluster_variance(&right)));
		if (gap > GAP_WIDTH / sqrtl((long double)n) * wider)
			return true;
	}
	return false;
}

/* Every stride-th value, from the first. */
struct strided {
	const double *values;
	size_t n, stride;
};

/* Twice the rank of the ith, from the mean of all ranks: those below it less those above it. Equal values share one. */
static double rank_of(const struct strided *s, size_t i)
{
	double x = s->values[i * s->stride], rank = 0;

	for (size_t j = 0; j < s->n; j++)
		rank += (s->values[j * s->stride] < x) - (s->values[j * s->stride] > x);
	return rank;
}

double stats_drift(const double *values, size_t n, bool *ret_beyond_chance)
{
	struct strided s = {values, n, n / DRIFT_LOOKED_AT + 1};
	double product = 0, ranks = 0, times = 0, rho, count;

	s.n = (n + s.stride - 1) / s.stride;
	count = (double)s.n;
	for (size_t i = 0; i < s.n; i++) {
		double rank = rank_of(&s, i), time = 2 * (double)i - (count - 1);

		product += rank * time;
		ranks += rank * rank;
		times += time * time;
	}
	rho = ranks > 0 ? product / sqrt(ranks * times) : 0;
	/* Variance 1 / (n - 1) by Hotelling and Pabst 1936; the factor takes the normal limit to the exact critical
	 * values of small n, from above. Up to 6 values it is above 1, and nothing is beyond it. */
	*ret_beyond_chance = fabs(rho) > NORMAL_995 / sqrt(count - 1) * (1 - 0.75 / count);
	return rho;
}
