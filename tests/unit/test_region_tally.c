#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/region_seek.h"
#include "model/region_spread.h"
#include "model/region_tally.h"
#include "model/regions.h"

#define PLENTY (INT64_C(1) << 40)

static uint64_t seed = 88172645463325252u;

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static int by_value(const void *a, const void *b)
{
	int64_t x, y;

	x = *(const int64_t *)a;
	y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Durations of many sizes: below 16, below a millisecond, and up to seconds. */
static int64_t *make(size_t count, unsigned most_bits)
{
	int64_t *values = calloc(count, sizeof *values);

	assert_non_null(values);
	for (size_t i = 0; i < count; i++)
		values[i] = (int64_t)(any() >> (64 - 1 - any() % most_bits));
	return values;
}

static void add(struct region_tally *t, const int64_t *durations, size_t count)
{
	int64_t *starts = calloc(count + 1, sizeof *starts), *ends = calloc(count + 1, sizeof *ends);

	assert_true(starts && ends);
	for (size_t i = 0; i < count; i++) {
		starts[i] = (int64_t)(any() >> 20);
		ends[i] = starts[i] + durations[i];
	}
	assert_int_equal(region_tally_add(t, starts, ends, count, NULL), 0);
	free(starts);
	free(ends);
}

/* Sorted durations, which say what every rank has to be. */
static void assert_ranks(struct region_tally *t, int64_t *durations, size_t count)
{
	const uint64_t at[] = {0, count / 3, count / 2, count - 1};
	int64_t found[4];

	qsort(durations, count, sizeof *durations, by_value);
	region_tally_select(t, at, 4, found);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(found[i], durations[at[i]]);
}

static void every_rank_is_exact_however_many_calls(void **state)
{
	static const size_t counts[] = {1, 2, 3, 31, 1000, 65536, 65537, 300000};

	(void)state;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct region_budget budget = {PLENTY};
		struct region_tally t;
		int64_t *durations = make(counts[i], 33);

		region_tally_init(&t, &budget);
		add(&t, durations, counts[i]);
		assert_int_equal(t.count, counts[i]);
		assert_true(region_tally_is_exact(&t));
		assert_ranks(&t, durations, counts[i]);
		region_tally_release(&t);
		assert_true(budget.left == PLENTY);
		free(durations);
	}
}

static void negative_durations_come_first(void **state)
{
	struct region_budget budget = {PLENTY};
	struct region_tally t;
	int64_t *durations = make(100000, 22);

	(void)state;
	for (size_t i = 0; i < 100000; i += 7)
		durations[i] = -durations[i] - 1;
	region_tally_init(&t, &budget);
	add(&t, durations, 100000);
	assert_int_equal(t.backwards, 14286);
	assert_ranks(&t, durations, 100000);
	region_tally_release(&t);
	free(durations);
}

static void tallies_of_workers_make_one(void **state)
{
	static const size_t sizes[][2] = {{10, 20}, {10, 90000}, {90000, 10}, {90000, 90000}, {0, 90000},
					  {60000, 60000}};

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct region_budget budget = {PLENTY};
		size_t first = sizes[i][0], all = sizes[i][0] + sizes[i][1];
		int64_t *durations = make(all, 30);
		struct region_tally a, b;

		region_tally_init(&a, &budget);
		region_tally_init(&b, &budget);
		add(&a, durations, first);
		add(&b, durations + first, all - first);
		assert_int_equal(region_tally_merge(&a, &b, NULL), 0);
		assert_int_equal(b.count, 0);
		assert_int_equal(a.count, all);
		assert_ranks(&a, durations, all);
		region_tally_release(&a);
		region_tally_release(&b);
		assert_true(budget.left == PLENTY);
		free(durations);
	}
}

static double m2_of(const int64_t *durations, size_t count)
{
	struct region_budget budget = {PLENTY};
	struct region_tally t;
	double m2;

	region_tally_init(&t, &budget);
	add(&t, durations, count);
	m2 = region_tally_m2(&t);
	region_tally_release(&t);
	return m2;
}

static void the_variance_loses_nothing_beside_a_large_mean(void **state)
{
	int64_t durations[30000];
	int64_t second = INT64_C(1000000000), hour = 3600 * second;

	(void)state;
	/* 0, 1, 2 over and over: squared differences from the mean 1 add up to two thirds of the count. */
	for (size_t i = 0; i < 30000; i++)
		durations[i] = (int64_t)(i % 3);
	assert_true(m2_of(durations, 30000) == 20000);
	for (size_t i = 0; i < 30000; i++)
		durations[i] = second + (int64_t)(i % 3);
	assert_true(m2_of(durations, 30000) == 20000);
	for (size_t i = 0; i < 30000; i++)
		durations[i] = 38 * hour + (int64_t)(i % 3);
	assert_true(m2_of(durations, 30000) == 20000);
	/* Half 0 and half 1: the mean is no whole number. */
	for (size_t i = 0; i < 30000; i++)
		durations[i] = second + (int64_t)(i % 2);
	assert_true(m2_of(durations, 30000) == 7500);
	for (size_t i = 0; i < 30000; i++)
		durations[i] = hour;
	assert_true(m2_of(durations, 30000) == 0);
	assert_true(m2_of(durations, 1) == 0);
}

static void times_that_no_clock_has_do_no_harm(void **state)
{
	static const int64_t starts[] = {INT64_MIN, INT64_MAX, 0, 0, INT64_MIN, 5};
	static const int64_t ends[] = {INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MIN, 4};
	const uint64_t at[] = {0, 1, 2, 3, 4, 5};
	struct region_budget budget = {PLENTY};
	struct region_tally t;
	int64_t found[6];

	(void)state;
	region_tally_init(&t, &budget);
	assert_int_equal(region_tally_add(&t, starts, ends, 6, NULL), 0);
	region_tally_select(&t, at, 6, found);
	assert_true(found[0] == INT64_MIN && found[1] == INT64_MIN && found[2] == -1);
	assert_true(found[3] == 0 && found[4] == INT64_MAX && found[5] == INT64_MAX);
	assert_true(t.min == INT64_MIN && t.max == INT64_MAX && t.backwards == 3);
	assert_true(isfinite(region_tally_m2(&t)) && region_tally_m2(&t) > 0);
	region_tally_release(&t);
}

static void coarse_buckets_follow_each_other(void **state)
{
	int64_t low, high, before = -1;

	(void)state;
	region_coarse_bounds(0, &low, &high);
	assert_true(low == INT64_MIN && high == -1);
	for (size_t i = 1; i < REGION_COARSE_BUCKETS; i++) {
		region_coarse_bounds(i, &low, &high);
		assert_true(low == before + 1 && high >= low);
		assert_int_equal(region_coarse_bucket(low), i);
		assert_int_equal(region_coarse_bucket(high), i);
		before = high;
	}
	assert_true(high == INT64_MAX);
}

/* Passes until the duration of a rank is found. */
static int64_t seek(const struct region_tally *t, const int64_t *durations, size_t count, uint64_t at)
{
	int64_t *zeros = calloc(count, sizeof *zeros), value;
	struct region_seek s;
	int passes = 0;

	assert_non_null(zeros);
	region_seek_init(&s, at, region_tally_interval(t, at));
	while (!s.found) {
		assert_true(region_seek_bytes(&s) > 0 && region_seek_bytes(&s) <= 32768 * sizeof(int64_t));
		assert_int_equal(region_seek_begin(&s, NULL), 0);
		region_seek_add(&s, zeros, durations, count);
		region_seek_end(&s);
		assert_true(++passes <= 6);
	}
	value = s.value;
	region_seek_release(&s);
	free(zeros);
	return value;
}

static void without_a_budget_every_rank_is_found_by_further_passes(void **state)
{
	static const unsigned bits[] = {3, 10, 22, 40, 63};

	(void)state;
	for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
		/* The second one runs out of its budget in the middle. */
		struct region_budget budgets[] = {{100}, {400000}};

		for (size_t k = 0; k < 2; k++) {
			size_t count = 200000;
			int64_t *durations = make(count, bits[i]), left = budgets[k].left;
			struct region_tally t;

			if (bits[i] == 63)
				for (size_t n = 0; n < count; n += 3)
					durations[n] = -durations[n];
			region_tally_init(&t, &budgets[k]);
			add(&t, durations, count);
			assert_true(!region_tally_is_exact(&t) || bits[i] < 22);
			assert_int_equal(region_tally_coarsen(&t, NULL), 0);
			assert_true(budgets[k].left == left);
			qsort(durations, count, sizeof *durations, by_value);
			for (size_t at = 0; at < count; at += count / 5)
				assert_int_equal(seek(&t, durations, count, at), durations[at]);
			assert_int_equal(seek(&t, durations, count, count - 1), durations[count - 1]);
			region_tally_release(&t);
			free(durations);
		}
	}
}

static void coarse_and_exact_tallies_make_a_coarse_one(void **state)
{
	int64_t *durations = make(200000, 30);

	(void)state;
	for (int order = 0; order < 2; order++) {
		struct region_budget none = {0}, plenty = {PLENTY};
		struct region_tally a, b;
		uint64_t all = 0;

		region_tally_init(&a, order ? &none : &plenty);
		region_tally_init(&b, order ? &plenty : &none);
		add(&a, durations, 100000);
		add(&b, durations + 100000, 100000);
		assert_int_equal(region_tally_merge(&a, &b, NULL), 0);
		assert_non_null(a.coarse);
		for (size_t i = 0; i < REGION_COARSE_BUCKETS; i++)
			all += a.coarse[i];
		assert_int_equal(all, 200000);
		region_tally_release(&a);
		region_tally_release(&b);
		assert_true(none.left == 0 && plenty.left == PLENTY);
	}
	free(durations);
}

static void orders_that_defeat_pivots_are_selected_too(void **state)
{
	int64_t *values = calloc(100000, sizeof *values);
	const uint64_t at[] = {49999, 50000, 99999};

	(void)state;
	assert_non_null(values);
	for (int order = 0; order < 4; order++) {
		for (int64_t i = 0; i < 100000; i++)
			values[i] = order == 0 || (order == 3 && i < 50000) ? i : order == 2 ? 7 : 99999 - i;
		region_select(values, 100000, at, 3);
		if (order < 2)
			assert_true(values[49999] == 49999 && values[50000] == 50000 && values[99999] == 99999);
		else if (order == 2)
			assert_true(values[50000] == 7);
		else
			assert_true(values[49999] == 24999 && values[50000] == 25000 && values[99999] == 49999);
	}
	free(values);
}

static void quantiles_interpolate_as_numpy_does(void **state)
{
	struct region_quantile q = region_quantile_of(0.5, 4);

	(void)state;
	assert_true(q.low == 1 && q.high == 2 && q.part == 0.5);
	assert_true(region_quantile_value(q, 10, 20) == 15);
	q = region_quantile_of(0.95, 1);
	assert_true(q.low == 0 && q.high == 0);
	/* numpy.percentile([1, 2, 3, 4, 10], 95) is 8.799999999999999 */
	q = region_quantile_of(0.95, 5);
	assert_true(fabs(region_quantile_value(q, 4, 10) - 8.8) < 1e-12);
}

static void a_histogram_tells_percentiles_within_a_sixteenth(void **state)
{
	struct region_spread *spread = calloc(1, sizeof *spread);
	uint64_t buckets[REGION_BUCKET_COUNT] = {0};
	int64_t *durations = make(50000, 30);

	(void)state;
	assert_non_null(spread);
	for (size_t i = 0; i < 50000; i++) {
		/* In units of 0.4 ns, as a fast time stamp counter has them. */
		uint64_t d = (uint64_t)((double)durations[i] / 0.4), low, high;
		unsigned bucket = 0;

		for (;; bucket++) {
			region_bucket_bounds(bucket, &low, &high);
			if (d < high)
				break;
		}
		buckets[bucket]++;
	}
	qsort(durations, 50000, sizeof *durations, by_value);
	region_spread_add_buckets(spread, buckets, 0.4, (double)durations[49999]);
	for (int i = 1; i < 100; i++) {
		double exact = (double)durations[i * 500];
		double about = region_spread_quantile(spread, i / 100.0, 0, (double)durations[49999]);

		assert_true(fabs(about - exact) <= exact / 16 + 1);
	}
	assert_true(isnan(region_spread_quantile(&(struct region_spread){{0}, 0}, 0.5, 0, 0)));
	free(durations);
	free(spread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rank_is_exact_however_many_calls),
		cmocka_unit_test(negative_durations_come_first),
		cmocka_unit_test(tallies_of_workers_make_one),
		cmocka_unit_test(the_variance_loses_nothing_beside_a_large_mean),
		cmocka_unit_test(times_that_no_clock_has_do_no_harm),
		cmocka_unit_test(coarse_buckets_follow_each_other),
		cmocka_unit_test(without_a_budget_every_rank_is_found_by_further_passes),
		cmocka_unit_test(coarse_and_exact_tallies_make_a_coarse_one),
		cmocka_unit_test(orders_that_defeat_pivots_are_selected_too),
		cmocka_unit_test(quantiles_interpolate_as_numpy_does),
		cmocka_unit_test(a_histogram_tells_percentiles_within_a_sixteenth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
