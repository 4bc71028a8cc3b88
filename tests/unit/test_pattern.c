#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"

static bool matches(const char *expression, const char *text)
{
	struct pattern *p = NULL;
	struct error err;
	bool got = false;

	if (pattern_new(expression, &p, &err) < 0)
		fail_msg("%s", err.text);
	if (pattern_match(p, text, &got, &err) < 0)
		fail_msg("%s", err.text);
	pattern_free(p);
	return got;
}

static void a_pattern_matches_at_the_start_and_need_not_reach_the_end(void **state)
{
	(void)state;
	assert_true(matches("sol", "solve"));
	assert_false(matches("olve", "solve"));
	assert_true(matches(".*olve", "solve"));
	assert_true(matches("x|so", "solve"));
	assert_false(matches("x|ol", "solve"));
	assert_false(matches("sol$", "solve"));
	assert_true(matches("", "solve"));
}

static void characters_of_all_scripts_count_as_one(void **state)
{
	(void)state;
	assert_true(matches("^.$", "\xc3\xa9"));
	assert_true(matches("\\w+$", "l\xc3\xb6sen"));
	assert_true(matches("ab", "ab\xff"));
}

static void a_bad_expression_is_named_with_the_place(void **state)
{
	struct pattern *p = NULL;
	struct error err;

	(void)state;
	assert_int_equal(pattern_new("a(b", &p, &err), -1);
	assert_null(p);
	assert_non_null(strstr(err.text, "'a(b' is no regular expression: "));
	assert_non_null(strstr(err.text, "at position 3"));
	assert_int_equal(pattern_new("\xff", &p, &err), -1);
	assert_int_equal(pattern_new("a\033[2J(", &p, &err), -1);
	assert_null(strchr(err.text, '\033'));
}

static void an_expression_that_takes_forever_is_an_error(void **state)
{
	char text[64];
	struct pattern *p = NULL;
	struct error err;
	bool got = true;

	(void)state;
	memset(text, 'a', sizeof text - 2);
	strcpy(text + sizeof text - 2, "!");
	assert_false(matches("(a+)+b", text)); /* no b anywhere: seen at once */
	assert_int_equal(pattern_new("(a|aa)+$", &p, &err), 0);
	assert_int_equal(pattern_match(p, text, &got, &err), -1);
	assert_non_null(strstr(err.text, "'(a|aa)+$' takes too long to be matched with 'aaaa"));
	assert_false(got);
	assert_int_equal(pattern_match(p, "ab", &got, &err), 0);
	pattern_free(p);
}

static void an_expression_that_is_too_long_is_refused(void **state)
{
	char *text = malloc(20001);
	struct pattern *p = NULL;
	struct error err;

	(void)state;
	assert_non_null(text);
	memset(text, '(', 20000);
	text[20000] = '\0';
	assert_int_equal(pattern_new(text, &p, &err), -1);
	assert_string_equal(err.text, "a regular expression of 20000 bytes is too long: 10000 are allowed");
	text[9000] = '\0';
	assert_int_equal(pattern_new(text, &p, &err), -1);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pattern_matches_at_the_start_and_need_not_reach_the_end),
		cmocka_unit_test(characters_of_all_scripts_count_as_one),
		cmocka_unit_test(a_bad_expression_is_named_with_the_place),
		cmocka_unit_test(an_expression_that_takes_forever_is_an_error),
		cmocka_unit_test(an_expression_that_is_too_long_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
