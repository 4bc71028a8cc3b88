#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "graph/tree.h"
#include "graph_rows.h"

#define NODES_MAX 16

/* One call from each to the next costs what it says; the callee's own figures are summed up from these. */
static void call(struct graph *g, const char *from, const char *to, double tall, double tin, int64_t calls)
{
	uint32_t caller = node(g, from), callee = node(g, to);
	struct graph_edge *e = graph_edge(g, caller, callee, NULL);

	assert_non_null(e);
	e->tall += tall;
	e->tin += tin;
	e->nc1 = e->nc2 += calls;
	if (caller != callee) {
		g->nodes[callee].tall += tall;
		g->nodes[callee].nc1 += calls;
	}
	g->nodes[callee].tin += tin;
	g->nodes[callee].nc2 += calls;
}

static void root(struct graph *g, const char *name, double tall, double tin)
{
	uint32_t at = node(g, name);

	g->nodes[at].tall = tall;
	g->nodes[at].tin = tin;
	g->nodes[at].nc1 = g->nodes[at].nc2 = 1;
}

/* fct4 calls fct2 and fct3, which both call fct1, which calls sleep, which fct3 also calls by fct0. */
static void make_shared(struct graph *g)
{
	begin(g);
	root(g, "fct4", 10, 1);
	call(g, "fct4", "fct2", 3, 1, 1);
	call(g, "fct4", "fct3", 6, 0, 1);
	call(g, "fct2", "fct1", 2, 0.5, 2);
	call(g, "fct3", "fct1", 4, 1.5, 1);
	call(g, "fct3", "fct0", 2, 0, 1);
	call(g, "fct1", "sleep", 4, 4, 3);
	call(g, "fct0", "sleep", 2, 2, 1);
}

static void what_lies_below_a_shared_function_is_divided_by_what_its_callers_spent_and_marked(void **state)
{
	struct graph g;
	struct graph_tree t;

	(void)state;
	make_shared(&g);
	build(&g, &everything, &t);
	assert_near(t.whole, 10);
	assert_near(AT("fct4")->share, 1);
	assert_near(AT("fct4", "fct3")->share, 0.6);
	assert_near(AT("fct4", "fct2", "fct1")->total, 2);
	assert_near(AT("fct4", "fct2", "fct1")->self, 0.5);
	assert_false(AT("fct4", "fct2", "fct1")->estimated);
	/* fct1 spent 1.5 of 4 below itself for fct2, and 2.5 for fct3. */
	assert_near(AT("fct4", "fct2", "fct1", "sleep")->total, 1.5);
	assert_near(AT("fct4", "fct3", "fct1", "sleep")->total, 2.5);
	assert_true(AT("fct4", "fct2", "fct1", "sleep")->estimated);
	/* fct0 has one caller: its part of sleep is known. */
	assert_near(AT("fct4", "fct3", "fct0", "sleep")->total, 2);
	assert_false(AT("fct4", "fct3", "fct0", "sleep")->estimated);
	assert_near(AT("fct4", "fct3", "fct0", "sleep")->share_of_parent, 1);
	assert_adds_up(&t);
	graph_tree_release(&t);
	graph_release(&g);
}

static void where_edges_do_not_tell_the_self_of_a_shared_function_it_is_marked(void **state)
{
	struct graph g;
	struct graph_tree t;

	(void)state;
	begin(&g);
	root(&g, "main", 6, 0);
	call(&g, "main", "a", 4, 0, 1);
	call(&g, "main", "b", 2, 0, 1);
	call(&g, "a", "c", 4, 0, 1);
	call(&g, "b", "c", 2, 0, 1);
	g.nodes[node(&g, "c")].tin = 6;
	build(&g, &everything, &t);
	assert_near(AT("main", "a", "c")->self, 4);
	assert_true(AT("main", "a", "c")->self_estimated);
	assert_false(AT("main", "a", "c")->estimated);
	assert_adds_up(&t);
	graph_tree_release(&t);
	graph_release(&g);
}

static void a_self_that_a_reader_has_divided_among_the_callers_is_marked(void **state)
{
	struct graph g;
	struct graph_tree t;

	(void)state;
	make_shared(&g);
	g.edge_selfs_estimated = true;
	build(&g, &everything, &t);
	assert_true(AT("fct4", "fct2", "fct1")->self_estimated);
	assert_near(AT("fct4", "fct2", "fct1")->self, 2.0 / 3); /* of 2, a third of what fct1 cost */
	assert_false(AT("fct4", "fct2", "fct1")->estimated);
	assert_false(AT("fct4", "fct2")->self_estimated);
	assert_adds_up(&t);
	graph_tree_release(&t);
	graph_release(&g);
}

static void calls_that_come_back_belong_to_the_row_of_their_function(void **state)
{
	struct graph g;
	struct graph_tree t;

	(void)state;
	begin(&g);
	root(&g, "main", 10, 0);
	call(&g, "main", "fib", 10, 2, 1);
	call(&g, "fib", "fib", 9, 7, 88);
	call(&g, "fib", "leaf", 1, 1, 5);
	build(&g, &everything, &t);
	assert_int_equal(t.count, 3);
	assert_near(AT("main", "fib")->total, 10);
	assert_near(AT("main", "fib")->self, 9);
	assert_int_equal(AT("main", "fib")->calls, 89);
	assert_true(AT("main", "fib")->recursive);
	assert_near(AT("main", "fib", "leaf")->total, 1);
	assert_false(AT("main", "fib", "leaf")->estimated);
	assert_adds_up(&t);
	graph_tree_release(&t);
	graph_release(&g);
}

static void functions_that_call_each_other_never_add_up_to_more_than_there_is(void **state)
{
	struct graph g;
	struct graph_tree t;

	(void)state;
	begin(&g);
	root(&g, "main", 10, 0);
	call(&g, "main", "a", 10, 1, 1);
	call(&g, "a", "b", 9, 2, 4);
	call(&g, "a", "c", 9, 3, 4);
	call(&g, "b", "a", 8, 1, 3);
	call(&g, "c", "a", 8, 3, 3);
	for (size_t i = 0; i < g.node_count; i++)
		if (strcmp(g.nodes[i].name, "a") == 0)
			g.nodes[i].tall = 10; /* as a profiler has it, which counts recursion once */
	build(&g, &everything, &t);
	assert_adds_up(&t);
	assert_near(AT("main", "a")->share, 1);
	assert_true(AT("main", "a")->recursive);
	assert_true(AT("main", "a", "b")->estimated);
	graph_tree_release(&t);
	graph_release(&g);
}

static void where_everything_is_a_cycle_there_is_still_one_root(void **state)
{
	struct graph g;
	struct graph_tree t;

	(void)state;
	begin(&g);
	call(&g, "a", "b", 4, 4, 1);
	call(&g, "b", "c", 5, 5, 1);
	call(&g, "c", "a", 6, 6, 1);
	build(&g, &everything, &t);
	assert_int_equal(t.rows[0].node, graph_root(&g));
	assert_int_equal(t.count, 3);
	assert_adds_up(&t);
	graph_tree_release(&t);
	graph_release(&g);
}

static void a_function_that_only_calls_itself_and_one_beside_it_are_both_roots(void **state)
{
	struct graph g;
	struct graph_tree t;

	(void)state;
	begin(&g);
	root(&g, "other", 4, 4);
	root(&g, "self", 6, 6);
	call(&g, "self", "self", 5, 0, 9);
	build(&g, &everything, &t);
	assert_int_equal(t.count, 2);
	assert_near(AT("self")->share, 0.6);
	assert_near(AT("other")->share, 0.4);
	assert_true(AT("self")->recursive);
	graph_tree_release(&t);
	graph_release(&g);
}

static void small_calls_are_summed_up_in_one_row_behind_the_others(void **state)
{
	struct graph_tree_options o = everything;
	struct graph g;
	struct graph_tree t;

	(void)state;
	begin(&g);
	root(&g, "main", 100, 90);
	call(&g, "main", "big", 8, 8, 1);
	call(&g, "main", "small", 1.5, 1.5, 1);
	call(&g, "main", "tiny", 0.5, 0.5, 1);
	o.min_share = 0.02;
	build(&g, &o, &t);
	assert_int_equal(t.count, 3);
	assert_int_equal(t.rows[2].hidden, 2);
	assert_int_equal(t.rows[2].parent, 0);
	assert_near(t.rows[2].share, 0.02);
	graph_tree_release(&t);
	graph_release(&g);
}

static void a_root_of_ones_choice_is_the_whole(void **state)
{
	struct graph_tree_options o = everything;
	struct graph g;
	struct graph_tree t;

	(void)state;
	make_shared(&g);
	o.root = node(&g, "fct1");
	build(&g, &o, &t);
	assert_near(t.whole, 6);
	assert_int_equal(t.count, 2);
	assert_near(AT("fct1")->share, 1);
	assert_near(AT("fct1", "sleep")->total, 4);
	assert_false(AT("fct1", "sleep")->estimated);
	graph_tree_release(&t);
	graph_release(&g);
}

static void siblings_stand_in_each_of_the_four_orders(void **state)
{
	static const char *const wanted[] = {
		[GRAPH_BY_LINE] = "abc", [GRAPH_BY_TIME] = "bca", [GRAPH_BY_CUMULATIVE] = "cba",
		[GRAPH_BY_CALLS] = "acb"};
	struct graph_tree_options o = everything;
	struct graph g;

	(void)state;
	begin(&g);
	root(&g, "main", 9, 0);
	call(&g, "main", "c", 4, 2, 5);
	call(&g, "main", "b", 3, 3, 1);
	call(&g, "main", "a", 2, 1, 9);
	for (size_t i = 0; i < g.node_count; i++)
		g.nodes[i].line = g.nodes[i].name[0];
	assert_int_equal(graph_finish(&g, NULL), 0);
	for (int sort = GRAPH_BY_LINE; sort <= GRAPH_BY_CALLS; sort++) {
		struct graph_tree t;

		o.sort = (enum graph_sort)sort;
		build(&g, &o, &t);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(g.nodes[t.rows[1 + i].node].name[0], wanted[sort][i]);
		graph_tree_release(&t);
	}
	graph_release(&g);
}

static void deeper_levels_are_cut_and_the_row_above_says_so(void **state)
{
	struct graph_tree_options o = everything;
	struct graph g;
	struct graph_tree t;

	(void)state;
	o.depth = 1;
	make_shared(&g);
	build(&g, &o, &t);
	assert_int_equal(t.count, 3);
	assert_true(AT("fct4", "fct3")->cut);
	assert_false(AT("fct4")->cut);
	graph_tree_release(&t);
	graph_release(&g);
	begin(&g);
	way(&g, "abc", 1);
	build(&g, &o, &t);
	assert_int_equal(t.count, 2);
	assert_true(AT("a", "b")->cut);
	assert_false(AT("a")->cut);
	graph_tree_release(&t);
	graph_release(&g);
}

/* Each of 40 levels calls two functions that both call the next level: 2^40 ways. */
static void a_graph_of_more_ways_than_fit_anywhere_is_cut_and_says_so(void **state)
{
	struct graph g;
	struct graph_tree t;

	(void)state;
	begin(&g);
	root(&g, "l0", 100, 0);
	for (int i = 0; i < 40; i++) {
		char from[8], left[8], right[8], to[8];

		snprintf(from, sizeof from, "l%d", i);
		snprintf(left, sizeof left, "x%d", i);
		snprintf(right, sizeof right, "y%d", i);
		snprintf(to, sizeof to, "l%d", i + 1);
		call(&g, from, left, 50, 0, 1);
		call(&g, from, right, 50, 0, 1);
		call(&g, left, to, 50, 0, 1);
		call(&g, right, to, 50, 0, 1);
	}
	g.nodes[node(&g, "l40")].tin = 100;
	build(&g, &everything, &t);
	assert_true(t.too_large);
	assert_in_range(t.count, GRAPH_TREE_ROWS_MAX, GRAPH_TREE_ROWS_MAX + 2);
	assert_adds_up(&t);
	graph_tree_release(&t);
	graph_release(&g);
}

static void a_chain_of_a_million_calls_is_neither_too_deep_to_walk_nor_to_print(void **state)
{
	struct graph_tree_options o = everything;
	CLEANUP(buf_release) struct buf out;
	struct graph g;
	struct graph_tree t;
	uint32_t before = 0, now;

	(void)state;
	buf_init(&out);
	begin(&g);
	for (int i = 0; i < 1000000; i++) {
		char name[16];

		snprintf(name, sizeof name, "f%d", i);
		now = node(&g, name);
		assert_int_equal(graph_way(&g, before, now, &before, NULL), 0);
	}
	g.ways[before].self = 1;
	o.columns = 80;
	build(&g, &o, &t);
	assert_int_equal(t.count, 1000000);
	assert_int_equal(t.rows[999999].depth, 999999);
	assert_int_equal(graph_tree_text(&g, &t, &o, &out), 0);
	assert_non_null(strstr(out.text, "f999999"));
	graph_tree_release(&t);
	graph_release(&g);
}

static bool drop_sleep(void *context, const struct graph *g, uint32_t n, const struct graph_edge *edge)
{
	assert_ptr_equal(context, g);
	assert_true(edge == NULL || edge->callee == n);
	return strcmp(g->nodes[n].name, "sleep") != 0;
}

static void what_a_filter_drops_is_summed_up(void **state)
{
	struct graph_tree_options o = everything;
	struct graph g;
	struct graph_tree t;

	(void)state;
	make_shared(&g);
	o.keep = drop_sleep;
	o.context = &g;
	build(&g, &o, &t);
	for (size_t i = 0; i < t.count; i++)
		assert_true(t.rows[i].hidden || strcmp(g.nodes[t.rows[i].node].name, "sleep") != 0);
	assert_int_equal(t.rows[t.count - 1].hidden, 1);
	graph_tree_release(&t);
	graph_release(&g);
}

static void the_text_has_tree_lines_shares_and_an_explanation(void **state)
{
	static const char wanted[] =
		"10.0 s in 6 functions\n"
		"\n"
		" share  of caller    total      self  calls  function\n"
		"100.0%              10.0 s    1.00 s      1  fct4  a.c:1\n"
		" 60.0%      60.0%   6.00 s       0 s      1  |-fct3  a.c:1\n"
		" 40.0%      66.7%   4.00 s    1.50 s      1  | |-fct1  a.c:1\n"
		"~25.0%     ~62.5%  ~2.50 s   ~2.50 s     ~2  | | `-sleep  a.c:1\n"
		" 20.0%      33.3%   2.00 s       0 s      1  | `-fct0  a.c:1\n"
		" 20.0%     100.0%   2.00 s    2.00 s      1  |   `-sleep  a.c:1\n"
		" 30.0%      30.0%   3.00 s    1.00 s      1  `-fct2  a.c:1\n"
		" 20.0%      66.7%   2.00 s  500.0 ms      2    `-fct1  a.c:1\n"
		"~15.0%     ~75.0%  ~1.50 s   ~1.50 s     ~1      `-sleep  a.c:1\n"
		"\n"
		"~ is an estimate: the file says who called whom, but not on which way. What a function with several\n"
		"  callers calls is divided among them by what each spent in it.\n";
	CLEANUP(buf_release) struct buf out;
	struct graph g;
	struct graph_tree t;

	(void)state;
	buf_init(&out);
	make_shared(&g);
	build(&g, &everything, &t);
	assert_int_equal(graph_tree_text(&g, &t, &everything, &out), 0);
	assert_string_equal(out.text, wanted);
	graph_tree_release(&t);
	graph_release(&g);
}

static void a_graph_without_a_function_or_a_cost_is_shown_without_a_share(void **state)
{
	CLEANUP(buf_release) struct buf out;
	struct graph g;
	struct graph_tree t;

	(void)state;
	buf_init(&out);
	begin(&g);
	build(&g, &everything, &t);
	assert_int_equal(t.count, 0);
	assert_int_equal(graph_tree_text(&g, &t, &everything, &out), 0);
	assert_non_null(strstr(out.text, "0 functions"));
	graph_tree_release(&t);
	graph_release(&g);
	begin(&g);
	call(&g, "a", "b", 0, 0, 1);
	build(&g, &everything, &t);
	assert_int_equal(t.count, 2);
	assert_adds_up(&t);
	graph_tree_release(&t);
	graph_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_lies_below_a_shared_function_is_divided_by_what_its_callers_spent_and_marked),
		cmocka_unit_test(where_edges_do_not_tell_the_self_of_a_shared_function_it_is_marked),
		cmocka_unit_test(a_self_that_a_reader_has_divided_among_the_callers_is_marked),
		cmocka_unit_test(calls_that_come_back_belong_to_the_row_of_their_function),
		cmocka_unit_test(functions_that_call_each_other_never_add_up_to_more_than_there_is),
		cmocka_unit_test(where_everything_is_a_cycle_there_is_still_one_root),
		cmocka_unit_test(a_function_that_only_calls_itself_and_one_beside_it_are_both_roots),
		cmocka_unit_test(small_calls_are_summed_up_in_one_row_behind_the_others),
		cmocka_unit_test(a_root_of_ones_choice_is_the_whole),
		cmocka_unit_test(siblings_stand_in_each_of_the_four_orders),
		cmocka_unit_test(deeper_levels_are_cut_and_the_row_above_says_so),
		cmocka_unit_test(a_graph_of_more_ways_than_fit_anywhere_is_cut_and_says_so),
		cmocka_unit_test(a_chain_of_a_million_calls_is_neither_too_deep_to_walk_nor_to_print),
		cmocka_unit_test(what_a_filter_drops_is_summed_up),
		cmocka_unit_test(the_text_has_tree_lines_shares_and_an_explanation),
		cmocka_unit_test(a_graph_without_a_function_or_a_cost_is_shown_without_a_share),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
