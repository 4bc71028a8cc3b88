#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "model/arm.h"
#include "model/metric.h"

static void the_references_eight_come_first_in_its_order(void **state)
{
	static const char *const names[] = {"prefill_tps", "decode_tps", "gpu_peak_mib", "gpu_peak_max_device_mib",
					    "host_anon_peak_mib", "load_s", "prefill_j_per_token",
					    "decode_j_per_token"};

	(void)state;
	for (size_t i = 0; i < metric_count; i++) {
		assert_true(metric_table[i].reference == (i < 8));
		if (i < 8)
			assert_string_equal(metric_table[i].name, names[i]);
		assert_true(metric_table[i].direction == (i < 2 ? 1 : -1));
		assert_non_null(metric_table[i].path);
	}
}

static void a_set_finds_each_of_many_names_and_adds_none_twice(void **state)
{
	struct metric_set s;
	char name[32];

	(void)state;
	assert_int_equal(metric_set_init(&s, NULL), 0);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < 5000; i++) {
			snprintf(name, sizeof name, "phase:%zu", i);
			assert_int_equal(metric_add(&s, &(struct metric_desc){.name = name, .unit = "s",
									       .title = name, .direction = -1}),
					 metric_count + i);
		}
	}
	assert_int_equal(s.count, metric_count + 5000);
	assert_int_equal(metric_find(&s, "phase:4711"), metric_count + 4711);
	assert_string_equal(s.items[metric_count + 4711].name, "phase:4711");
	assert_int_equal(metric_find(&s, "wall_s"), 8);
	assert_true(metric_find(&s, "phase:5000") == SIZE_MAX);
	assert_true(metric_find(&s, "") == SIZE_MAX);
	assert_string_equal(s.items[8].path, "wall_s");
	assert_null(s.items[metric_count].path);
	metric_set_release(&s);
	assert_true(metric_find(&s, "wall_s") == SIZE_MAX);
}

static void a_value_that_was_not_set_is_missing(void **state)
{
	struct arms arms;
	struct arm *arm;

	(void)state;
	arms_init(&arms);
	arm = arms_add(&arms);
	assert_non_null(arm);
	assert_true(isnan(arm_value(arm, 0)));
	assert_int_equal(arm_set(arm, 3, 0), 0);
	assert_int_equal(arm_set(arm, 100, 7), 0);
	assert_true(arm_value(arm, 3) == 0);
	assert_true(arm_value(arm, 100) == 7);
	assert_true(isnan(arm_value(arm, 2)) && isnan(arm_value(arm, 99)) && isnan(arm_value(arm, 1000000)));
	arms_drop_last(&arms);
	assert_int_equal(arms.count, 0);
	arms_release(&arms);
}

/* The expectations are those of Python 3.11: repr(x), format(x, ","), round(x, n). */
static void decimals_are_those_of_python(void **state)
{
	static const struct {
		double value;
		const char *shortest, *grouped;
	} rows[] = {
		{0, "0.0", "0.0"},
		{5, "5.0", "5.0"},
		{0.1, "0.1", "0.1"},
		{0.1 + 0.2, "0.30000000000000004", "0.30000000000000004"},
		{1234.5, "1234.5", "1,234.5"},
		{-1234567, "-1234567.0", "-1,234,567.0"},
		{-123, "-123.0", "-123.0"},
		{0.0001, "0.0001", "0.0001"},
		{0.00001, "1e-05", "1e-05"},
		{0, "0.0", "0.0"},
		{-0.0, "-0.0", "-0.0"},
		{1200, "1200.0", "1,200.0"},
		{999999999999999, "999999999999999.0", "999,999,999,999,999.0"},
		{1234567890.12345, "1234567890.12345", "1,234,567,890.12345"},
		{0.000123, "0.000123", "0.000123"},
		{1.5e-9, "1.5e-09", "1.5e-09"},
		{-2.25e-12, "-2.25e-12", "-2.25e-12"},
		{1e15, "1000000000000000.0", "1,000,000,000,000,000.0"},
		{1e16, "1e+16", "1e+16"},
		{1.7976931348623157e308, "1.7976931348623157e+308", "1.7976931348623157e+308"},
		{5e-324, "5e-324", "5e-324"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_string_equal(decimal_shortest(rows[i].value).text, rows[i].shortest);
		assert_string_equal(decimal_grouped(rows[i].value).text, rows[i].grouped);
	}
	assert_true(decimal_round(0.125, 2) == 0.12); /* a tie that is exact goes to the even digit */
	assert_true(decimal_round(0.375, 2) == 0.38);
	assert_true(decimal_round(2.675, 2) == 2.67); /* no tie: the double is a little less */
	assert_true(decimal_round(1.00005, 4) == 1.0001);
	assert_true(isnan(decimal_round(NAN, 4)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_references_eight_come_first_in_its_order),
		cmocka_unit_test(a_set_finds_each_of_many_names_and_adds_none_twice),
		cmocka_unit_test(a_value_that_was_not_set_is_missing),
		cmocka_unit_test(decimals_are_those_of_python),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
