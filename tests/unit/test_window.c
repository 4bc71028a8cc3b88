#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "model/window.h"

static void assert_near(double got, double wanted)
{
	assert_true(fabs(got - wanted) < 1e-9);
}

static void a_gauge_holds_until_the_next_point(void **state)
{
	struct window items[] = {{.start = 0, .end = 10}, {.start = 10, .end = 30}};
	struct windows w;

	(void)state;
	windows_begin(&w, SERIES_GAUGE, items, 2);
	windows_point(&w, 0, 1);
	windows_point(&w, 5, 3);
	windows_point(&w, 20, 7);
	windows_end(&w, 30);
	assert_near(items[0].mean, 2);
	assert_near(items[0].max, 3);
	assert_near(items[0].min, 1);
	assert_near(items[1].mean, 5);
	assert_near(items[1].max, 7);
	assert_near(items[1].min, 3);
}

static void the_growth_of_a_counter_is_shared_out_between_windows(void **state)
{
	struct window items[] = {{.start = 0, .end = 10}, {.start = 10, .end = 40}};
	struct windows w;

	(void)state;
	windows_begin(&w, SERIES_COUNTER, items, 2);
	windows_point(&w, 0, 100);
	windows_point(&w, 20, 120); /* a straight line: half of it in each window */
	windows_point(&w, 30, 120);
	windows_point(&w, 40, 125);
	windows_end(&w, 40);
	assert_near(items[0].growth, 10);
	assert_near(items[1].growth, 15);
	assert_true(isnan(items[0].mean));
}

static void a_window_without_points_has_no_figures(void **state)
{
	struct window items[] = {{.start = 0, .end = 10}, {.start = 50, .end = 60}};
	struct windows w;

	(void)state;
	windows_begin(&w, SERIES_COUNTER, items, 2);
	windows_point(&w, 20, 1);
	windows_point(&w, 30, 2);
	windows_end(&w, 60);
	assert_true(isnan(items[0].growth));
	assert_true(isnan(items[1].growth));
}

static void a_point_that_goes_back_in_time_is_ignored(void **state)
{
	struct window item = {.start = 0, .end = 10};
	struct windows w;

	(void)state;
	windows_begin(&w, SERIES_COUNTER, &item, 1);
	windows_point(&w, 0, 0);
	windows_point(&w, 8, 8);
	windows_point(&w, 4, 1000);
	windows_point(&w, 10, 10);
	windows_end(&w, 10);
	assert_near(item.growth, 10);
}

static void a_window_of_no_length_shows_the_level_it_stands_on(void **state)
{
	struct window item = {.start = 5, .end = 5};
	struct windows w;

	(void)state;
	windows_begin(&w, SERIES_GAUGE, &item, 1);
	windows_point(&w, 0, 4);
	windows_point(&w, 10, 9);
	windows_end(&w, 10);
	assert_near(item.max, 4);
	assert_near(item.mean, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gauge_holds_until_the_next_point),
		cmocka_unit_test(the_growth_of_a_counter_is_shared_out_between_windows),
		cmocka_unit_test(a_window_without_points_has_no_figures),
		cmocka_unit_test(a_point_that_goes_back_in_time_is_ignored),
		cmocka_unit_test(a_window_of_no_length_shows_the_level_it_stands_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
