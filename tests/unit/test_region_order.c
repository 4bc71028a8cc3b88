#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "hdf5_plugin.h"
#include "report/region_nest.h"
#include "report/region_order.h"

#define RANKS 4
#define CALLS ((size_t)(RANKS * 526))

struct visited {
	struct region_call calls[CALLS];
	size_t count;
};

static int note_call(void *context, const struct region_call *c, struct error *err)
{
	struct visited *v = context;

	(void)err;
	assert_true(v->count < CALLS);
	v->calls[v->count++] = *c;
	return 0;
}

static struct region_file *open_ranks(void)
{
	const char *folder = getenv("ASSAY_TEST_DATA");
	struct region_file *f = NULL;
	struct error err = {{0}};
	char path[4096];

	snprintf(path, sizeof path, "%s/regions/mpi4.h5", folder ? folder : "tests/data");
	if (region_file_open(path, &f, &err) < 0)
		fail_msg("%s", err.text);
	return f;
}

static void visit(struct region_file *f, bool by_thread, uint64_t slice, struct visited *ret)
{
	const struct region_visit visit = {.from = INT64_MIN, .to = INT64_MAX, .call = note_call, .context = ret};
	bool *wanted = calloc(region_file_regions(f)->part_count, sizeof *wanted);
	struct region_span span;
	struct region_order o;
	struct error err = {{0}};

	assert_non_null(wanted);
	memset(wanted, true, region_file_regions(f)->part_count);
	memset(ret, 0, sizeof *ret);
	region_order_init(&o);
	o.slice_calls = slice ? slice : o.slice_calls;
	assert_int_equal(region_span_read(f, wanted, &span, &err), 0);
	assert_int_equal(span.calls, CALLS);
	if (by_thread)
		assert_int_equal(region_order_by_thread(&o, f, wanted, &err), 0);
	else
		assert_int_equal(region_order_by_time(&o, f, wanted, &span, &err), 0);
	if (region_order_visit(&o, &visit, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ret->count, CALLS);
	region_order_release(&o);
	free(wanted);
}

static void slices_make_no_difference(void **state)
{
	static const uint64_t slices[] = {20, 100, 526, 600, 1100, 2000};
	static struct visited whole, cut;
	struct region_file *f;

	(void)state;
	need_plugin();
	f = open_ranks();
	for (int by_thread = 0; by_thread < 2; by_thread++) {
		visit(f, by_thread, 0, &whole);
		for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
			visit(f, by_thread, slices[i], &cut);
			assert_memory_equal(cut.calls, whole.calls, sizeof whole.calls);
		}
	}
	region_file_free(f);
}

static void calls_come_by_time_or_by_rank_and_time(void **state)
{
	static struct visited v;
	const struct region_part *parts;
	struct region_file *f;

	(void)state;
	need_plugin();
	f = open_ranks();
	parts = region_file_regions(f)->parts;
	visit(f, false, 0, &v);
	for (size_t i = 1; i < v.count; i++)
		assert_true(v.calls[i - 1].start <= v.calls[i].start);
	visit(f, true, 0, &v);
	for (size_t i = 1; i < v.count; i++) {
		uint32_t last = parts[v.calls[i - 1].part].rank, rank = parts[v.calls[i].part].rank;

		assert_true(last < rank || (last == rank && v.calls[i - 1].start <= v.calls[i].start));
	}
	region_file_free(f);
}

static void more_calls_in_one_nanosecond_than_a_slice_holds_are_an_error(void **state)
{
	static struct visited v;
	const struct region_visit visit = {.from = INT64_MIN, .to = INT64_MAX, .call = note_call, .context = &v};
	struct region_span span = {.first = 5, .last = 5, .calls = 11};
	struct region_order o;
	struct error err = {{0}};
	struct region_file *f;
	bool wanted[20] = {true};

	(void)state;
	need_plugin();
	f = open_ranks();
	region_order_init(&o);
	o.slice_calls = 10;
	assert_int_equal(region_order_by_time(&o, f, wanted, &span, &err), 0);
	assert_int_equal(region_order_visit(&o, &visit, &err), -1);
	assert_non_null(strstr(err.text, "11 calls begin in the same nanosecond"));
	region_order_release(&o);
	region_file_free(f);
}

static uint32_t place(struct region_stacks *s, int64_t start, int64_t end)
{
	uint32_t stack;

	assert_int_equal(region_stacks_place(s, start, end, &stack, NULL), 0);
	return stack;
}

static void a_call_stands_in_the_first_stack_where_it_cuts_no_other_one(void **state)
{
	struct region_stacks s;

	(void)state;
	assert_int_equal(region_stacks_init(&s, 2, NULL), 0);
	assert_int_equal(place(&s, 0, 100), 0);
	assert_int_equal(place(&s, 10, 50), 0);
	assert_int_equal(place(&s, 20, 60), 1);
	assert_int_equal(place(&s, 30, 70), 2); /* none: it cuts one in both */
	assert_int_equal(place(&s, 50, 100), 0);
	assert_int_equal(place(&s, 60, 200), 1);
	region_stacks_clear(&s);
	assert_int_equal(place(&s, 0, 1000), 0);
	region_stacks_release(&s);
}

static void a_stack_has_a_bottom(void **state)
{
	struct region_stacks s;

	(void)state;
	assert_int_equal(region_stacks_init(&s, 1, NULL), 0);
	for (size_t i = 0; i < REGION_STACK_DEPTH_MAX; i++)
		assert_int_equal(place(&s, (int64_t)i, INT64_MAX - (int64_t)i), 0);
	assert_int_equal(place(&s, 100000, 100001), 1);
	region_stacks_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_make_no_difference),
		cmocka_unit_test(calls_come_by_time_or_by_rank_and_time),
		cmocka_unit_test(more_calls_in_one_nanosecond_than_a_slice_holds_are_an_error),
		cmocka_unit_test(a_call_stands_in_the_first_stack_where_it_cuts_no_other_one),
		cmocka_unit_test(a_stack_has_a_bottom),
	};

	return cmocka_run_group_tests(tests, find_plugin, NULL);
}
