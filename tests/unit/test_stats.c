#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "judge/stats.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Figures below were worked out with Python 3.11, numpy 1.24 and scipy 1.10; the command stands beside them. */
static const double SEVEN[] = {9.1, 3.2, 4.7, 1.5, 2.9, 8.8, 5.0};

static void assert_close(double got, double wanted)
{
	assert_true(fabs(got - wanted) <= 4e-15 * fmax(fabs(wanted), 1));
}

/* The same series in every run: splitmix64. */
static double uniform(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state)
{
	double radius = sqrt(-2 * log(uniform(state)));

	return radius * cos(2 * M_PI * uniform(state));
}

static void figures_of_a_sample_are_those_of_numpy(void **state)
{
	double x[COUNT(SEVEN)];

	(void)state;
	memcpy(x, SEVEN, sizeof x);
	assert_close(stats_mean(x, 7), 5.028571428571429);       /* np.mean(x) */
	assert_close(stats_deviation(x, 7), 2.9221648856708304); /* np.std(x, ddof=1) */
	stats_sort(x, 7);
	assert_close(stats_median(x, 7), 4.7);
	assert_close(stats_median(x, 6), 3.95);
	assert_close(stats_quantile(x, 7, 0), 1.5); /* np.quantile(x, q) */
	assert_close(stats_quantile(x, 7, 0.05), 1.92);
	assert_close(stats_quantile(x, 7, 0.25), 3.05);
	assert_close(stats_quantile(x, 7, 0.9), 8.92);
	assert_close(stats_quantile(x, 7, 1), 9.1);
	assert_close(stats_mad(x, 7), 1.8); /* scipy.stats.median_abs_deviation(x) */
}

static void an_empty_sample_has_no_figures_and_one_value_no_deviation(void **state)
{
	const double one = 3;

	(void)state;
	assert_true(isnan(stats_median(NULL, 0)) && isnan(stats_quantile(NULL, 0, 0.5)) && isnan(stats_mean(NULL, 0)));
	assert_true(isnan(stats_mad(NULL, 0)) && isnan(stats_middle(NULL, 0)) && isnan(stats_order(NULL, 0, 1)));
	assert_true(isnan(stats_deviation(&one, 1)));
	assert_close(stats_mad(&one, 1), 0);
	assert_close(stats_quantile(&one, 1, 0.3), 3);
}

static void the_largest_numbers_stay_finite(void **state)
{
	const double huge[] = {-DBL_MAX, -DBL_MAX, DBL_MAX, DBL_MAX};
	bool flags[4], beyond;

	(void)state;
	assert_close(stats_median(huge, 4), 0);
	assert_true(stats_median(huge + 2, 2) >= DBL_MAX && isfinite(stats_median(huge + 2, 2)));
	assert_close(stats_mean(huge, 4), 0);
	assert_true(isfinite(stats_deviation(huge, 4)));
	assert_true(isfinite(stats_mad(huge, 4)));
	assert_true(isfinite(stats_quantile(huge, 4, 0.4)));
	assert_int_equal(stats_outliers(huge, 4, flags), 0);
	assert_true(isfinite(stats_drift(huge, 4, &beyond)));
}

static void order_statistics_of_any_order_are_those_of_the_sorted(void **state)
{
	uint64_t seed = 1;
	double x[101], sorted[101];

	(void)state;
	for (size_t n = 1; n <= COUNT(x); n++) {
		for (size_t i = 0; i < n; i++) /* coarse, so that many are equal; of both signs; and far apart */
			x[i] = n % 3 ? round(4 * normal(&seed)) : exp(100 * normal(&seed));
		memcpy(sorted, x, n * sizeof *x);
		stats_sort(sorted, n);
		for (size_t k = 1; k <= n; k++)
			assert_true(stats_order(x, n, k) >= sorted[k - 1] && stats_order(x, n, k) <= sorted[k - 1]);
		assert_true(isnan(stats_order(x, n, 0)) && isnan(stats_order(x, n, n + 1)));
		assert_true(stats_middle(x, n) >= stats_median(sorted, n));
		assert_true(stats_middle(x, n) <= stats_median(sorted, n));
	}
	assert_false(signbit(stats_order((const double[]){-0.0, -0.0}, 2, 1)));
}

/* float(Fraction(sum(math.comb(n, i) for i in range(k)), 2**n)) */
static void binomial_tails_are_exact(void **state)
{
	static const struct {
		size_t n, k;
		double p;
	} known[] = {
		{5, 1, 0.03125},
		{6, 1, 0.015625},
		{20, 6, 0.020694732666015625},
		{60, 22, 0.013670066934038968},
		{100, 40, 0.017600100108852407},
		{1000, 469, 0.023145598680249076},
		{10000, 4901, 0.023292763852473693},
		{10000, 4700, 9.175924536866552e-10},
		{10000, 5200, 0.9999670324220067},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(known); i++)
		assert_true(fabs(stats_binomial_below(known[i].n, known[i].k) / known[i].p - 1) <= 2 * DBL_EPSILON);
	assert_true(stats_binomial_below(10, 0) <= 0);
	assert_true(stats_binomial_below(10, 11) >= 1);
	assert_true(stats_binomial_below(0, 1) >= 1);
	assert_true(stats_binomial_below(10000, 1) >= 0); /* below the smallest double */
	for (size_t k = 0; k <= 10001; k++) {
		double below = stats_binomial_below(10000, k), above = stats_binomial_below(10000, 10001 - k);

		assert_close(below + above, 1);
		assert_true(k == 0 || below >= stats_binomial_below(10000, k - 1));
	}
}

static void the_rank_of_the_sign_interval_is_the_largest_that_is_confident(void **state)
{
	static const struct {
		size_t n, at_95, at_90, at_99;
	} known[] = {
		{0, 0, 0, 0},     {5, 0, 1, 0},     {6, 1, 1, 0},     {7, 1, 1, 0},       {8, 1, 2, 1},
		{9, 2, 2, 1},     {14, 3, 4, 2},    {20, 6, 6, 4},    {24, 7, 8, 6},      {38, 13, 14, 11},
		{60, 22, 24, 20}, {100, 40, 42, 37}, {1000, 469, 474, 459},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(known); i++) {
		assert_int_equal(stats_sign_rank(known[i].n, 0.05), known[i].at_95);
		assert_int_equal(stats_sign_rank(known[i].n, 0.1), known[i].at_90);
		assert_int_equal(stats_sign_rank(known[i].n, 0.01), known[i].at_99);
	}
	/* A level that is met exactly counts, one that is no level never does, and no rank is beyond the middle. */
	assert_int_equal(stats_sign_rank(6, 0x1p-5), 1);
	assert_int_equal(stats_sign_rank(6, nextafter(0x1p-5, 0)), 0);
	assert_int_equal(stats_sign_rank(50, NAN), 0);
	assert_int_equal(stats_sign_rank(50, -1), 0);
	assert_int_equal(stats_sign_rank(7, 5), 4);
	assert_int_equal(stats_sign_rank(8, 5), 4);
	assert_int_equal(stats_least_pairs(0.05), 6);
	assert_int_equal(stats_least_pairs(0.01), 8);
	assert_int_equal(stats_least_pairs(0.01 / STATS_LOOKS), 10);
	assert_true(stats_least_pairs(0) == SIZE_MAX);
}

static void the_sign_test_is_that_of_scipy_and_ties_speak_against_rejection(void **state)
{
	const double x[] = {-3, -2, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9}, tied[] = {0, 0, 0, 1, 2, 3, 4, 5, 6, 7};
	const double equal[] = {4, 4, 4, 4, 4, 4, 4};

	(void)state;
	assert_close(stats_sign_p(x, 12, 0), 0.14599609375); /* scipy.stats.binomtest(3, 12).pvalue */
	assert_close(stats_sign_p(x, 12, -10), 2 * 0x1p-12);
	assert_close(stats_sign_p(x, 12, 10), 2 * 0x1p-12);
	assert_close(stats_sign_p(tied, 10, 0), 0.109375); /* three ties: as if two were below; binomtest(2, 10) */
	assert_close(stats_sign_p(equal, 7, 4), 1);
	assert_close(stats_sign_p(NULL, 0, 0), 1);
}

/* By hand: 0.04 is 4 times the smallest; 0.06 is 3 times 0.02, and holds for those above it. */
static void holm_never_adjusts_a_larger_p_to_a_smaller_one(void **state)
{
	const double p[] = {0.03, 0.01, 0.04, 0.02}, with_none[] = {NAN, 0.01, NAN, 0.5}, same[] = {0.02, 0.02, 0.9};
	double adjusted[4];

	(void)state;
	assert_int_equal(stats_holm(p, 4, adjusted), 0);
	assert_close(adjusted[0], 0.06);
	assert_close(adjusted[1], 0.04);
	assert_close(adjusted[2], 0.06);
	assert_close(adjusted[3], 0.06);
	assert_int_equal(stats_holm(with_none, 4, adjusted), 0);
	assert_true(isnan(adjusted[0]) && isnan(adjusted[2]));
	assert_close(adjusted[1], 0.02);
	assert_close(adjusted[3], 0.5);
	assert_int_equal(stats_holm(same, 3, adjusted), 0);
	assert_close(adjusted[0], 0.06);
	assert_close(adjusted[1], 0.06);
	assert_close(adjusted[2], 0.9);
	assert_int_equal(stats_holm((const double[]){0.6, 0.7}, 2, adjusted), 0);
	assert_close(adjusted[0], 1);
	assert_close(adjusted[1], 1);
}

static void outliers_are_flagged_where_they_stand(void **state)
{
	const double x[] = {1.02, 0.99, 9, 1.01, 1.0, 0.98, 1.03}, equal[] = {2, 2, 2, 2};
	const double rounded[] = {10, 10, 11, 10, 11, 10, 10, 11}, mostly_equal[] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7.5};
	bool flags[10];

	(void)state;
	assert_int_equal(stats_outliers(x, COUNT(x), flags), 1);
	for (size_t i = 0; i < COUNT(x); i++)
		assert_int_equal(flags[i], i == 2);
	assert_int_equal(stats_outliers(equal, COUNT(equal), flags), 0);
	assert_int_equal(stats_outliers(rounded, COUNT(rounded), flags), 0);
	assert_int_equal(stats_outliers(mostly_equal, COUNT(mostly_equal), flags), 1);
	assert_true(flags[9]);
	assert_int_equal(stats_outliers(NULL, 0, flags), 0);
}

/* The share, in percent, of 2,000 samples that are called bimodal. */
static double called_bimodal(size_t n, double (*draw)(uint64_t *seed))
{
	uint64_t seed = n;
	double x[100];
	size_t called = 0;

	for (size_t trial = 0; trial < 2000; trial++) {
		for (size_t i = 0; i < n; i++)
			x[i] = draw(&seed);
		stats_sort(x, n);
		called += stats_bimodal(x, n);
	}
	return (double)called / 20;
}

static double lognormal(uint64_t *seed)
{
	return exp(normal(seed));
}

static double exponential(uint64_t *seed)
{
	return -log(uniform(seed));
}

static double cauchy(uint64_t *seed)
{
	return tan(M_PI * (uniform(seed) - 0.5));
}

static double on_two_steps_of_a_clock(uint64_t *seed)
{
	return round(0.5 + 0.4 * normal(seed));
}

static double two_modes(uint64_t *seed)
{
	return normal(seed) + (uniform(seed) < 0.4 ? 10 : 0);
}

static void noise_of_one_mode_is_called_bimodal_in_under_2_percent(void **state)
{
	static double (*const draws[])(uint64_t *) = {normal, uniform, lognormal, exponential, cauchy,
						      on_two_steps_of_a_clock};
	static const size_t sizes[] = {12, 30, 100};

	(void)state;
	for (size_t i = 0; i < COUNT(draws); i++)
		for (size_t j = 0; j < COUNT(sizes); j++)
			assert_true(called_bimodal(sizes[j], draws[i]) < 2);
}

static void two_modes_apart_are_called_bimodal(void **state)
{
	const double eleven[] = {1, 1.01, 1.02, 1.03, 1.04, 2, 2.01, 2.02, 2.03, 2.04, 2.05};
	const double steps[] = {10, 10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 11};

	(void)state;
	assert_true(called_bimodal(12, two_modes) > 70);
	assert_true(called_bimodal(30, two_modes) > 97);
	assert_true(called_bimodal(100, two_modes) > 99);
	assert_false(stats_bimodal(eleven, COUNT(eleven)));
	assert_false(stats_bimodal(steps, COUNT(steps))); /* the clock may know no other values */
}

static void drift_is_the_rank_correlation_with_time(void **state)
{
	const double x[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, equal[] = {4, 4, 4, 4, 4, 4, 4, 4};
	double steady[5000];
	bool beyond;

	(void)state;
	assert_close(stats_drift(x, COUNT(x), &beyond), 0.5265313520914635); /* scipy.stats.spearmanr(range(12), x) */
	assert_false(beyond); /* its p is 0.079 */
	assert_close(stats_drift(equal, COUNT(equal), &beyond), 0);
	assert_false(beyond);
	assert_close(stats_drift(NULL, 0, &beyond), 0);
	assert_false(beyond);
	for (size_t i = 0; i < COUNT(steady); i++)
		steady[i] = -(double)i;
	assert_close(stats_drift(steady, COUNT(steady), &beyond), -1);
	assert_true(beyond);
	assert_close(stats_drift(steady, 7, &beyond), -1);
	assert_true(beyond);
	stats_drift(steady, 6, &beyond); /* by chance in 2 of 720 orders, but the limit is that of larger samples */
	assert_false(beyond);
}

/* Heap's algorithm, from Sedgewick 1977: every order of n values once. */
static size_t orders_beyond_chance(double *x, size_t n, size_t *orders)
{
	size_t at[16] = {0}, found = 0, i = 1;
	bool beyond;

	stats_drift(x, n, &beyond);
	found += beyond;
	*orders = 1;
	while (i < n) {
		if (at[i] < i) {
			size_t other = i % 2 ? at[i] : 0;
			double kept = x[other];

			x[other] = x[i];
			x[i] = kept;
			stats_drift(x, n, &beyond);
			found += beyond;
			++*orders;
			at[i]++;
			i = 1;
		} else {
			at[i++] = 0;
		}
	}
	return found;
}

static void drift_is_beyond_chance_in_at_most_1_percent_of_all_orders(void **state)
{
	(void)state;
	for (size_t n = 2; n <= 8; n++) {
		double x[] = {1, 2, 3, 4, 5, 6, 7, 8};
		size_t orders, found = orders_beyond_chance(x, n, &orders);

		assert_true(100 * found <= orders);
		assert_true(n < 7 || found > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_of_a_sample_are_those_of_numpy),
		cmocka_unit_test(an_empty_sample_has_no_figures_and_one_value_no_deviation),
		cmocka_unit_test(the_largest_numbers_stay_finite),
		cmocka_unit_test(order_statistics_of_any_order_are_those_of_the_sorted),
		cmocka_unit_test(binomial_tails_are_exact),
		cmocka_unit_test(the_rank_of_the_sign_interval_is_the_largest_that_is_confident),
		cmocka_unit_test(the_sign_test_is_that_of_scipy_and_ties_speak_against_rejection),
		cmocka_unit_test(holm_never_adjusts_a_larger_p_to_a_smaller_one),
		cmocka_unit_test(outliers_are_flagged_where_they_stand),
		cmocka_unit_test(noise_of_one_mode_is_called_bimodal_in_under_2_percent),
		cmocka_unit_test(two_modes_apart_are_called_bimodal),
		cmocka_unit_test(drift_is_the_rank_correlation_with_time),
		cmocka_unit_test(drift_is_beyond_chance_in_at_most_1_percent_of_all_orders),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
