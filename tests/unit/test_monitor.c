#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "model/monitor.h"

static void it_keeps_first_last_largest_and_mean(void **state)
{
	const int64_t values[] = {10, 40, 40, 30};
	struct monitor m;

	(void)state;
	monitor_init(&m);
	for (int i = 0; i < 4; i++)
		monitor_add(&m, values[i], 100 + i);
	assert_int_equal(m.n, 4);
	assert_int_equal(m.begin, 10);
	assert_int_equal(m.end, 30);
	assert_int_equal(m.peak, 40);
	assert_int_equal(m.peak_at, 101);
	assert_true(fabs(monitor_average(&m) - 30) < 1e-12);
}

static void what_was_not_read_does_not_count(void **state)
{
	struct monitor m;

	(void)state;
	monitor_init(&m);
	monitor_add(&m, -1, 1);
	assert_int_equal(m.n, 0);
	assert_int_equal(m.begin, -1);
	assert_int_equal(m.end, -1);
	assert_int_equal(m.peak, -1);
	assert_true(isnan(monitor_average(&m)));
	monitor_add(&m, 0, 2);
	monitor_add(&m, -1, 3);
	assert_int_equal(m.n, 1);
	assert_int_equal(m.end, 0);
	assert_int_equal(m.peak_at, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_keeps_first_last_largest_and_mean),
		cmocka_unit_test(what_was_not_read_does_not_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
