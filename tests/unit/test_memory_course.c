#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report/memory_course.h"

static void a_cell_keeps_the_smallest_and_the_largest_value_with_their_times(void **state)
{
	struct course c;

	(void)state;
	course_init(&c);
	assert_int_equal(course_open(&c, 1, 100, NULL), 0);
	course_add(&c, 1000, (const int64_t[]){5});
	course_add(&c, 1010, (const int64_t[]){9});
	course_add(&c, 1020, (const int64_t[]){2});
	assert_int_equal(c.used, 1);
	assert_int_equal(course_cell(&c, 0, 0)->high, 9);
	assert_int_equal(course_cell(&c, 0, 0)->high_at, 1010);
	assert_int_equal(course_cell(&c, 0, 0)->low, 2);
	assert_int_equal(course_cell(&c, 0, 0)->low_at, 1020);
	course_release(&c);
}

static void a_million_readings_fit_and_the_single_peak_is_kept(void **state)
{
	struct course c;
	int found = 0;

	(void)state;
	course_init(&c);
	assert_int_equal(course_open(&c, 2, 10, NULL), 0);
	for (int64_t i = 0; i < 1000000; i++)
		course_add(&c, 10 * i, (const int64_t[]){i == 654321 ? 7000 : 100, -1});
	assert_in_range(c.used, COURSE_CELLS / 2, COURSE_CELLS);
	assert_int_equal(course_largest(&c, 0), 7000);
	assert_int_equal(course_largest(&c, 1), -1);
	for (size_t i = 0; i < c.used; i++) {
		found += course_cell(&c, i, 0)->high_at == 6543210;
		assert_int_equal(course_cell(&c, i, 0)->low, 100);
	}
	assert_int_equal(found, 1);
	course_release(&c);
}

static void values_that_are_not_known_leave_no_trace(void **state)
{
	struct course c;

	(void)state;
	course_init(&c);
	assert_int_equal(course_open(&c, 1, 1, NULL), 0);
	course_add(&c, 0, (const int64_t[]){-1});
	course_add(&c, INT64_MAX / 2, (const int64_t[]){0});
	assert_int_equal(course_cell(&c, 0, 0)->low, -1);
	assert_int_equal(course_largest(&c, 0), 0);
	assert_true(c.used <= COURSE_CELLS);
	course_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_keeps_the_smallest_and_the_largest_value_with_their_times),
		cmocka_unit_test(a_million_readings_fit_and_the_single_peak_is_kept),
		cmocka_unit_test(values_that_are_not_known_leave_no_trace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
