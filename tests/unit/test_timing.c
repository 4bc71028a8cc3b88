#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "judge/timing.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct timing_options plain = {.div_by_number = true, .resolution_s = 1e-9, .confidence = 0.95};

static void close_to(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-12 * fmax(1e-300, fabs(expected))))
		fail_msg("%.17g is not %.17g", value, expected);
}

/* `count` batches of `number` executions that take these seconds. */
static struct timing of(const double *seconds, size_t count, uint64_t number, const struct timing_options *options)
{
	struct timing_batch batches[64];
	struct timing t;
	struct error err;

	assert_true(count <= COUNT(batches));
	for (size_t i = 0; i < count; i++)
		batches[i] = (struct timing_batch){number, seconds[i], NAN, NAN};
	if (timing_of(batches, count, options, &t, &err) < 0)
		fail_msg("%s", err.text);
	return t;
}

/* The figures that numpy gives for the reference's formulas. */
static void figures_are_those_of_the_reference(void **state)
{
	static const double seconds[] = {5e-3, 4e-3, 7e-3, 4.5e-3};
	struct timing t = of(seconds, COUNT(seconds), 50, &plain);

	(void)state;
	close_to(t.average, 0.0001025);
	close_to(t.deviation, 2.277608394786076e-05);
	close_to(t.min_exec, 8e-05);
	close_to(t.max_exec, 0.00014);
	close_to(t.ttime, 0.00041);
	assert_int_equal(t.repeat, 4);
	assert_int_equal(t.number, 50);
	assert_int_equal(t.batches, 4);
	close_to(t.median, 9.5e-05);
	close_to(t.p25, 8.75e-05);
	close_to(t.p95, 0.000134);
}

static void without_division_a_value_is_a_whole_batch(void **state)
{
	static const double seconds[] = {5e-3, 4e-3, 7e-3, 4.5e-3};
	struct timing_options options = plain;
	struct timing t;

	(void)state;
	options.div_by_number = false;
	options.overhead_s = 1e-5;
	t = of(seconds, COUNT(seconds), 50, &options);
	close_to(t.average, 5.125e-3 - 5e-4);
	close_to(t.ttime, 0.0205 - 4 * 5e-4);
	close_to(t.overhead, 1e-5);
}

static void by_time_figures_are_weighted_by_executions(void **state)
{
	static const struct timing_batch batches[] = {
		{1, 0.004, NAN, NAN}, {2, 0.004, NAN, NAN}, {100, 0.1, NAN, NAN}, {200, 0.22, NAN, NAN}};
	struct timing_options options = plain;
	struct timing t;

	(void)state;
	options.by_time = true;
	assert_int_equal(timing_of(batches, COUNT(batches), &options, &t, NULL), 0);
	close_to(t.average, 0.0010825082508250825);
	close_to(t.deviation, 0.00018999126025906607);
	close_to(t.min_exec, 0.001);
	close_to(t.max_exec, 0.004);
	close_to(t.ttime, 0.328);
	assert_int_equal(t.repeat, 1);
	assert_int_equal(t.number, 303);
	close_to(t.median, 0.0011);
	close_to(t.p25, 0.001);
	assert_true(isnan(t.low));
	assert_int_equal(t.warnings, 0);
}

static void the_interval_of_the_median_is_that_of_the_sign_test(void **state)
{
	static const double seconds[] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
	struct timing t = of(seconds, COUNT(seconds), 1, &plain);

	(void)state;
	close_to(t.low, 2);
	close_to(t.high, 9);
	close_to(t.confidence, 0.95);
	assert_false(t.warnings & TIMING_FEW);
	t = of(seconds, 5, 1, &plain);
	assert_true(isnan(t.low) && isnan(t.high));
	assert_true(t.warnings & TIMING_FEW);
}

static void no_time_is_below_nothing(void **state)
{
	static const double seconds[] = {1e-3, 2e-3, 1.5e-3};
	struct timing_options options = plain;
	struct timing t;

	(void)state;
	options.overhead_s = 1.5e-6;
	t = of(seconds, COUNT(seconds), 1000, &options);
	close_to(t.min_exec, 0);
	close_to(t.max_exec, 5e-7);
	assert_true(t.median >= 0 && t.average >= 0);
}

static void what_an_empty_loop_takes_is_called_removed(void **state)
{
	static const double seconds[] = {1.02e-3, 1.01e-3, 1.03e-3};
	struct timing_options options = plain;

	(void)state;
	options.overhead_s = 1e-6;
	assert_true(of(seconds, COUNT(seconds), 1000, &options).warnings & TIMING_NOTHING_LEFT);
	options.div_by_number = false;
	assert_true(of(seconds, COUNT(seconds), 1000, &options).warnings & TIMING_NOTHING_LEFT);
	options.overhead_s = 0.5e-6;
	assert_false(of(seconds, COUNT(seconds), 1000, &options).warnings & TIMING_NOTHING_LEFT);
}

static void short_batches_are_below_the_clocks_resolution(void **state)
{
	static const double seconds[] = {99e-9, 98e-9, 101e-9}, longer[] = {101e-9, 102e-9, 103e-9};
	struct timing_options alone = plain;

	(void)state;
	alone.alone = true;
	assert_true(of(seconds, 3, 1, &plain).warnings & TIMING_UNRESOLVED);
	assert_false(of(longer, 3, 1, &plain).warnings & TIMING_UNRESOLVED);
	assert_false(of(longer, 3, 2, &plain).warnings & TIMING_UNRESOLVED);
	assert_true(of(longer, 3, 2, &alone).warnings & TIMING_UNRESOLVED);
}

static void slow_first_batches_outliers_and_drift_are_told_apart(void **state)
{
	double seconds[20];

	(void)state;
	for (int i = 0; i < 20; i++)
		seconds[i] = 1 + 0.001 * (i * 7 % 10);
	assert_int_equal(of(seconds, 20, 1, &plain).warnings, 0);
	seconds[0] = 2;
	assert_int_equal(of(seconds, 20, 1, &plain).warnings, TIMING_FIRST_SLOW);
	seconds[7] = 2;
	assert_int_equal(of(seconds, 20, 1, &plain).warnings, TIMING_FIRST_SLOW | TIMING_OUTLIERS);
	seconds[0] = 1;
	assert_int_equal(of(seconds, 20, 1, &plain).warnings, TIMING_OUTLIERS);
	for (int i = 0; i < 20; i++)
		seconds[i] = 1 + 0.01 * i;
	assert_int_equal(of(seconds, 20, 1, &plain).warnings, TIMING_DRIFTS);
	for (int i = 0; i < 20; i++)
		seconds[i] = (i * 7 % 20 < 10 ? 1 : 2) + 0.001 * (i * 3 % 10);
	assert_true(of(seconds, 20, 1, &plain).warnings & TIMING_BIMODAL);
}

static void counters_are_per_execution_where_they_counted(void **state)
{
	static const struct timing_batch batches[] = {{10, 1, 100, NAN}, {10, 1, 300, NAN}, {10, 1, NAN, NAN}};
	struct timing t;

	(void)state;
	assert_int_equal(timing_of(batches, COUNT(batches), &plain, &t, NULL), 0);
	close_to(t.cycles, 10);
	assert_true(isnan(t.instructions));
}

static void a_deviation_survives_a_large_mean(void **state)
{
	static const double seconds[] = {1e6, 1e6 + 1e-3, 1e6 - 1e-3};
	struct timing t = of(seconds, COUNT(seconds), 1, &plain);

	(void)state;
	assert_true(fabs(t.deviation - 8.1649658e-4) < 1e-7);
}

static void what_is_no_timing_is_refused(void **state)
{
	struct timing_batch batch = {1, 1, NAN, NAN};
	struct timing_options options = plain;
	struct timing t, before;
	struct error err;

	(void)state;
	memset(&t, 7, sizeof t);
	before = t;
	assert_int_equal(timing_of(&batch, 0, &options, &t, &err), -1);
	assert_string_equal(err.text, "there is no batch to make figures of");
	batch.seconds = -1;
	assert_int_equal(timing_of(&batch, 1, &options, &t, &err), -1);
	assert_string_equal(err.text, "batch 1 took -1 s, which is no time");
	batch.seconds = NAN;
	assert_int_equal(timing_of(&batch, 1, &options, &t, &err), -1);
	batch = (struct timing_batch){0, 1, NAN, NAN};
	assert_int_equal(timing_of(&batch, 1, &options, &t, &err), -1);
	assert_string_equal(err.text, "batch 1 has no execution in it");
	batch.number = 1;
	options.by_time = true;
	options.div_by_number = false;
	assert_int_equal(timing_of(&batch, 1, &options, &t, &err), -1);
	assert_non_null(strstr(err.text, "div_by_number"));
	assert_memory_equal(&t, &before, sizeof t);
}

static void every_warning_has_a_sentence(void **state)
{
	(void)state;
	for (unsigned bit = 1; bit < TIMING_WARNINGS; bit <<= 1)
		assert_non_null(timing_warning_text((enum timing_warning)bit));
	assert_null(timing_warning_text(TIMING_WARNINGS));
}

/* What the reference does with a statement of 1 s: 1, 2, then as many as fill the rest. */
static void a_plan_by_time_grows_as_the_reference_does(void **state)
{
	static const uint64_t expected[] = {1, 2, 32, 64, 32, 0};
	struct timing_plan plan = {0};
	uint64_t number = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(expected); i++) {
		number = timing_plan_next(&plan, (double)number, 100);
		assert_int_equal(number, expected[i]);
	}
}

static void a_plan_ends_whatever_the_clock_says(void **state)
{
	struct timing_plan plan = {0};
	uint64_t last = 0;

	(void)state;
	for (int i = 0; i < 200; i++)
		last = timing_plan_next(&plan, 0, 1);
	assert_int_equal(last, UINT64_C(1) << 63);
	plan = (struct timing_plan){0};
	assert_int_equal(timing_plan_next(&plan, 0, NAN), 1);
	assert_int_equal(timing_plan_next(&plan, 1, NAN), 0);
	plan = (struct timing_plan){0};
	assert_int_equal(timing_plan_next(&plan, 0, 0), 1);
	assert_int_equal(timing_plan_next(&plan, 0, 0), 0);
}

static void a_slow_beginning_does_not_make_endless_short_batches(void **state)
{
	struct timing_plan plan = {0};
	uint64_t number = timing_plan_next(&plan, 0, 1.5);
	size_t batches = 1;

	(void)state;
	for (double seconds = 1; (number = timing_plan_next(&plan, seconds, 1.5)); batches++)
		seconds = (double)number * 1e-12;
	assert_true(batches > 128 && batches < TIMING_PLAN_BATCHES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_those_of_the_reference),
		cmocka_unit_test(without_division_a_value_is_a_whole_batch),
		cmocka_unit_test(by_time_figures_are_weighted_by_executions),
		cmocka_unit_test(the_interval_of_the_median_is_that_of_the_sign_test),
		cmocka_unit_test(no_time_is_below_nothing),
		cmocka_unit_test(what_an_empty_loop_takes_is_called_removed),
		cmocka_unit_test(short_batches_are_below_the_clocks_resolution),
		cmocka_unit_test(slow_first_batches_outliers_and_drift_are_told_apart),
		cmocka_unit_test(counters_are_per_execution_where_they_counted),
		cmocka_unit_test(a_deviation_survives_a_large_mean),
		cmocka_unit_test(what_is_no_timing_is_refused),
		cmocka_unit_test(every_warning_has_a_sentence),
		cmocka_unit_test(a_plan_by_time_grows_as_the_reference_does),
		cmocka_unit_test(a_plan_ends_whatever_the_clock_says),
		cmocka_unit_test(a_slow_beginning_does_not_make_endless_short_batches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
