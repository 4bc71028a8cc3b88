#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/plot.h"
#include "report/plot_boxes.h"
#include "report/plot_selection.h"
#include "report/plot_sheet.h"
#include "report/plot_table.h"
#include "report/region_nest.h"

static void add(struct boxes *b, size_t row, uint32_t region, int64_t start, int64_t end)
{
	struct box box = {.start = start, .end = end, .busy = end - start, .calls = 1, .region = region};

	assert_int_equal(boxes_add(b, row, &box, NULL), 0);
}

static void calls_narrower_than_a_cell_become_one_box_of_the_region_that_fills_it(void **state)
{
	struct boxes b;
	size_t row;

	(void)state;
	boxes_init(&b, 100);
	assert_int_equal(boxes_add_row(&b, &row, NULL), 0);
	add(&b, row, 1, 0, 250);
	add(&b, row, 2, 300, 310);
	add(&b, row, 3, 320, 380);
	add(&b, row, 2, 390, 395);
	add(&b, row, 1, 500, 700);
	assert_int_equal(boxes_finish(&b, 100, NULL), 0);
	assert_int_equal(b.rows[row].count, 3);
	assert_int_equal(b.rows[row].boxes[0].end, 250);
	assert_int_equal(b.rows[row].boxes[1].region, 3);
	assert_int_equal(b.rows[row].boxes[1].busy, 60);
	assert_int_equal(b.rows[row].boxes[1].calls, 1);
	assert_int_equal(b.rows[row].boxes[1].others, 2);
	assert_int_equal(b.rows[row].boxes[2].start, 500);
	boxes_release(&b);
}

static void a_million_narrow_calls_are_few_boxes_and_none_is_lost(void **state)
{
	uint64_t calls = 0;
	int64_t busy = 0, before = 0;
	struct boxes b;
	size_t row;

	(void)state;
	boxes_init(&b, 1000);
	assert_int_equal(boxes_add_row(&b, &row, NULL), 0);
	for (int64_t i = 0; i < 1000000; i++)
		add(&b, row, (uint32_t)(i / 1000 % 2), 20 * i, 20 * i + 15);
	assert_int_equal(boxes_finish(&b, 500, NULL), 0);
	assert_in_range(b.total, 1, 500);
	for (size_t i = 0; i < b.rows[row].count; i++) {
		const struct box *box = &b.rows[row].boxes[i];

		assert_true(box->start >= before && box->end > box->start);
		before = box->start;
		calls += box->calls + box->others;
		busy += box->busy;
	}
	assert_int_equal(calls, 1000000);
	assert_in_range(busy, 1, 15000000);
	boxes_release(&b);
}

static void what_cannot_be_fewer_than_one_box_a_row_ends_there(void **state)
{
	struct boxes b;
	size_t row;

	(void)state;
	boxes_init(&b, 1);
	for (size_t i = 0; i < 50; i++) {
		assert_int_equal(boxes_add_row(&b, &row, NULL), 0);
		for (int64_t j = 0; j < 20; j++)
			add(&b, row, 1, 100 * j, 100 * j + 50);
	}
	assert_int_equal(boxes_finish(&b, 10, NULL), 0);
	assert_int_equal(b.total, 50);
	boxes_release(&b);
}

static uint32_t enter(struct nest *n, int64_t start, int64_t end, int64_t call, int64_t parent, bool by_number)
{
	struct region_call c = {.start = start, .end = end, .call = call, .parent = parent, .thread = -1};
	struct nest_entry *entry;
	uint32_t around;
	size_t lane;

	assert_int_equal(nest_enter(n, 0, &c, by_number, &lane, &entry, &around, NULL), 0);
	assert_int_equal(lane, 0);
	entry->node = (uint32_t)call;
	return around;
}

static void a_call_lies_in_the_innermost_one_that_ends_no_earlier(void **state)
{
	struct nest n;

	(void)state;
	nest_init(&n);
	assert_int_equal(enter(&n, 0, 100, 1, -1, false), UINT32_MAX);
	assert_int_equal(enter(&n, 10, 50, 2, -1, false), 1);
	assert_int_equal(enter(&n, 20, 60, 3, -1, false), 1);
	assert_int_equal(n.overlaps, 1);
	assert_int_equal(enter(&n, 30, 40, 4, -1, false), 3);
	assert_int_equal(enter(&n, 60, 60, 5, -1, false), 1);
	assert_int_equal(enter(&n, 100, 200, 6, -1, false), UINT32_MAX);
	nest_release(&n);
}

static void a_parent_that_is_open_is_believed_by_number(void **state)
{
	struct nest n;

	(void)state;
	nest_init(&n);
	assert_int_equal(enter(&n, 0, 100, 1, -1, true), UINT32_MAX);
	assert_int_equal(enter(&n, 10, 50, 2, 1, true), 1);
	assert_int_equal(enter(&n, 20, 70, 3, 2, true), 2);
	assert_int_equal(enter(&n, 30, 40, 4, -1, true), UINT32_MAX);
	assert_int_equal(enter(&n, 32, 34, 5, 77, true), 4); /* its parent is not shown: by time */
	assert_int_equal(enter(&n, 90, 90, 6, 1, true), 1);
	assert_int_equal(enter(&n, 90, 90, 7, 6, true), 6); /* of no length, in one of no length */
	nest_release(&n);
}

static void calls_that_overlap_for_long_are_forgotten_when_they_have_ended(void **state)
{
	struct nest n;

	(void)state;
	nest_init(&n);
	assert_int_equal(enter(&n, 0, 100000000, 0, -1, false), UINT32_MAX);
	for (int64_t i = 1; i < 100000; i++)
		assert_int_equal(enter(&n, 10 * i, 10 * i + 1000, i, -1, false), 0);
	assert_in_range(n.lanes[0].room, 16, 1024);
	nest_release(&n);
}

static void more_threads_than_can_be_told_apart_share_a_lane(void **state)
{
	struct nest n;
	struct nest_entry *entry;
	uint32_t around;
	size_t lane, most = 0;

	(void)state;
	nest_init(&n);
	for (int32_t i = 0; i < 20000; i++) {
		struct region_call c = {.start = i, .end = i + 1, .call = -1, .parent = -1, .thread = i};

		assert_int_equal(nest_enter(&n, 3, &c, false, &lane, &entry, &around, NULL), 0);
		most = lane > most ? lane : most;
	}
	assert_in_range(n.threads.count, 2, 5000);
	assert_true(most < n.threads.count);
	nest_release(&n);
}

static void a_region_has_one_colour_and_regions_have_many(void **state)
{
	size_t different = 0;
	struct canvas_colour a = plot_colour("solve"), b = plot_colour("solve");

	(void)state;
	assert_memory_equal(&a, &b, sizeof a);
	for (int i = 0; i < 100; i++) {
		char name[32];
		struct canvas_colour c;

		snprintf(name, sizeof name, "region%d", i);
		c = plot_colour(name);
		assert_int_equal(c.a, 255);
		different += c.r != a.r || c.g != a.g || c.b != a.b;
	}
	assert_in_range(different, 80, 100);
}

static void ticks_are_round_and_within_the_axis(void **state)
{
	struct sheet_ticks t;

	(void)state;
	sheet_ticks_linear(&t, 0, 0.83, 6);
	assert_int_equal(t.n, 5);
	assert_string_equal(t.label[0], "0.0");
	assert_string_equal(t.label[4], "0.8");
	sheet_ticks_linear(&t, 60, 80, 5);
	assert_int_equal(t.n, 5);
	assert_string_equal(t.label[1], "65");
	sheet_ticks_linear(&t, 5, 5, 6);
	assert_int_equal(t.n, 0);
	sheet_ticks_decades(&t, 80, 2.5e9);
	assert_string_equal(t.label[0], "100 ns");
	assert_string_equal(t.label[1], "1 \xc2\xb5s");
	assert_string_equal(t.label[t.n - 1], "1 s");
}

static char *table(enum plot_data_format format)
{
	static const char *const columns[] = {"name", "count", "figure", NULL};
	struct plot_table t;
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	plot_table_begin(&t, out, format, "test", columns);
	plot_table_text(&t, "a \"b\", <c>");
	plot_table_integer(&t, -3);
	plot_table_number(&t, 0.5);
	plot_table_unknown(&t);
	plot_table_integer(&t, INT64_MAX);
	plot_table_number(&t, NAN);
	assert_int_equal(plot_table_end(&t, NULL), 0);
	fclose(out);
	return text;
}

static void data_are_quoted_csv_or_json(void **state)
{
	char *csv = table(PLOT_DATA_CSV), *json = table(PLOT_DATA_JSON);

	(void)state;
	assert_string_equal(csv, "name,count,figure\r\n\"a \"\"b\"\", <c>\",-3,0.5\r\n,9223372036854775807,\r\n");
	assert_string_equal(json, "{\"plot\": \"test\", \"rows\": [\n"
				  "{\"name\": \"a \\\"b\\\", <c>\", \"count\": -3, \"figure\": 0.5},\n"
				  "{\"name\": null, \"count\": 9223372036854775807, \"figure\": null}\n]}\n");
	free(csv);
	free(json);
}

static void the_order_of_figures_is_stable(void **state)
{
	const double figures[] = {1, 5, -1, 5, 0};
	uint32_t order[5];

	(void)state;
	assert_int_equal(plot_order(figures, 5, order), 3);
	assert_int_equal(order[0], 1);
	assert_int_equal(order[1], 3);
	assert_int_equal(order[2], 0);
	assert_int_equal(order[4], 2);
}

static void times_that_make_no_sense_are_known(void **state)
{
	(void)state;
	assert_true(region_call_is_sound(-5, -5));
	assert_false(region_call_is_sound(2, 1));
	assert_false(region_call_is_sound(INT64_MIN, 1));
	assert_false(region_call_is_sound(1, INT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_narrower_than_a_cell_become_one_box_of_the_region_that_fills_it),
		cmocka_unit_test(a_million_narrow_calls_are_few_boxes_and_none_is_lost),
		cmocka_unit_test(what_cannot_be_fewer_than_one_box_a_row_ends_there),
		cmocka_unit_test(a_call_lies_in_the_innermost_one_that_ends_no_earlier),
		cmocka_unit_test(a_parent_that_is_open_is_believed_by_number),
		cmocka_unit_test(calls_that_overlap_for_long_are_forgotten_when_they_have_ended),
		cmocka_unit_test(more_threads_than_can_be_told_apart_share_a_lane),
		cmocka_unit_test(a_region_has_one_colour_and_regions_have_many),
		cmocka_unit_test(ticks_are_round_and_within_the_axis),
		cmocka_unit_test(data_are_quoted_csv_or_json),
		cmocka_unit_test(the_order_of_figures_is_stable),
		cmocka_unit_test(times_that_make_no_sense_are_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
