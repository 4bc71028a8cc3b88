#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "model/phase.h"

struct fixture {
	struct marks marks;
	struct phases phases;
	struct warnings warnings;
};

static int set_up(void **state)
{
	static struct fixture f;

	marks_init(&f.marks);
	phases_init(&f.phases);
	warnings_init(&f.warnings);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	marks_release(&f->marks);
	phases_release(&f->phases);
	warnings_release(&f->warnings);
	return 0;
}

static void mark(struct fixture *f, int64_t t, const char *name)
{
	assert_int_equal(marks_add(&f->marks, t, phase_group_of(name), name, strlen(name), NULL), 0);
}

static void split(struct fixture *f, int64_t start, int64_t end)
{
	assert_int_equal(phases_from_marks(&f->phases, &f->marks, start, end, "start", true, &f->warnings, NULL), 0);
}

static void assert_phase(const struct fixture *f, size_t i, const char *name, int64_t start, int64_t end)
{
	assert_true(i < f->phases.count);
	assert_string_equal(f->phases.items[i].name, name);
	assert_int_equal(f->phases.items[i].start, start);
	assert_int_equal(f->phases.items[i].end, end);
}

static void without_marks_the_run_is_one_phase(void **state)
{
	struct fixture *f = *state;

	split(f, 10, 20);
	assert_int_equal(f->phases.count, 1);
	assert_phase(f, 0, "run", 10, 20);
	assert_int_equal(f->phases.items[0].group, GROUP_OTHER);
}

static void a_mark_lasts_until_the_next_and_before_the_first_is_start(void **state)
{
	struct fixture *f = *state;

	mark(f, 12, "load");
	mark(f, 15, "solve");
	split(f, 10, 20);
	assert_int_equal(f->phases.count, 3);
	assert_phase(f, 0, "start", 10, 12);
	assert_phase(f, 1, "load", 12, 15);
	assert_phase(f, 2, "solve", 15, 20);
	assert_int_equal(f->phases.items[1].group, GROUP_LOAD);
	assert_int_equal(f->phases.items[2].group, GROUP_OTHER);
	assert_int_equal(f->warnings.count, 0);
}

static void a_mark_at_the_very_start_leaves_no_start_phase(void **state)
{
	struct fixture *f = *state;

	mark(f, 10, "decode");
	split(f, 10, 20);
	assert_int_equal(f->phases.count, 1);
	assert_phase(f, 0, "decode", 10, 20);
}

static void marks_that_go_backwards_or_lie_outside_are_moved_and_counted(void **state)
{
	struct fixture *f = *state;

	mark(f, 15, "a");
	mark(f, 12, "b");
	mark(f, 99, "c");
	mark(f, -5, "d");
	split(f, 10, 20);
	assert_phase(f, 1, "a", 15, 15);
	assert_phase(f, 2, "b", 15, 20);
	assert_phase(f, 3, "c", 20, 20);
	assert_phase(f, 4, "d", 20, 20);
	assert_int_equal(f->warnings.count, 2);
	assert_non_null(strstr(f->warnings.texts[0], "2 phase marks lay outside"));
	assert_non_null(strstr(f->warnings.texts[1], "2 phase marks went back"));
}

static void phases_of_no_length_are_left_out_on_request(void **state)
{
	struct fixture *f = *state;

	mark(f, 12, "load");
	mark(f, 12, "warmup");
	mark(f, 15, "prefill");
	mark(f, 20, "decode");
	mark(f, 20, "shutdown");
	assert_int_equal(phases_from_marks(&f->phases, &f->marks, 10, 20, "start", false, &f->warnings, NULL), 0);
	assert_int_equal(f->phases.count, 4);
	assert_phase(f, 1, "warmup", 12, 15);
	assert_phase(f, 2, "prefill", 15, 20);
	assert_phase(f, 3, "shutdown", 20, 20);
}

static void a_name_of_garbage_becomes_valid_text_of_bounded_length(void **state)
{
	struct fixture *f = *state;
	char long_name[500];
	static const char garbage[] = "a\001\xff\xc3\xa9";

	assert_int_equal(marks_add(&f->marks, 0, GROUP_OTHER, garbage, sizeof garbage - 1, NULL), 0);
	assert_string_equal(f->marks.items[0].name, "a?\xef\xbf\xbd\xc3\xa9");
	assert_int_equal(marks_add(&f->marks, 0, GROUP_OTHER, "", 0, NULL), 0);
	assert_string_equal(f->marks.items[1].name, "unnamed");
	for (size_t i = 0; i < sizeof long_name; i += 2)
		memcpy(long_name + i, "\xc3\xa9", 2);
	assert_int_equal(marks_add(&f->marks, 0, GROUP_OTHER, long_name, sizeof long_name, NULL), 0);
	assert_int_equal(strlen(f->marks.items[2].name), 62); /* 31 whole characters */
}

static void the_seconds_of_a_group_are_the_sum_of_its_phases_and_missing_where_there_is_none(void **state)
{
	struct fixture *f = *state;

	mark(f, 0, "load");
	mark(f, 1000000000, "decode");
	mark(f, 3000000000, "load");
	split(f, 0, 4500000000);
	assert_true(fabs(phases_group_seconds(&f->phases, GROUP_LOAD) - 2.5) < 1e-9);
	assert_true(fabs(phases_group_seconds(&f->phases, GROUP_DECODE) - 2) < 1e-9);
	assert_true(isnan(phases_group_seconds(&f->phases, GROUP_SERVING)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_marks_the_run_is_one_phase, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_mark_lasts_until_the_next_and_before_the_first_is_start, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_mark_at_the_very_start_leaves_no_start_phase, set_up, tear_down),
		cmocka_unit_test_setup_teardown(marks_that_go_backwards_or_lie_outside_are_moved_and_counted, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(phases_of_no_length_are_left_out_on_request, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_name_of_garbage_becomes_valid_text_of_bounded_length, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			the_seconds_of_a_group_are_the_sum_of_its_phases_and_missing_where_there_is_none, set_up,
			tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
