#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>

#include "base/parse.h"

static void whole_numbers_are_read(void **state)
{
	int64_t i;
	uint64_t u;
	double d;

	(void)state;
	assert_true(parse_i64("-9223372036854775808", &i) && i == INT64_MIN);
	assert_true(parse_u64("18446744073709551615", &u) && u == UINT64_MAX);
	assert_true(parse_double("-1.5e-3", &d) && fabs(d + 0.0015) < 1e-15);
	assert_true(parse_double(".5", &d) && d == 0.5);
	assert_true(parse_double("1e-999", &d) && d == 0);
}

static void anything_else_is_refused_and_leaves_the_result_alone(void **state)
{
	static const char *const words[] = {
		"", " ", "-", "+", "x", "1x", " 1", "1 ", "1\n", "--1", "1.2.3", "0x10", "inf", "nan", "-inf", "1e",
		"1,5", "1_000", "99999999999999999999e999",
	};

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		int64_t whole = 7;
		uint64_t natural = 7;
		double real = 7;

		assert_false(parse_i64(words[i], &whole));
		assert_false(parse_u64(words[i], &natural));
		assert_false(parse_double(words[i], &real));
		assert_true(whole == 7 && natural == 7 && real == 7);
	}
}

static void what_does_not_fit_is_refused(void **state)
{
	int64_t i = 7;
	uint64_t u = 7;
	double d = 7;

	(void)state;
	assert_false(parse_i64("9223372036854775808", &i));
	assert_false(parse_u64("18446744073709551616", &u));
	assert_false(parse_u64("-1", &u));
	assert_false(parse_double("1e999", &d));
	assert_true(i == 7 && u == 7 && d == 7);
}

static void a_prefix_ends_where_the_number_ends(void **state)
{
	const char *text = "12.5 t/s", *end;

	(void)state;
	assert_true(parse_double_prefix(text, &end) == 12.5);
	assert_ptr_equal(end, text + 4);
	text = "t/s";
	assert_true(parse_double_prefix(text, &end) == 0);
	assert_ptr_equal(end, text);
}

static void the_users_locale_changes_nothing(void **state)
{
	const char *end;
	double d;

	(void)state;
	/* Where no such locale is installed the C locale stays, and the test is the same as without. */
	setlocale(LC_ALL, "de_DE.UTF-8");
	assert_true(parse_double("1.5", &d) && d == 1.5);
	assert_false(parse_double("1,5", &d));
	assert_true(parse_double_prefix("2.5", &end) == 2.5);
	setlocale(LC_ALL, "C");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers_are_read),
		cmocka_unit_test(anything_else_is_refused_and_leaves_the_result_alone),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(a_prefix_ends_where_the_number_ends),
		cmocka_unit_test(the_users_locale_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
