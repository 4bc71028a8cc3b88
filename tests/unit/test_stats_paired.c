#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>

#include "judge/stats.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SLOWER_IS_WORSE (-1)

/* In the order of time; sorted, its 3rd and 10th of 12 are the ends at 95% (P(Bin(12, 1/2) < 3) = 0.0193). */
static const double TWELVE[] = {-0.012, 0.004, 0.021, 0.008, -0.003, 0.015,
				0.011,  0.002, 0.019, 0.006, 0.013,  -0.001};

static void assert_close(double got, double wanted)
{
	assert_true(fabs(got - wanted) <= 4e-15 * fmax(fabs(wanted), 1));
}

static enum paired_verdict verdict_of(const double *d, size_t n, int direction, double margin)
{
	struct paired p;

	stats_paired(d, n, 0, direction, margin, 0.05, &p);
	return p.verdict;
}

/* n values around a centre, as regular as values of a normal distribution can be: none is by chance. */
static void spread_out(double *d, size_t n, double centre, double deviation)
{
	for (size_t i = 0; i < n; i++) {
		double share = ((double)i + 0.5) / (double)n;

		d[i] = centre + deviation * 0.551 * log(share / (1 - share)); /* the logistic, nearly normal */
	}
}

static void the_interval_is_between_order_statistics_around_the_median(void **state)
{
	struct paired p;

	(void)state;
	stats_paired(TWELVE, COUNT(TWELVE), 0, SLOWER_IS_WORSE, 0.005, 0.05, &p);
	assert_int_equal(p.verdict, PAIRED_UNDECIDED);
	assert_int_equal(p.pairs, 12);
	assert_int_equal(p.unresolved, 0);
	assert_close(p.ratio, 1.0070245572668486); /* np.exp(np.median(d)) */
	assert_close(p.low, 0.9990004998333751);   /* np.exp(np.sort(d)[[2, 9]]) */
	assert_close(p.high, 1.015113064615719);
	assert_close(p.equivalence_low, 0.9990004998333751); /* at 90% the rank is 3, too */
	assert_close(p.p, 0.14599609375);                    /* scipy.stats.binomtest(3, 12).pvalue */
	assert_close(p.detectable, 0.011505687047629113);    /* np.expm1(1.43 * (0.015 - -0.001) / 2) */
	assert_close(p.confidence, 0.95);
	/* The median is 0.007, the edge ln 1.005: beyond it once 12 (0.008 / (0.007 - 0.0049875))^2 = 189.6 pairs are
	 * there. */
	assert_close(p.pairs_needed, 190 - 12);
}

static void fewer_pairs_than_give_an_interval_are_too_few(void **state)
{
	const double d[] = {1, 1, 1, 1, 1, 1, 1, 1};
	struct paired p;

	(void)state;
	for (size_t n = 0; n < 6; n++) {
		stats_paired(d, n, 0, SLOWER_IS_WORSE, 0.01, 0.05, &p);
		assert_int_equal(p.verdict, PAIRED_TOO_FEW);
		assert_true(isnan(p.low) && isnan(p.high) && isnan(p.equivalence_low) && isnan(p.equivalence_high));
		assert_true(isnan(p.detectable) && isnan(p.pairs_needed));
		assert_true(n ? fabs(p.ratio - exp(1)) < 1e-15 : isnan(p.ratio));
		assert_true(p.p > 0.05 && p.p <= 1);
	}
	assert_int_equal(verdict_of(d, 6, SLOWER_IS_WORSE, 0.01), PAIRED_WORSE);
	stats_paired(d, 7, 0, SLOWER_IS_WORSE, 0.01, 0.01, &p);
	assert_int_equal(p.verdict, PAIRED_TOO_FEW);
	stats_paired(d, 8, 0, SLOWER_IS_WORSE, 0.01, 0.01, &p);
	assert_int_equal(p.verdict, PAIRED_WORSE);
}

static void each_verdict_has_its_place_relative_to_the_margin(void **state)
{
	double d[20];

	(void)state;
	spread_out(d, 20, 0.05, 0.01);
	assert_int_equal(verdict_of(d, 20, SLOWER_IS_WORSE, 0.01), PAIRED_WORSE);
	assert_int_equal(verdict_of(d, 20, +1, 0.01), PAIRED_BETTER);
	spread_out(d, 20, -0.05, 0.01);
	assert_int_equal(verdict_of(d, 20, SLOWER_IS_WORSE, 0.01), PAIRED_BETTER);
	assert_int_equal(verdict_of(d, 20, +1, 0.01), PAIRED_WORSE);
	spread_out(d, 20, 0.001, 0.01);
	assert_int_equal(verdict_of(d, 20, SLOWER_IS_WORSE, 0.01), PAIRED_EQUIVALENT);
	spread_out(d, 20, 0.01, 0.01);
	assert_int_equal(verdict_of(d, 20, SLOWER_IS_WORSE, 0.01), PAIRED_SMALL);
	spread_out(d, 20, -0.01, 0.01);
	assert_int_equal(verdict_of(d, 20, SLOWER_IS_WORSE, 0.01), PAIRED_SMALL);
	spread_out(d, 20, 0.001, 0.05);
	assert_int_equal(verdict_of(d, 20, SLOWER_IS_WORSE, 0.01), PAIRED_UNDECIDED);
}

static void equivalence_is_judged_by_the_narrower_interval(void **state)
{
	/* The ends are the 1st and 8th at 95%, the 2nd and 7th at 90%. */
	const double d[] = {-0.02, -0.001, 0, 0, 0, 0, 0.001, 0.02};
	struct paired p;

	(void)state;
	stats_paired(d, COUNT(d), 0, SLOWER_IS_WORSE, 0.01, 0.05, &p);
	assert_int_equal(p.verdict, PAIRED_EQUIVALENT);
	assert_close(p.high, exp(0.02));
	assert_close(p.equivalence_high, exp(0.001));
	assert_close(p.pairs_needed, 0);
}

static void the_same_on_both_sides_is_equivalent_even_without_a_margin(void **state)
{
	const double d[6] = {0};
	struct paired p;

	(void)state;
	stats_paired(d, 6, 0, SLOWER_IS_WORSE, 0, 0.05, &p);
	assert_int_equal(p.verdict, PAIRED_EQUIVALENT);
	assert_close(p.ratio, 1);
	assert_close(p.low, 1);
	assert_close(p.high, 1);
	assert_close(p.p, 1);
	assert_close(p.detectable, 0);
}

static void a_step_of_the_clock_that_is_the_margin_is_not_beyond_it(void **state)
{
	double d[20];

	(void)state;
	for (size_t i = 0; i < COUNT(d); i++)
		d[i] = log(1.01) + DBL_EPSILON; /* as rounding may leave it */
	assert_int_equal(verdict_of(d, COUNT(d), SLOWER_IS_WORSE, 0.01), PAIRED_EQUIVALENT);
	assert_int_equal(verdict_of(d, COUNT(d), SLOWER_IS_WORSE, 0.0099), PAIRED_WORSE);
}

static void pairs_that_were_not_resolved_widen_the_interval_on_both_sides(void **state)
{
	double d[18];
	struct paired p;

	(void)state;
	for (size_t i = 0; i < COUNT(d); i++)
		d[i] = 0.01 * (double)(i + 1);
	stats_paired(d, 18, 2, SLOWER_IS_WORSE, 0.01, 0.05, &p); /* of 20 the rank is 6, two further out it is 4 */
	assert_close(p.low, exp(0.04));
	assert_close(p.high, exp(0.15));
	assert_int_equal(p.unresolved, 2);
	assert_close(p.p, 2 * stats_binomial_below(20, 3));
	stats_paired(d, 14, 6, SLOWER_IS_WORSE, 0.01, 0.05, &p);
	assert_int_equal(p.verdict, PAIRED_BELOW_RESOLUTION);
	assert_true(isnan(p.low) && isnan(p.pairs_needed));
	stats_paired(NULL, 0, 20, SLOWER_IS_WORSE, 0.01, 0.05, &p);
	assert_int_equal(p.verdict, PAIRED_BELOW_RESOLUTION);
	assert_true(isnan(p.ratio));
	assert_close(p.p, 1);
	stats_paired(NULL, 0, 3, SLOWER_IS_WORSE, 0.01, 0.05, &p);
	assert_int_equal(p.verdict, PAIRED_TOO_FEW);
}

static void the_pairs_that_are_said_to_be_needed_decide(void **state)
{
	static const double centres[] = {0, 0.004, -0.007, 0.014, -0.02};
	double d[2000];
	struct paired p;

	(void)state;
	for (size_t i = 0; i < COUNT(centres); i++) {
		spread_out(d, 20, centres[i], 0.04);
		stats_paired(d, 20, 0, SLOWER_IS_WORSE, 0.01, 0.05, &p);
		assert_true(p.verdict == PAIRED_UNDECIDED || p.verdict == PAIRED_SMALL);
		assert_true(p.pairs_needed >= 1 && p.pairs_needed < 1500);
		spread_out(d, 20 + (size_t)(1.2 * p.pairs_needed), centres[i], 0.04);
		stats_paired(d, 20 + (size_t)(1.2 * p.pairs_needed), 0, SLOWER_IS_WORSE, 0.01, 0.05, &p);
		assert_true(fabs(p.pairs_needed) <= 0);
	}
	/* Of 8 the interval is from the 1st to the 8th, the narrower one from the 2nd to the 7th. */
	stats_paired((const double[]){0, 0.01, 0.02, 0.03, 0.03, 0.04, 0.05, 0.06}, 8, 0, SLOWER_IS_WORSE, 0.01, 0.05,
		     &p);
	assert_close(p.pairs_needed, ceil(8 * pow(0.03 / (0.03 - log(1.01)), 2)) - 8);
	stats_paired((const double[]){-0.03, -0.02, -0.01, 0, 0, 0.01, 0.02, 0.03}, 8, 0, SLOWER_IS_WORSE, 0.01, 0.05,
		     &p);
	assert_close(p.pairs_needed, ceil(8 * pow(0.02 / log(1.01), 2)) - 8);
	/* From -0.02 to 0.002 around 0: the whole of it has to be inside, not only a half as wide as the mean one. */
	stats_paired((const double[]){-0.03, -0.02, -0.01, 0, 0, 0.001, 0.002, 0.003}, 8, 0, SLOWER_IS_WORSE, 0.01,
		     0.05, &p);
	assert_close(p.pairs_needed, ceil(8 * pow(0.02 / log(1.01), 2)) - 8);
	spread_out(d, 20, log(1.01), 0.04); /* on the edge itself no number of pairs decides */
	stats_paired(d, 20, 0, SLOWER_IS_WORSE, 0.01, 0.05, &p);
	assert_true(isnan(p.pairs_needed));
}

static void the_largest_ratios_stay_finite(void **state)
{
	double d[8];
	struct paired p;

	(void)state;
	for (size_t i = 0; i < COUNT(d); i++)
		d[i] = i % 2 ? 1454 : -1454; /* ln of the largest over the smallest double */
	stats_paired(d, COUNT(d), 0, SLOWER_IS_WORSE, 0.01, 0.05, &p);
	assert_int_equal(p.verdict, PAIRED_UNDECIDED);
	assert_close(p.ratio, 1);
	assert_true(p.low >= 0 && isfinite(p.high) && isfinite(p.equivalence_high) && isfinite(p.detectable));
	for (size_t i = 0; i < COUNT(d); i++)
		d[i] = 1454;
	stats_paired(d, COUNT(d), 0, SLOWER_IS_WORSE, 0.01, 0.05, &p);
	assert_int_equal(p.verdict, PAIRED_WORSE);
	assert_true(isfinite(p.ratio) && isfinite(p.low));
}

/* With no difference all patterns of signs are equally likely, so the share of them that claims one is the rate of
 * false alarms, exactly. */
static void of_all_patterns_of_signs_at_most_alpha_claim_a_difference(void **state)
{
	(void)state;
	for (size_t n = 6; n <= 14; n++) {
		size_t claims = 0;

		for (unsigned signs = 0; signs < 1u << n; signs++) {
			double d[14];
			struct paired p;

			for (size_t i = 0; i < n; i++)
				d[i] = (signs >> i & 1 ? 0.1 : -0.1) * (double)(i + 1);
			stats_paired(d, n, 0, SLOWER_IS_WORSE, 0.01, 0.05, &p);
			claims += p.low > 1 || p.high < 1;
			assert_int_equal(p.low > 1 || p.high < 1, p.p <= 0.05);
		}
		assert_close((double)claims / (double)(1u << n), 2 * stats_binomial_below(n, stats_sign_rank(n, 0.05)));
		assert_true((double)claims <= 0.05 * (double)(1u << n));
	}
}

static void the_preset_looks_together_keep_to_the_confidence_asked_for(void **state)
{
	double at_most = 0;

	(void)state;
	for (size_t i = 0; i < STATS_LOOKS; i++) {
		size_t n = stats_looks[i], rank = stats_sign_rank(n, 0.05 / STATS_LOOKS);

		assert_true(rank > 0);
		assert_true(i == 0 || n > stats_looks[i - 1]);
		assert_int_equal(n % 2, 0); /* whole blocks */
		at_most += 2 * stats_binomial_below(n, rank);
	}
	assert_true(at_most <= 0.05);
}

static void verdicts_have_names(void **state)
{
	(void)state;
	assert_string_equal(paired_verdict_name(PAIRED_TOO_FEW), "too few pairs");
	assert_string_equal(paired_verdict_name(PAIRED_BETTER), "better");
	assert_string_equal(paired_verdict_name(PAIRED_WORSE), "worse");
	assert_string_equal(paired_verdict_name(PAIRED_EQUIVALENT), "equivalent");
	assert_string_equal(paired_verdict_name(PAIRED_SMALL), "small");
	assert_string_equal(paired_verdict_name(PAIRED_UNDECIDED), "undecided");
	assert_string_equal(paired_verdict_name(PAIRED_BELOW_RESOLUTION), "below resolution");
}

static void pairs_that_were_not_resolved_speak_against_a_claim(void **state)
{
	double d[12];
	struct paired p;

	(void)state;
	for (int i = 0; i < 12; i++)
		d[i] = 0.1;
	stats_paired(d, 10, 2, -1, 0.01, 0.05, &p);
	assert_int_equal(p.verdict, PAIRED_WORSE);
	assert_true(fabs(stats_claim_p(d, 10, 0.01, &p) - 0.03857421875) < 1e-12); /* scipy.stats.binomtest(2, 12) */
	stats_paired(d, 12, 0, -1, 0.2, 0.05, &p);
	assert_true(isnan(stats_claim_p(d, 12, 0.2, &p)));
	for (int i = 0; i < 12; i++)
		d[i] = i % 2 ? 0.1 : -0.1;
	stats_paired(d, 12, 0, -1, 0.01, 0.05, &p);
	assert_true(stats_claim_p(d, 12, 0.01, &p) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_interval_is_between_order_statistics_around_the_median),
		cmocka_unit_test(fewer_pairs_than_give_an_interval_are_too_few),
		cmocka_unit_test(each_verdict_has_its_place_relative_to_the_margin),
		cmocka_unit_test(equivalence_is_judged_by_the_narrower_interval),
		cmocka_unit_test(the_same_on_both_sides_is_equivalent_even_without_a_margin),
		cmocka_unit_test(a_step_of_the_clock_that_is_the_margin_is_not_beyond_it),
		cmocka_unit_test(pairs_that_were_not_resolved_widen_the_interval_on_both_sides),
		cmocka_unit_test(the_pairs_that_are_said_to_be_needed_decide),
		cmocka_unit_test(the_largest_ratios_stay_finite),
		cmocka_unit_test(of_all_patterns_of_signs_at_most_alpha_claim_a_difference),
		cmocka_unit_test(the_preset_looks_together_keep_to_the_confidence_asked_for),
		cmocka_unit_test(verdicts_have_names),
		cmocka_unit_test(pairs_that_were_not_resolved_speak_against_a_claim),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
