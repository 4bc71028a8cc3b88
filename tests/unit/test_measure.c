#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <assay.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "descriptors.h"
#include "judge/timing.h"

static const struct assay_measure_options few = {.repeat = 8, .number = 2000, .warmup = 1, .div_by_number = 1};

/* Counts its calls, and those of what goes before them. */
struct calls {
	unsigned made, prepared, unprepared;
};

static void call(void *context)
{
	struct calls *c = context;

	c->made++;
	c->unprepared += c->made > c->prepared;
}

static void prepare(void *context)
{
	((struct calls *)context)->prepared++;
}

static void nothing(void *context)
{
	(void)context;
}

/* Works for so many nanoseconds by the clock. */
static void busy(void *ns)
{
	struct timespec now;
	int64_t until = 0;

	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		until = until ? until : now.tv_sec * INT64_C(1000000000) + now.tv_nsec + *(const int64_t *)ns;
	} while (now.tv_sec * INT64_C(1000000000) + now.tv_nsec < until);
}

static void a_function_is_called_as_often_as_asked(void **state)
{
	struct assay_measure_options options = {.repeat = 3, .number = 7, .warmup = 2, .div_by_number = 1,
						.context_size = sizeof(struct calls)};
	struct calls calls = {0};
	struct assay_timing t;

	(void)state;
	assert_int_equal(assay_measure_time(call, &calls, &options, &t), 0);
	assert_int_equal(calls.made, 3 * 7 + 2);
	assert_int_equal(t.repeat, 3);
	assert_int_equal(t.number, 7);
	assert_int_equal(t.context_size, sizeof(struct calls));
	assert_true(t.warmup_time > 0);
	options.warmup = 0;
	assert_int_equal(assay_measure_time(call, &calls, &options, &t), 0);
	assert_true(t.warmup_time == 0);
	calls = (struct calls){0};
	assert_int_equal(assay_measure_time(call, &calls, NULL, &t), 0);
	assert_int_equal(calls.made, 10 * 50 + 1);
}

/* A busy loop of a known length: nothing disturbs its minimum for long, and it is never shorter. */
static void times_are_those_of_the_clock(void **state)
{
	struct assay_measure_options options = {.repeat = 10, .number = 3, .div_by_number = 1};
	int64_t ns = 100000;
	struct assay_timing t;

	(void)state;
	assert_int_equal(assay_measure_time(busy, &ns, &options, &t), 0);
	assert_true(t.min_exec >= 99.8e-6 && t.min_exec <= t.median && t.median <= t.max_exec);
	assert_true(t.low >= t.min_exec && t.high <= t.max_exec);
	assert_true(fabs(t.ttime - 10 * t.average) < 1e-9);
	options.div_by_number = 0;
	assert_int_equal(assay_measure_time(busy, &ns, &options, &t), 0);
	assert_true(t.min_exec >= 299.4e-6);
}

static void an_empty_function_has_nothing_left_and_says_so(void **state)
{
	struct assay_timing t;

	(void)state;
	assert_int_equal(assay_measure_time(nothing, NULL, &few, &t), 0);
	assert_true(t.min_exec >= 0 && t.overhead > 0 && t.resolution > 0);
	/* Less than half of what was subtracted is left, and the warning comes below a fifth. */
	assert_true(t.min_exec < t.overhead / 2);
	if (t.median < t.overhead / 5)
		assert_true(t.warnings & TIMING_NOTHING_LEFT);
}

static void each_goes_before_every_execution_and_is_not_timed(void **state)
{
	struct assay_measure_options options = {.repeat = 3, .number = 7, .warmup = 2, .div_by_number = 1,
						.each = prepare};
	struct calls calls = {0};
	int64_t ns = 200000;
	struct assay_timing t;

	(void)state;
	assert_int_equal(assay_measure_time(call, &calls, &options, &t), 0);
	assert_int_equal(calls.made, 3 * 7 + 2);
	assert_int_equal(calls.prepared, calls.made);
	assert_int_equal(calls.unprepared, 0);
	assert_true(isnan(t.cycles));
	options.each = busy;
	assert_int_equal(assay_measure_time(nothing, &ns, &options, &t), 0);
	assert_true(t.min_exec < 100e-6);
	assert_true(t.warnings & TIMING_UNRESOLVED);
}

static void max_time_is_filled_with_growing_batches(void **state)
{
	struct assay_measure_options options = {.div_by_number = 1, .max_time = 0.02};
	int64_t ns = 20000;
	struct assay_timing t;

	(void)state;
	assert_int_equal(assay_measure_time(busy, &ns, &options, &t), 0);
	assert_int_equal(t.repeat, 1);
	assert_true(t.ttime >= 0.0199 && t.number >= 3);
	assert_true(fabs(t.average - t.ttime / (double)t.number) < 1e-12);
	assert_true(isnan(t.low) && !(t.warnings & TIMING_FEW));
}

static void options_that_make_no_sense_are_named(void **state)
{
	struct assay_measure_options options = ASSAY_MEASURE_DEFAULTS;
	struct assay_timing t, before;

	(void)state;
	memset(&t, 7, sizeof t);
	before = t;
	assert_int_equal(assay_measure_time(NULL, NULL, NULL, &t), -1);
	assert_int_equal(assay_measure_time(nothing, NULL, NULL, NULL), -1);
	options.repeat = 0;
	assert_int_equal(assay_measure_time(nothing, NULL, &options, &t), -1);
	assert_string_equal(assay_last_error(), "assay_measure: repeat is 0; there are 1 to 1,000,000 batches");
	options.repeat = UINT64_MAX;
	assert_int_equal(assay_measure_time(nothing, NULL, &options, &t), -1);
	options.repeat = 1;
	options.number = 0;
	assert_int_equal(assay_measure_time(nothing, NULL, &options, &t), -1);
	assert_string_equal(assay_last_error(), "assay_measure: number is 0; a batch has 1 execution at least");
	options.max_time = 1;
	options.div_by_number = 0;
	assert_int_equal(assay_measure_time(nothing, NULL, &options, &t), -1);
	assert_string_equal(assay_last_error(), "assay_measure: div_by_number has to be set where max_time is");
	options.max_time = NAN;
	assert_int_equal(assay_measure_time(nothing, NULL, &options, &t), -1);
	options.max_time = -1;
	assert_int_equal(assay_measure_time(nothing, NULL, &options, &t), -1);
	options.max_time = INFINITY;
	assert_int_equal(assay_measure_time(nothing, NULL, &options, &t), -1);
	assert_memory_equal(&t, &before, sizeof t);
}

static void change_errno(void *context)
{
	(void)context;
	errno = EIO;
}

static void it_leaves_errno_and_the_descriptors_as_they_were(void **state)
{
	size_t descriptors = open_descriptors();
	struct assay_measure_options bad = {0};
	struct assay_timing t;

	(void)state;
	for (int i = 0; i < 3; i++) {
		errno = ENOTTY;
		assert_int_equal(assay_measure_time(change_errno, NULL, &few, &t), 0);
		assert_int_equal(errno, ENOTTY);
		assert_int_equal(assay_measure_time(change_errno, NULL, &bad, &t), -1);
		ASSAY_MEASURE(&t, &few) {
			ASSAY_CLOBBER();
		}
		assert_int_equal(errno, ENOTTY);
		ASSAY_MEASURE(&t, &bad) {
			ASSAY_CLOBBER();
		}
	}
	assert_int_equal(open_descriptors(), descriptors);
}

static void *measure_in_thread(void *unused)
{
	static char wrong[] = "a time that cannot be";
	int64_t ns = 5000;
	struct assay_timing t;

	(void)unused;
	for (int i = 0; i < 5; i++)
		if (assay_measure_time(busy, &ns, NULL, &t) < 0 || t.min_exec < 4.8e-6)
			return wrong;
	return NULL;
}

static void threads_measure_at_the_same_time(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, measure_in_thread, NULL), 0);
	for (int i = 0; i < 4; i++) {
		void *wrong;

		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

static void a_block_is_executed_as_often_as_asked(void **state)
{
	struct assay_measure_options options = {.repeat = 3, .number = 7, .warmup = 2, .div_by_number = 1};
	unsigned made = 0, whole = 0;
	struct assay_timing t;

	(void)state;
	ASSAY_MEASURE(&t, &options) {
		made++;
		if (made % 2)
			continue;
		whole++;
	}
	assert_int_equal(made, 3 * 7 + 2);
	assert_int_equal(whole, made / 2);
	assert_int_equal(t.repeat, 3);
	assert_int_equal(t.number, 7);
	assert_true(t.average > 0 || t.warnings & TIMING_NOTHING_LEFT);
	assert_true(t.warmup_time > 0);
}

static void a_block_that_is_left_keeps_its_complete_batches(void **state)
{
	struct assay_measure_options options = {.repeat = 5, .number = 10, .div_by_number = 1};
	unsigned made = 0;
	struct assay_timing t;

	(void)state;
	ASSAY_MEASURE(&t, &options)
		if (++made == 25)
			break;
	assert_int_equal(made, 25);
	assert_int_equal(t.repeat, 2);
	made = 0;
	ASSAY_MEASURE(&t, &options) {
		if (++made == 10) /* in its last execution */
			break;
	}
	assert_int_equal(t.repeat, 0);
	assert_string_equal(assay_last_error(),
			    "assay_measure: the block was left before its first batch was complete");
}

static int leave_by_return(struct assay_timing *t)
{
	struct assay_measure_options options = {.repeat = 5, .number = 10, .warmup = 1, .div_by_number = 1};
	int made = 0;

	ASSAY_MEASURE(t, &options) {
		if (++made == 35)
			return made;
	}
	return 0;
}

static void a_return_ends_the_measurement(void **state)
{
	struct assay_timing t;

	(void)state;
	assert_int_equal(leave_by_return(&t), 35);
	assert_int_equal(t.repeat, 3);
}

static void blocks_nest(void **state)
{
	struct assay_measure_options options = {.repeat = 2, .number = 3, .div_by_number = 1};
	struct assay_timing outer, inner;
	unsigned made = 0;

	(void)state;
	ASSAY_MEASURE(&outer, &options)
		ASSAY_MEASURE(&inner, &options)
			made++;
	assert_int_equal(made, 36);
	assert_true(outer.average > inner.average);
}

static void a_block_with_senseless_options_is_not_executed(void **state)
{
	struct assay_measure_options options = ASSAY_MEASURE_DEFAULTS;
	struct assay_timing t;
	unsigned made = 0;

	(void)state;
	options.each = nothing;
	ASSAY_MEASURE(&t, &options)
		made++;
	assert_int_equal(made, 0);
	assert_int_equal(t.repeat, 0);
	assert_non_null(strstr(assay_last_error(), "assay_measure_time runs it before every call"));
	options.each = NULL;
	options.repeat = 0;
	ASSAY_MEASURE(&t, &options)
		made++;
	assert_int_equal(made, 0);
	assert_non_null(strstr(assay_last_error(), "repeat is 0"));
}

static void figures_of_times_that_others_took(void **state)
{
	static const uint64_t numbers[] = {1, 2, 100, 200};
	static const double seconds[] = {0.004, 0.004, 0.1, 0.22};
	struct assay_measure_options options = {.div_by_number = 1, .max_time = 1, .context_size = 5};
	struct assay_timing t;

	(void)state;
	assert_int_equal(assay_timing_of(numbers, seconds, 4, 0, &options, &t), 0);
	assert_true(fabs(t.deviation - 0.00018999126025906607) < 1e-15);
	assert_int_equal(t.number, 303);
	assert_int_equal(t.context_size, 5);
	assert_int_equal(assay_timing_of(numbers, seconds, 0, 0, &options, &t), -1);
	assert_string_equal(assay_last_error(), "assay_measure: there is no batch to make figures of");
	assert_int_equal(assay_timing_of(numbers, seconds, SIZE_MAX, 0, &options, &t), -1);
	assert_int_equal(assay_timing_of(numbers, seconds, 4, NAN, &options, &t), -1);
	assert_int_equal(assay_timing_of(NULL, seconds, 4, 0, &options, &t), -1);
}

static void warnings_are_told_one_by_one(void **state)
{
	struct assay_timing t = {.warnings = TIMING_UNRESOLVED | TIMING_FEW};

	(void)state;
	assert_string_equal(assay_timing_warning(&t, 0), timing_warning_text(TIMING_UNRESOLVED));
	assert_string_equal(assay_timing_warning(&t, 1), timing_warning_text(TIMING_FEW));
	assert_null(assay_timing_warning(&t, 2));
}

static unsigned evaluations;

static double evaluate(void)
{
	return ++evaluations;
}

/* That a value is made shows in what the compiler leaves: tests/public compares it with and without. */
static void keep_evaluates_once_and_takes_every_kind_of_value(void **state)
{
	struct {
		double d[9];
	} large = {{1}};
	struct {
		char c[3];
	} odd = {"ab"};
	const int constant = 3;
	char array[5] = "abcd";

	(void)state;
	ASSAY_KEEP(evaluate());
	assert_int_equal(evaluations, 1);
	ASSAY_KEEP(large);
	ASSAY_KEEP(odd);
	ASSAY_KEEP(constant);
	ASSAY_KEEP(array);
	ASSAY_KEEP("text");
	ASSAY_KEEP(&large);
	ASSAY_KEEP(1.5f);
	ASSAY_KEEP(large.d[0] == 1 ? 2.5L : 0);
	assert_string_equal(array, "abcd");
}

/* That nothing is known of it shows in the time it takes to use it: tests/public. */
static void hide_evaluates_once_and_yields_every_kind_of_value(void **state)
{
	struct {
		double d[9];
	} large = {{1, 2}};
	const int constant = 3;
	char array[5] = "abcd";
	unsigned before = evaluations;

	(void)state;
	assert_true(ASSAY_HIDE(evaluate()) > before);
	assert_int_equal(evaluations, before + 1);
	assert_true(ASSAY_HIDE(large).d[1] == 2);
	assert_true(ASSAY_HIDE(constant) == 3);
	assert_ptr_equal(ASSAY_HIDE(array), array);
	assert_string_equal(ASSAY_HIDE("text"), "text");
	assert_true(ASSAY_HIDE(1.5f) == 1.5f);
	assert_true(ASSAY_HIDE(2.5L) == 2.5L);
	assert_true(ASSAY_HIDE((_Bool)1));
	assert_true(ASSAY_HIDE((signed char)-1) == -1);
	assert_true(ASSAY_HIDE(UINT64_MAX) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_called_as_often_as_asked),
		cmocka_unit_test(times_are_those_of_the_clock),
		cmocka_unit_test(an_empty_function_has_nothing_left_and_says_so),
		cmocka_unit_test(each_goes_before_every_execution_and_is_not_timed),
		cmocka_unit_test(max_time_is_filled_with_growing_batches),
		cmocka_unit_test(options_that_make_no_sense_are_named),
		cmocka_unit_test(it_leaves_errno_and_the_descriptors_as_they_were),
		cmocka_unit_test(threads_measure_at_the_same_time),
		cmocka_unit_test(a_block_is_executed_as_often_as_asked),
		cmocka_unit_test(a_block_that_is_left_keeps_its_complete_batches),
		cmocka_unit_test(a_return_ends_the_measurement),
		cmocka_unit_test(blocks_nest),
		cmocka_unit_test(a_block_with_senseless_options_is_not_executed),
		cmocka_unit_test(figures_of_times_that_others_took),
		cmocka_unit_test(warnings_are_told_one_by_one),
		cmocka_unit_test(keep_evaluates_once_and_takes_every_kind_of_value),
		cmocka_unit_test(hide_evaluates_once_and_yields_every_kind_of_value),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
