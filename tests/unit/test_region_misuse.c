#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <assay.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "scratch.h"

#include "region_raw.h"

static struct assay_region a = ASSAY_REGION("a"), b = ASSAY_REGION("b"), c = ASSAY_REGION("c");

static void end_without_begin(void)
{
	assay_region_end(&a);
	assay_region_begin(&b);
	assay_region_end(&a);
	assay_region_end(&b);
	assay_region_begin(NULL);
	assay_region_end(NULL);
}

static void an_end_without_a_begin_is_counted(void **state)
{
	(void)state;
	raw_run(end_without_begin);
	assert_int_equal(raw.troubles[REGION_TROUBLE_NO_BEGIN], 2);
	assert_int_equal(raw_trouble_sum(), 2);
	assert_int_equal(raw.count, 1);
	assert_int_equal(raw.records[REGION_RECORD_TROUBLE], 2);
}

static jmp_buf out;

static void __attribute__((noreturn)) jump_out(void)
{
	assay_region_begin(&b);
	assay_region_begin(&c);
	longjmp(out, 1);
}

static void leave_by_longjmp(void)
{
	assay_region_begin(&a);
	if (setjmp(out) == 0)
		jump_out();
	assay_region_end(&a);
	assay_region_begin(&a);
	assay_region_end(&a);
}

static void what_is_left_by_longjmp_is_counted_and_the_rest_is_right(void **state)
{
	(void)state;
	raw_run(leave_by_longjmp);
	assert_int_equal(raw.troubles[REGION_TROUBLE_NO_END], 2);
	assert_int_equal(raw_trouble_sum(), 2);
	assert_int_equal(raw_calls_of("a"), 2);
	assert_int_equal(raw.calls[0].event.depth, 0);
	assert_int_equal(raw.calls[1].event.depth, 0);
}

static void cross(void)
{
	assay_region_begin(&a);
	assay_region_begin(&b);
	assay_region_end(&a);
	assay_region_end(&b);
}

static void regions_that_cross_are_both_recorded(void **state)
{
	(void)state;
	raw_run(cross);
	assert_int_equal(raw.count, 2);
	assert_int_equal(raw_call("a")->flags, 0);
	assert_int_equal(raw_call("b")->flags, REGION_EVENT_DETACHED | REGION_EVENT_CROSSED);
	assert_true(raw_call("b")->start < raw_call("a")->end && raw_call("a")->end <= raw_call("b")->end);
	assert_int_equal(raw_call("b")->depth, 1);
	assert_int_equal(raw.troubles[REGION_TROUBLE_CROSSED], 1);
	assert_int_equal(raw_trouble_sum(), 1);
}

static void *end_a(void *unused)
{
	(void)unused;
	assay_region_end(&a);
	return NULL;
}

static void end_in_another_thread(void)
{
	pthread_t thread;

	assay_region_begin(&a);
	if (pthread_create(&thread, NULL, end_a, NULL) != 0)
		_exit(1);
	pthread_join(thread, NULL);
	assay_region_end(&a);
}

static void an_end_in_another_thread_is_told_from_one_without_a_begin(void **state)
{
	(void)state;
	raw_run(end_in_another_thread);
	assert_int_equal(raw.troubles[REGION_TROUBLE_OTHER_THREAD], 1);
	assert_int_equal(raw_trouble_sum(), 1);
	assert_int_equal(raw_calls_of("a"), 1);
}

static void exit_inside(void)
{
	assay_region_begin(&a);
	assay_region_begin(&b);
	exit(0);
}

static void what_is_open_at_exit_ends_there(void **state)
{
	(void)state;
	raw_run(exit_inside);
	assert_int_equal(raw.count, 2);
	assert_string_equal(raw.calls[0].name, "b");
	assert_int_equal(raw.calls[0].event.flags, REGION_EVENT_UNFINISHED);
	assert_int_equal(raw.calls[1].event.depth, 0);
	assert_int_equal(raw.troubles[REGION_TROUBLE_UNFINISHED], 2);
}

static void abort_inside(void)
{
	assay_region_begin(&a);
	assay_region_end(&a);
	assay_region_begin(&b);
	abort();
}

static void abort_keeps_what_was_recorded(void **state)
{
	(void)state;
	assert_true(WIFSIGNALED(raw_run_for(abort_inside)));
	raw_read(scratch_dir);
	assert_int_equal(raw.count, 1);
	assert_int_equal(raw.closed, 0);
}

#define DEEP 10000

static void nest_deeply(void)
{
	for (int i = 0; i < DEEP; i++)
		assay_region_begin(i % 2 ? &a : &b);
	for (int i = DEEP - 1; i >= 0; i--)
		assay_region_end(i % 2 ? &a : &b);
}

static void ten_thousand_levels_are_kept(void **state)
{
	(void)state;
	raw_run(nest_deeply);
	assert_int_equal(raw.count, DEEP);
	assert_int_equal(raw.calls[0].event.depth, DEEP - 1);
	assert_int_equal(raw_trouble_sum(), 0);
}

static void nest_too_deeply(void)
{
	for (int i = 0; i < 70000; i++)
		assay_region_begin(&a);
	for (int i = 0; i < 70000; i++)
		assay_region_end(&a);
}

static void what_is_nested_too_deeply_is_counted(void **state)
{
	(void)state;
	raw_run(nest_too_deeply);
	assert_int_equal(raw.count, REGION_DEPTH_MAX);
	assert_int_equal(raw.troubles[REGION_TROUBLE_TOO_DEEP], 70000 - REGION_DEPTH_MAX);
	assert_int_equal(raw_trouble_sum(), 70000 - REGION_DEPTH_MAX);
}

static volatile sig_atomic_t ticks;

static void tick(int number)
{
	(void)number;
	assay_region_begin(&c);
	assay_region_end(&c);
	ticks++;
}

static void use_in_a_handler(void)
{
	struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
	int i;

	assay_region_begin(&c);
	assay_region_end(&c);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < 300000 || ticks < 100; i++) {
		assay_region_begin(&a);
		assay_region_begin(&b);
		assay_region_end(&b);
		assay_region_end(&a);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	assay_region_end(&c);
	if (i > 2000000000)
		_exit(1);
}

static void regions_in_signal_handlers_disturb_none(void **state)
{
	size_t all;

	(void)state;
	raw_run(use_in_a_handler);
	all = raw_calls_of("c") + raw.dropped - 1;
	assert_true(all >= 100);
	assert_true(raw_calls_of("a") >= 300000);
	assert_int_equal(raw_calls_of("a"), raw_calls_of("b"));
	assert_int_equal(raw.troubles[REGION_TROUBLE_NO_BEGIN], 1);
	assert_int_equal(raw_trouble_sum(), 1);
	for (size_t i = 0; i < raw.count; i++)
		assert_true(raw.calls[i].event.start <= raw.calls[i].event.end);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
	const struct CMUnitTest tests[] = {
		TEST(an_end_without_a_begin_is_counted),
		TEST(what_is_left_by_longjmp_is_counted_and_the_rest_is_right),
		TEST(regions_that_cross_are_both_recorded),
		TEST(an_end_in_another_thread_is_told_from_one_without_a_begin),
		TEST(what_is_open_at_exit_ends_there),
		TEST(abort_keeps_what_was_recorded),
		TEST(ten_thousand_levels_are_kept),
		TEST(what_is_nested_too_deeply_is_counted),
		TEST(regions_in_signal_handlers_disturb_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
