#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

static void wall_time_is_written_as_iso_8601(void **state)
{
	char text[32];

	(void)state;
	clock_iso8601(0, text, sizeof text);
	assert_string_equal(text, "1970-01-01T00:00:00.000Z");
	clock_iso8601(INT64_C(1796058941) * NS_PER_S + 123456789, text, sizeof text);
	assert_string_equal(text, "2026-11-30T17:15:41.123Z");
}

static void the_offset_leads_from_one_clock_to_the_other(void **state)
{
	int64_t difference = clock_mono_ns() + clock_wall_offset_ns() - clock_wall_ns();

	(void)state;
	assert_true(difference > -60 * NS_PER_S && difference < 60 * NS_PER_S);
}

static void a_sleep_is_at_least_as_long_as_asked(void **state)
{
	int64_t start = clock_mono_ns();

	(void)state;
	clock_sleep_ns(20 * NS_PER_MS);
	assert_true(clock_mono_ns() - start >= 20 * NS_PER_MS);
	clock_sleep_ns(0);
	clock_sleep_ns(-5);
}

static void an_error_is_one_sentence_that_always_fits(void **state)
{
	char long_path[2000];
	struct error err;

	(void)state;
	assert_int_equal(error_set(&err, "line %d: no number", 3), -1);
	assert_int_equal(error_prefix(&err, "%s", "file.json"), -1);
	assert_string_equal(err.text, "file.json: line 3: no number");
	memset(long_path, 'x', sizeof long_path - 1);
	long_path[sizeof long_path - 1] = '\0';
	error_prefix(&err, "%s", long_path);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	assert_int_equal(error_set(NULL, "nobody asked"), -1);
	assert_int_equal(error_prefix(NULL, "nobody asked"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wall_time_is_written_as_iso_8601),
		cmocka_unit_test(the_offset_leads_from_one_clock_to_the_other),
		cmocka_unit_test(a_sleep_is_at_least_as_long_as_asked),
		cmocka_unit_test(an_error_is_one_sentence_that_always_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
