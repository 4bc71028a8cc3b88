#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/quote.h"

static void assert_places(double value)
{
	struct buf out;
	char wanted[400];

	buf_init(&out);
	snprintf(wanted, sizeof wanted, "%.5f", value);
	graph_quote_places(&out, value);
	assert_string_equal(out.text, wanted);
	buf_release(&out);
}

static void a_number_with_five_places_is_rounded_as_printf_does(void **state)
{
	static const double values[] = {0, -0.0, 0.5, 1e-6, 0.000005, 0.000015, 0.000025, 0.0000150000001, 2.000005,
					0.03125 / 1024, 9999.999994, 9999.999995, 9999.999996, 12345678.9, 1e15, 1e300,
					-1.5, -1e-9, INFINITY, NAN};

	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		assert_places(values[i]);
	srand(5);
	for (int i = 0; i < 20000; i++)
		assert_places(rand() / 1e7 * (rand() / 1e9));
}

static void a_whole_number_stands_right_in_its_columns(void **state)
{
	static const int64_t values[] = {0, 7, -7, 1234567, INT64_MAX, INT64_MIN};

	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		for (int width = 0; width < 30; width++) {
			struct buf out;
			char wanted[64];

			buf_init(&out);
			snprintf(wanted, sizeof wanted, "%*" PRId64, width, values[i]);
			graph_quote_whole(&out, values[i], (unsigned)width);
			assert_string_equal(out.text, wanted);
			buf_release(&out);
		}
}

static void a_plain_text_and_one_that_is_not_are_quoted_alike(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out);
	graph_quote_json(&out, "a.c:1:f(x) ~");
	graph_quote_json(&out, "\"\\\n\x7f\xff\xc3\xa4");
	graph_quote_json(&out, NULL);
	assert_string_equal(out.text, "\"a.c:1:f(x) ~\"\"\\\"\\\\\\u000a\\u007f\xef\xbf\xbd\xc3\xa4\"null");
	buf_clear(&out);
	graph_quote_line(&out, "plain\x1b[1m \xff");
	assert_string_equal(out.text, "plain?[1m \xef\xbf\xbd");
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_with_five_places_is_rounded_as_printf_does),
		cmocka_unit_test(a_whole_number_stands_right_in_its_columns),
		cmocka_unit_test(a_plain_text_and_one_that_is_not_are_quoted_alike),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
