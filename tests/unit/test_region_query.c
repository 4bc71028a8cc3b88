#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "model/region_query.h"

static void ranks_are_numbers_and_ranges(void **state)
{
	struct region_query q;

	(void)state;
	region_query_init(&q);
	assert_true(region_query_takes_rank(&q, 17));
	assert_int_equal(region_query_set_ranks(&q, "0-3,8", NULL), 0);
	assert_true(region_query_takes_rank(&q, 0) && region_query_takes_rank(&q, 3));
	assert_false(region_query_takes_rank(&q, 4));
	assert_true(region_query_takes_rank(&q, 8));
	assert_int_equal(region_query_set_ranks(&q, "2147483647", NULL), 0);
	assert_false(region_query_takes_rank(&q, 8));
	region_query_release(&q);
}

static void what_is_no_list_of_ranks_is_named_and_changes_nothing(void **state)
{
	static const char *const bad[] = {"", ",", "1,", "a", "1-", "-1", "3-1", "1 ", " 1", "1--2", "+1", "1.5",
					  "1,,2", "2147483648", "99999999999999999999999", "0x1"};
	struct region_query q;
	struct error err;

	(void)state;
	region_query_init(&q);
	assert_int_equal(region_query_set_ranks(&q, "5", NULL), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(region_query_set_ranks(&q, bad[i], &err), -1);
		assert_non_null(strstr(err.text, bad[i]));
	}
	assert_true(region_query_takes_rank(&q, 5) && !region_query_takes_rank(&q, 1));
	region_query_set_ranks(&q, "3-1", &err);
	assert_string_equal(err.text, "'3-1': the range 3-1 runs backwards");
	region_query_release(&q);
}

static bool takes(const struct region_query *q, const char *name)
{
	bool taken = false;

	assert_int_equal(region_query_names(q, &name, 1, &taken, NULL), 0);
	return taken;
}

static void names_are_included_by_one_and_excluded_by_any(void **state)
{
	struct region_query q;

	(void)state;
	region_query_init(&q);
	assert_true(takes(&q, "solve"));
	assert_int_equal(region_query_exclude(&q, "solve_", NULL), 0);
	assert_true(takes(&q, "solve"));
	assert_false(takes(&q, "solve_fast"));
	assert_int_equal(region_query_include(&q, "solve", NULL), 0);
	assert_int_equal(region_query_include(&q, "io$", NULL), 0);
	assert_true(takes(&q, "io"));
	assert_false(takes(&q, "io2"));
	assert_false(takes(&q, "solve_fast"));
	assert_int_equal(region_query_include(&q, "(", NULL), -1);
	assert_int_equal(q.include_count, 2);
	region_query_release(&q);
}

static void a_name_that_takes_too_long_to_be_matched_is_neither_taken_nor_left_out(void **state)
{
	static const char *const names[] = {"short", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx!"};
	struct region_query q;
	struct error err;
	bool taken[2];

	(void)state;
	region_query_init(&q);
	assert_int_equal(region_query_exclude(&q, "(x+x+)+$", NULL), 0);
	assert_int_equal(region_query_names(&q, names, 1, taken, &err), 0);
	assert_true(taken[0]);
	assert_int_equal(region_query_names(&q, names, 2, taken, &err), -1);
	assert_non_null(strstr(err.text, "option '--exclude': '(x+x+)+$' takes too long to be matched with 'xxxx"));
	assert_int_equal(region_query_include(&q, "(x|xx)+$", NULL), 0);
	assert_int_equal(region_query_names(&q, names, 2, taken, &err), -1);
	assert_non_null(strstr(err.text, "option '--include': '(x|xx)+$' takes"));
	region_query_release(&q);
}

static void ranks_that_the_file_lacks_are_told_in_one_sentence(void **state)
{
	static uint32_t ranks[] = {0, 1, 2, 3, 6};
	struct regions r = {.path = (char *)(uintptr_t)"run.h5", .ranks = ranks, .rank_count = 5};
	struct region_query q;
	char *text;

	(void)state;
	region_query_init(&q);
	assert_null(region_query_missing_ranks(&q, &r));
	region_query_set_ranks(&q, "0-3", NULL);
	assert_null(region_query_missing_ranks(&q, &r));
	region_query_set_ranks(&q, "2-7,9", NULL);
	text = region_query_missing_ranks(&q, &r);
	assert_string_equal(text, "ranks 4-5, 7, 9 are not in run.h5 (it has 0-3, 6)");
	free(text);
	region_query_set_ranks(&q, "8,0", NULL);
	text = region_query_missing_ranks(&q, &r);
	assert_string_equal(text, "rank 8 is not in run.h5 (it has 0-3, 6)");
	free(text);
	region_query_set_ranks(&q, "0-2147483647", NULL);
	r.rank_count = 0;
	text = region_query_missing_ranks(&q, &r);
	assert_string_equal(text, "ranks 0-2147483647 are not in run.h5 (it has none)");
	free(text);
	region_query_release(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_are_numbers_and_ranges),
		cmocka_unit_test(what_is_no_list_of_ranks_is_named_and_changes_nothing),
		cmocka_unit_test(names_are_included_by_one_and_excluded_by_any),
		cmocka_unit_test(a_name_that_takes_too_long_to_be_matched_is_neither_taken_nor_left_out),
		cmocka_unit_test(ranks_that_the_file_lacks_are_told_in_one_sentence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
