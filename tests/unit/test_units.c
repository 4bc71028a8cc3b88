#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "base/units.h"

static void seconds_read_well_at_any_size(void **state)
{
	(void)state;
	assert_string_equal(units_seconds(NAN).text, "n/a");
	assert_string_equal(units_seconds(0).text, "0 s");
	assert_string_equal(units_seconds(12e-9).text, "12.0 ns");
	assert_string_equal(units_seconds(999.96e-9).text, "1.0 us");
	assert_string_equal(units_seconds(3.4e-6).text, "3.4 us");
	assert_string_equal(units_seconds(0.0123).text, "12.3 ms");
	assert_string_equal(units_seconds(0.99949).text, "999.5 ms");
	assert_string_equal(units_seconds(0.9996).text, "1.00 s");
	assert_string_equal(units_seconds(9.994).text, "9.99 s");
	assert_string_equal(units_seconds(9.996).text, "10.0 s");
	assert_string_equal(units_seconds(185).text, "3 min 05 s");
	assert_string_equal(units_seconds(3600 + 29 * 60).text, "1 h 29 min");
	assert_string_equal(units_seconds(-0.0123).text, "-12.3 ms");
	assert_string_equal(units_seconds(1e300).text, "1e+300 s");
	assert_string_equal(units_seconds(INFINITY).text, "inf s");
}

static void bytes_read_well_at_any_size(void **state)
{
	(void)state;
	assert_string_equal(units_bytes(NAN).text, "n/a");
	assert_string_equal(units_bytes(0).text, "0 B");
	assert_string_equal(units_bytes(512).text, "512 B");
	assert_string_equal(units_bytes(1023.99).text, "1.00 KiB");
	assert_string_equal(units_bytes(12.34 * 1048576).text, "12.3 MiB");
	assert_string_equal(units_bytes(400.0 * 1048576).text, "400 MiB");
	assert_string_equal(units_bytes(1.2 * 1073741824).text, "1.20 GiB");
	assert_string_equal(units_bytes(-2048).text, "-2.00 KiB");
	assert_string_equal(units_bytes(1e300).text, "8.88e+284 PiB");
}

static void shares_and_counts_read_well(void **state)
{
	(void)state;
	assert_string_equal(units_percent(NAN).text, "n/a");
	assert_string_equal(units_percent(0.034).text, "3.4%");
	assert_string_equal(units_percent(0.0996).text, "10%");
	assert_string_equal(units_percent(1.5).text, "150%");
	assert_string_equal(units_percent(1e300).text, "1e+302%");
	assert_string_equal(units_count(NAN).text, "n/a");
	assert_string_equal(units_count(0).text, "0");
	assert_string_equal(units_count(999).text, "999");
	assert_string_equal(units_count(1234567).text, "1,234,567");
	assert_string_equal(units_count(-123456).text, "-123,456");
	assert_string_equal(units_count(999999999999999).text, "999,999,999,999,999");
	assert_string_equal(units_count(1e300).text, "1e+300");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seconds_read_well_at_any_size),
		cmocka_unit_test(bytes_read_well_at_any_size),
		cmocka_unit_test(shares_and_counts_read_well),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
