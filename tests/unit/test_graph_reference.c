#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/reference.h"

static uint32_t node(struct graph *g, const char *file, const char *name, int64_t calls, double tall)
{
	uint32_t made;

	assert_int_equal(graph_node(g, file, SIZE_MAX, (int64_t)g->node_count, name, SIZE_MAX, NULL, &made, NULL), 0);
	g->nodes[made].nc1 = g->nodes[made].nc2 = calls;
	g->nodes[made].tall = g->nodes[made].tin = tall;
	return made;
}

static void call(struct graph *g, uint32_t caller, uint32_t callee, int64_t calls, double tall)
{
	struct graph_edge *e = graph_edge(g, caller, callee, NULL);

	assert_non_null(e);
	e->nc1 = e->nc2 = calls;
	e->tin = e->tall = tall;
}

static char *text_of(const struct graph *g, const struct graph_rows_options *o, int width, struct error *err)
{
	struct buf out;

	buf_init(&out);
	if (graph_reference_text(g, o, width, &out, err) == 0)
		return buf_detach(&out);
	buf_release(&out);
	return NULL;
}

static void assert_text(const struct graph *g, const struct graph_rows_options *o, int width, const char *expected)
{
	char *text = text_of(g, o, width, NULL);

	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
}

/* main calls f and g; both call h, which is so a root of its own. */
static void make_shared(struct graph *g)
{
	uint32_t m, f, h;

	graph_init(g);
	m = node(g, "a", "main", 1, 4);
	f = node(g, "a", "f", 2, 1);
	call(g, m, f, 2, 1);
	call(g, m, node(g, "a", "g", 3, 2), 3, 2);
	h = node(g, "a", "h", 30, 1.5);
	call(g, f, h, 10, 0.5);
	call(g, m + 2, h, 20, 1);
	assert_int_equal(graph_finish(g, NULL), 0);
}

static void a_function_with_several_callers_is_shown_once_and_referred_to(void **state)
{
	struct graph_rows_options o = {.start = GRAPH_NONE};
	struct graph g;

	(void)state;
	make_shared(&g);
	assert_text(&g, &o, 12,
		    "main         --  1  1 -- 4.00000 4.00000 -- a:0:main (main)\n"
		    "    f        --  2  2 -- 1.00000 1.00000 -- a:1:f (f)\n"
		    "        h    --  10  10 -- 0.50000 0.50000 -- a:3:h (h) +++\n"
		    "    g        --  3  3 -- 2.00000 2.00000 -- a:2:g (g)\n"
		    "        h    --  20  20 -- 1.00000 1.00000 -- a:3:h (h) +++\n"
		    "h            --  30  30 -- 1.50000 1.50000 -- a:3:h (h)");
	graph_release(&g);
}

static void sorted_by_time_the_dearest_call_comes_first(void **state)
{
	struct graph_rows_options o = {.start = GRAPH_NONE, .sort = GRAPH_BY_CUMULATIVE};
	struct graph_rows rows = {0};
	struct graph g;

	(void)state;
	make_shared(&g);
	assert_int_equal(graph_rows(&g, &o, &rows, NULL), 0);
	assert_int_equal(rows.count, 6);
	assert_string_equal(g.nodes[rows.items[1].node].name, "g");
	assert_string_equal(rows.items[1].debug, "A");
	assert_string_equal(rows.items[2].debug, "B");
	assert_true(rows.items[2].more && rows.items[2].tall == 1 && rows.items[2].indent == 2);
	graph_rows_release(&rows);
	graph_release(&g);
}

static void a_function_to_begin_with_leaves_out_what_it_does_not_reach(void **state)
{
	struct graph_rows_options o = {.start = 1};
	struct graph g;

	(void)state;
	make_shared(&g);
	assert_text(&g, &o, 4, "h    --  30  30 -- 1.50000 1.50000 -- a:3:h (h)");
	graph_release(&g);
}

static void names_are_shortened_in_the_middle_by_characters(void **state)
{
	static const struct { int width; const char *shown; } cases[] = {
		{0, "äbcdefghij"}, {1, "äbcdefghi...cdefghij"}, {2, "...bcdefghij"}, {3, "...bcdefghij"},
		{4, "ä...äbcdefghij"}, {6, "äb...j"}, {8, "äbc...ij"}, {9, "äbc...ij"}, {10, "äbcdefghij"},
		{11, "äbcdefghij "},
	};
	struct graph_rows_options o = {.start = GRAPH_NONE};
	struct graph g;

	(void)state;
	graph_init(&g);
	node(&g, "a", "äbcdefghij", 1, 1);
	assert_int_equal(graph_finish(&g, NULL), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char expected[200];

		snprintf(expected, sizeof expected, "%s --  1  1 -- 1.00000 1.00000 -- a:0:äbcdefghij (äbcdefghij)",
			 cases[i].shown);
		assert_text(&g, &o, cases[i].width, expected);
	}
	graph_release(&g);
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
	struct graph_rows_options o = {.start = GRAPH_NONE};
	struct graph g;

	(void)state;
	graph_init(&g);
	node(&g, "a\n", "f\x1b[31m", 1, 1);
	assert_int_equal(graph_finish(&g, NULL), 0);
	assert_text(&g, &o, 0, "f?[31m --  1  1 -- 1.00000 1.00000 -- a?:0:f?[31m (f?[31m)");
	graph_release(&g);
}

static void small_functions_of_pythons_own_modules_are_filtered(void **state)
{
	struct graph_edge large = {.nc1 = 1, .nc2 = 1, .tall = 1e-3};
	struct graph g;
	uint32_t small, often, dear, own;

	(void)state;
	graph_init(&g);
	small = node(&g, "~", "small", 10, 1e-4);
	often = node(&g, "~", "often", 11, 1e-5);
	dear = node(&g, "os.py", "dear", 1, 1.1e-4);
	own = node(&g, "/lib/os.py", "own", 1, 0);
	assert_false(graph_filter_reference(NULL, &g, small, NULL));
	assert_true(graph_filter_reference(NULL, &g, small, &large));
	assert_true(graph_filter_reference(NULL, &g, often, NULL));
	assert_true(graph_filter_reference(NULL, &g, dear, NULL));
	assert_true(graph_filter_reference(NULL, &g, own, NULL));
	graph_release(&g);
}

static void of_calls_with_one_key_in_json_the_last_stands_at_the_place_of_the_first(void **state)
{
	struct graph_rows_options o = {.start = GRAPH_NONE};
	struct buf out;
	struct graph g;
	uint32_t m;

	(void)state;
	graph_init(&g);
	m = node(&g, "a", "m", 1, 1);
	call(&g, m, node(&g, "x", "same", 1, 0.5), 1, 0.5);
	call(&g, m, node(&g, "y", "other", 1, 0.5), 1, 0.5);
	call(&g, m, node(&g, "z", "same", 1, 0.500001), 1, 0.500001);
	assert_int_equal(graph_finish(&g, NULL), 0);
	buf_init(&out);
	assert_int_equal(graph_reference_json(&g, &o, &out, NULL), 0);
	assert_null(strstr(out.text, "x:1:same"));
	assert_true(strstr(out.text, "z:3:same") < strstr(out.text, "y:2:other"));
	buf_release(&out);
	graph_release(&g);
}

/* Each of the four answers into *out, and to o->stream. */
static int answer(const struct graph *g, const struct graph_rows_options *o, int which, struct buf *out)
{
	switch (which) {
	case 0:
		return graph_reference_text(g, o, 60, out, NULL);
	case 1:
		return graph_reference_json(g, o, out, NULL);
	case 2:
		return graph_reference_rows(g, o, out, NULL);
	default:
		return graph_reference_flat(g, o->stream, out, NULL);
	}
}

/* Of a graph whose answers are some hundred kilobytes: how much has gone to the stream before the end; the pieces and
 * what is left must be what an answer without a stream is. */
static size_t in_pieces(const struct graph *g, int which)
{
	struct graph_rows_options o = {.start = GRAPH_NONE};
	char *written;
	size_t before;
	struct buf whole, left;

	buf_init(&whole);
	buf_init(&left);
	assert_int_equal(answer(g, &o, which, &whole), 0);
	o.stream = open_memstream(&written, &before);
	assert_non_null(o.stream);
	assert_int_equal(answer(g, &o, which, &left), 0);
	assert_int_equal(fclose(o.stream), 0);
	assert_true(whole.length > 200000);
	assert_int_equal(before + left.length, whole.length);
	assert_memory_equal(written, whole.text, before);
	assert_string_equal(left.text, whole.text + before);
	free(written);
	buf_release(&whole);
	buf_release(&left);
	return before;
}

static void a_large_answer_is_written_in_pieces_unless_it_could_still_fail(void **state)
{
	struct graph g;

	(void)state;
	graph_init(&g);
	for (uint32_t i = 0; i < 3000; i++)
		node(&g, "a", (char[]){(char)('a' + i % 16), (char)('a' + i / 16 % 16), (char)('a' + i / 256), 0}, 1,
		     i / 7.0);
	for (uint32_t i = 1; i < 3000; i++)
		call(&g, 0, i, 1, i * 1e-9);
	assert_int_equal(graph_finish(&g, NULL), 0);
	for (int which = 0; which < 4; which++)
		assert_true(in_pieces(&g, which) > 100000);
	/* Calls that are not counted are what the JSON has no key for: were there only such, it would fail. */
	g.edges[1].nc2 = 0;
	for (int which = 0; which < 3; which++)
		assert_int_equal(in_pieces(&g, which), 0);
	graph_release(&g);
}

static void what_the_reference_has_no_answer_for_is_a_sentence(void **state)
{
	struct graph_rows_options o = {.start = GRAPH_NONE, .sort = GRAPH_BY_CALLS};
	struct error err;
	struct graph g;

	(void)state;
	make_shared(&g);
	assert_null(text_of(&g, &o, 60, &err));
	assert_string_equal(err.text, "the reference style sorts by line, time or cumulative time, not by calls");
	o.sort = GRAPH_BY_TIME;
	g.edge_costs_estimated = true;
	assert_null(text_of(&g, &o, 60, &err));
	assert_non_null(strstr(err.text, "no times for the calls of 'f' by 'main'"));
	graph_release(&g);
	graph_init(&g);
	node(&g, "~", "f", 0, 0);
	assert_int_equal(graph_finish(&g, NULL), 0);
	assert_null(text_of(&g, &(struct graph_rows_options){.start = GRAPH_NONE}, 60, &err));
	assert_non_null(strstr(err.text, "calls that are counted"));
	o = (struct graph_rows_options){.start = GRAPH_NONE, .keep = graph_filter_reference};
	assert_null(text_of(&g, &o, 60, &err));
	assert_non_null(strstr(err.text, "no function is left to show"));
	graph_release(&g);
}

static void calls_a_million_deep_are_rows_and_no_text(void **state)
{
	enum { COUNT = 1000000 };
	struct graph_rows_options o = {.start = GRAPH_NONE};
	struct graph_rows rows = {0};
	struct error err;
	struct buf out;
	struct graph g;

	(void)state;
	graph_init(&g);
	for (uint32_t i = 0; i < COUNT; i++) {
		char name[16];

		snprintf(name, sizeof name, "f%u", i);
		node(&g, "a", name, 1, 1);
		if (i)
			call(&g, i - 1, i, 1, 1);
	}
	assert_int_equal(graph_finish(&g, NULL), 0);
	assert_int_equal(graph_rows(&g, &o, &rows, NULL), 0);
	assert_int_equal(rows.count, COUNT);
	assert_int_equal(rows.items[COUNT - 1].indent, COUNT - 1);
	assert_null(text_of(&g, &o, 60, &err));
	assert_non_null(strstr(err.text, "use --format json or rows"));
	buf_init(&out);
	assert_int_equal(graph_reference_json(&g, &o, &out, NULL), 0);
	assert_int_equal(out.text[out.length - 1], '}');
	buf_release(&out);
	graph_rows_release(&rows);
	graph_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_with_several_callers_is_shown_once_and_referred_to),
		cmocka_unit_test(sorted_by_time_the_dearest_call_comes_first),
		cmocka_unit_test(a_function_to_begin_with_leaves_out_what_it_does_not_reach),
		cmocka_unit_test(names_are_shortened_in_the_middle_by_characters),
		cmocka_unit_test(control_characters_do_not_reach_the_terminal),
		cmocka_unit_test(small_functions_of_pythons_own_modules_are_filtered),
		cmocka_unit_test(of_calls_with_one_key_in_json_the_last_stands_at_the_place_of_the_first),
		cmocka_unit_test(a_large_answer_is_written_in_pieces_unless_it_could_still_fail),
		cmocka_unit_test(what_the_reference_has_no_answer_for_is_a_sentence),
		cmocka_unit_test(calls_a_million_deep_are_rows_and_no_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
