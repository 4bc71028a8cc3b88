/* From batches to figures and verdicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/timing_report.h"
#include "trial/timeit.h"

#define BATCHES 12

/* So many batches of 1,000 executions; each of these took ns, and an empty loop's 1 ns. */
static void add_side(struct timeit *t, const char *label, double ns)
{
	struct timeit_side *s;

	assert_int_equal(timeit_add(t, label, NULL, NULL), 0);
	s = &t->sides[t->count - 1];
	s->batches = calloc(BATCHES, sizeof *s->batches);
	s->empties = calloc(BATCHES, sizeof *s->empties);
	s->count = s->room = BATCHES;
	for (size_t i = 0; i < BATCHES; i++) {
		double noise = 1 + 1e-4 * (double)(i * 7 % 5);

		s->batches[i] = (struct timing_batch){1000, 1000 * ns * noise * 1e-9, NAN, NAN};
		s->empties[i] = 1000 * 1e-9;
	}
}

static struct timeit settings(void)
{
	return (struct timeit){.confidence = 0.95, .margin = 0.01, .resolution_s = 1e-9};
}

static void what_an_empty_loop_takes_is_subtracted_before_sides_are_compared(void **state)
{
	struct timeit t = settings();
	struct timeit_answer a;

	(void)state;
	add_side(&t, "two", 3);
	add_side(&t, "four", 5);
	assert_int_equal(timeit_judge(&t, &a, NULL), 0);
	assert_true(fabs(a.timings[0].median - 2e-9) < 1e-11);
	assert_true(fabs(a.timings[1].overhead - 1e-9) < 1e-15);
	assert_false(a.comparisons.items[0].compared);
	assert_int_equal(a.comparisons.items[1].paired.verdict, PAIRED_WORSE);
	assert_true(fabs(a.comparisons.items[1].paired.ratio - 2) < 0.01);
	timeit_answer_release(&a);
	timeit_release(&t);
}

static void two_that_leave_nothing_are_below_resolution_and_no_finding(void **state)
{
	struct timeit t = settings();
	struct timeit_answer a;

	(void)state;
	add_side(&t, "", 1.1);
	add_side(&t, "", 1.3);
	assert_int_equal(timeit_judge(&t, &a, NULL), 0);
	assert_true(a.timings[0].warnings & TIMING_NOTHING_LEFT);
	assert_int_equal(a.comparisons.items[1].paired.verdict, PAIRED_BELOW_RESOLUTION);
	timeit_answer_release(&a);
	timeit_release(&t);
}

static void a_report_has_one_line_per_statement_and_a_unit_that_fits(void **state)
{
	struct timeit t = settings();
	struct timeit_answer a;
	struct timing_item items[2];
	struct timing_report r = {.items = items, .count = 2};
	struct buf out;

	(void)state;
	add_side(&t, "a =\n\tb;\033[2J", 4321);
	add_side(&t, "", 5);
	assert_int_equal(timeit_judge(&t, &a, NULL), 0);
	for (size_t i = 0; i < 2; i++)
		items[i] = (struct timing_item){t.sides[i].label, &a.timings[i], 0};
	r.bench = &a.bench;
	r.comparisons = &a.comparisons;
	buf_init(&out);
	timing_text(&r, false, &out);
	assert_non_null(strstr(out.text, "1. a =  b;?[2J\n   time     4.32"));
	assert_non_null(strstr(out.text, " us ["));
	assert_non_null(strstr(out.text, "2. (nothing)\n   time     4.00"));
	assert_non_null(strstr(out.text, " ns ["));
	assert_non_null(strstr(out.text, "faster"));
	buf_release(&out);
	timeit_answer_release(&a);
	timeit_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_an_empty_loop_takes_is_subtracted_before_sides_are_compared),
		cmocka_unit_test(two_that_leave_nothing_are_below_resolution_and_no_finding),
		cmocka_unit_test(a_report_has_one_line_per_statement_and_a_unit_that_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
