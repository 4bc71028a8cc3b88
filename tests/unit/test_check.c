#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "judge/check.h"

static struct check_item item(const char *name, double a, double b)
{
	return (struct check_item){
		.name = name, .unit = "ns", .in_a = true, .in_b = true, .a = a, .b = b, .weight = NAN};
}

static enum check_finding finding_of(struct check_item i, struct check_budget b, bool *ret_fails)
{
	struct check_result r;
	struct error err;
	enum check_finding f;

	check_result_init(&r);
	if (check_judge(&i, 1, &b, &r, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.failed, r.rows[0].fails);
	assert_int_equal(r.per_finding[r.rows[0].finding], 1);
	*ret_fails = r.rows[0].fails;
	f = r.rows[0].finding;
	check_result_release(&r);
	return f;
}

static void expect(struct check_item i, struct check_budget b, enum check_finding finding, bool fails)
{
	bool got;

	assert_string_equal(check_finding_name(finding_of(i, b, &got)), check_finding_name(finding));
	assert_int_equal(got, fails);
}

static const struct check_budget none = {0}, ten = {.max_regression = 10};

static void equality_passes_and_a_nanosecond_more_does_not(void **state)
{
	(void)state;
	expect(item("x", 100, 100), none, CHECK_WITHIN, false);
	expect(item("x", 1e15, 1e15 + 1), none, CHECK_REGRESSED, true);
	expect(item("x", 100, 99), none, CHECK_IMPROVED, false);
}

static void exactly_the_budget_passes(void **state)
{
	(void)state;
	expect(item("x", 100, 110), ten, CHECK_WITHIN, false);
	expect(item("x", 1, 1.1), ten, CHECK_WITHIN, false); /* 1.1 - 1 is a last digit more than 0.1 */
	expect(item("x", 0.3, 0.33), ten, CHECK_WITHIN, false);
	expect(item("x", 100, 110.001), ten, CHECK_REGRESSED, true);
}

static void where_more_is_better_less_is_the_regression(void **state)
{
	struct check_item less = item("x", 100, 80), more = item("x", 100, 130), from_0 = item("x", 0, 5),
			  to_0 = item("x", 5, 0);

	(void)state;
	less.higher_is_better = more.higher_is_better = from_0.higher_is_better = to_0.higher_is_better = true;
	expect(less, ten, CHECK_REGRESSED, true);
	expect(more, ten, CHECK_IMPROVED, false);
	expect(from_0, ten, CHECK_IMPROVED, false);
	expect(to_0, ten, CHECK_REGRESSED, true);
}

static void a_cost_where_there_was_none_fails_under_any_budget(void **state)
{
	const struct check_budget large = {.max_regression = 1e9};

	(void)state;
	expect(item("x", 0, 1), large, CHECK_FROM_ZERO, true);
	expect(item("x", 0, 0), none, CHECK_WITHIN, false);
	expect(item("x", 5, 0), none, CHECK_IMPROVED, false);
}

static void what_is_no_number_fails(void **state)
{
	struct check_item alone = item("x", NAN, NAN);

	(void)state;
	alone.in_a = false;
	expect(item("x", NAN, 1), ten, CHECK_UNKNOWN, true);
	expect(item("x", 1, NAN), ten, CHECK_UNKNOWN, true);
	expect(item("x", NAN, NAN), ten, CHECK_UNKNOWN, true);
	expect(item("x", 1, INFINITY), ten, CHECK_UNKNOWN, true);
	expect(item("x", -INFINITY, 1), ten, CHECK_UNKNOWN, true);
	expect(alone, ten, CHECK_UNKNOWN, true);
}

static void new_and_vanished_fail_only_where_asked(void **state)
{
	struct check_item new = item("x", NAN, 1), vanished = item("x", 1, NAN);
	const struct check_budget on_new = {.fail_on_new = true}, on_missing = {.fail_on_missing = true};

	(void)state;
	new.in_a = vanished.in_b = false;
	expect(new, none, CHECK_NEW, false);
	expect(new, on_missing, CHECK_NEW, false);
	expect(new, on_new, CHECK_NEW, true);
	expect(vanished, none, CHECK_VANISHED, false);
	expect(vanished, on_new, CHECK_VANISHED, false);
	expect(vanished, on_missing, CHECK_VANISHED, true);
}

static void what_is_too_small_on_both_sides_is_left_out(void **state)
{
	const struct check_budget b = {.min_total = 1000, .fail_on_new = true};
	struct check_item small = item("x", 1, 900), large = item("x", 1, 900), new = item("x", NAN, 5);

	(void)state;
	small.weight = 999;
	large.weight = 1000;
	new.weight = 5;
	new.in_a = false;
	expect(small, b, CHECK_TOO_SMALL, false);
	expect(large, b, CHECK_REGRESSED, true);
	expect(new, b, CHECK_TOO_SMALL, false);
	expect(item("x", 1, 900), b, CHECK_REGRESSED, true);
}

static void failures_stand_first_and_the_worst_of_them_on_top(void **state)
{
	struct check_item items[] = {item("fine", 100, 100), item("worse", 100, 120), item("worst", 100, 300),
				     item("zero", 0, 3),     item("new", NAN, 1),      item("gone", 1, NAN),
				     item("nowhere", 1, 1)};
	const char *const order[] = {"worst", "worse", "zero", "gone", "new", "fine"};
	const struct check_budget b = {.max_regression = 10, .fail_on_missing = true};
	struct check_result r;

	(void)state;
	items[4].in_a = items[5].in_b = items[6].in_a = items[6].in_b = false;
	check_result_init(&r);
	assert_int_equal(check_judge(items, 7, &b, &r, NULL), 0);
	assert_int_equal(r.count, 6);
	for (size_t i = 0; i < r.count; i++)
		assert_string_equal(r.rows[i].item.name, order[i]);
	assert_int_equal(r.failed, 4);
	assert_int_equal(r.compared, 4);
	assert_true(fabs(r.rows[0].worse_pct - 200) < 1e-9);
	check_result_release(&r);
}

static void a_budget_that_is_no_number_is_refused(void **state)
{
	const double bad[] = {NAN, -1, INFINITY, -INFINITY};
	struct check_item i = item("x", 1, 1);
	struct check_result r;

	(void)state;
	check_result_init(&r);
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		const struct check_budget percent = {.max_regression = bad[k]}, total = {.min_total = bad[k]};
		struct error err = {""};

		assert_int_equal(check_judge(&i, 1, &percent, &r, &err), -1);
		assert_non_null(strstr(err.text, "is no number of 0 or more"));
		assert_int_equal(check_judge(&i, 1, &total, &r, &err), -1);
	}
	assert_int_equal(check_judge(&i, 0, &none, &r, NULL), 0);
	assert_int_equal(r.compared, 0);
	check_result_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equality_passes_and_a_nanosecond_more_does_not),
		cmocka_unit_test(exactly_the_budget_passes),
		cmocka_unit_test(where_more_is_better_less_is_the_regression),
		cmocka_unit_test(a_cost_where_there_was_none_fails_under_any_budget),
		cmocka_unit_test(what_is_no_number_fails),
		cmocka_unit_test(new_and_vanished_fail_only_where_asked),
		cmocka_unit_test(what_is_too_small_on_both_sides_is_left_out),
		cmocka_unit_test(failures_stand_first_and_the_worst_of_them_on_top),
		cmocka_unit_test(a_budget_that_is_no_number_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
