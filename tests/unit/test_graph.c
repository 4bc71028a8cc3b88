#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

static uint32_t node(struct graph *g, const char *file, const char *name)
{
	uint32_t made;

	assert_int_equal(graph_node(g, file, SIZE_MAX, 1, name, SIZE_MAX, NULL, &made, NULL), 0);
	return made;
}

static void call(struct graph *g, uint32_t caller, uint32_t callee)
{
	struct graph_edge *e = graph_edge(g, caller, callee, NULL);

	assert_non_null(e);
	e->nc2++;
}

static void stack(struct graph *g, const char *frames, double self)
{
	uint32_t way = 0;

	for (; *frames; frames++)
		assert_int_equal(graph_way(g, way, node(g, "", (char[]){*frames, 0}), &way, NULL), 0);
	g->ways[way].self += self;
	g->ways[way].calls++;
}

static const struct graph_node *named(const struct graph *g, const char *name)
{
	uint32_t found;

	assert_int_equal(graph_find(g, name, &found, 1), 1);
	return &g->nodes[found];
}

static void a_function_is_kept_once(void **state)
{
	struct graph g;
	uint32_t first, again, other;

	(void)state;
	graph_init(&g);
	assert_int_equal(graph_node(&g, "a.c", SIZE_MAX, 3, "f", SIZE_MAX, NULL, &first, NULL), 0);
	assert_int_equal(graph_node(&g, "a.cXX", 3, 3, "fYY", 1, NULL, &again, NULL), 0);
	assert_int_equal(first, again);
	assert_int_equal(graph_node(&g, "a.c", SIZE_MAX, 4, "f", SIZE_MAX, NULL, &other, NULL), 0);
	assert_int_not_equal(first, other);
	assert_int_equal(graph_node(&g, "a.c", SIZE_MAX, 3, "f", SIZE_MAX, "lib.so", &other, NULL), 0);
	assert_int_not_equal(first, other);
	assert_int_equal(g.node_count, 3);
	graph_release(&g);
}

static void a_zero_byte_in_a_name_is_replaced(void **state)
{
	struct graph g;
	uint32_t made, again;

	(void)state;
	graph_init(&g);
	assert_int_equal(graph_node(&g, "", 0, 0, "a\0b", 3, NULL, &made, NULL), 0);
	assert_string_equal(g.nodes[made].name, "a\xef\xbf\xbd" "b");
	assert_int_equal(graph_node(&g, "", 0, 0, "a\0b", 3, NULL, &again, NULL), 0);
	assert_int_equal(made, again);
	graph_release(&g);
}

static void edges_are_listed_in_the_order_in_which_they_were_made(void **state)
{
	struct graph g;
	uint32_t a, b, c;

	(void)state;
	graph_init(&g);
	a = node(&g, "", "a");
	b = node(&g, "", "b");
	c = node(&g, "", "c");
	call(&g, a, c);
	call(&g, b, c);
	call(&g, a, b);
	call(&g, a, c);
	assert_int_equal(graph_finish(&g, NULL), 0);
	assert_int_equal(g.edge_count, 3);
	assert_int_equal(g.nodes[a].calls_to_count, 2);
	assert_int_equal(g.edges[g.nodes[a].calls_to[0]].callee, c);
	assert_int_equal(g.edges[g.nodes[a].calls_to[0]].nc2, 2);
	assert_int_equal(g.edges[g.nodes[a].calls_to[1]].callee, b);
	assert_int_equal(g.nodes[c].called_by_count, 2);
	assert_int_equal(g.edges[g.nodes[c].called_by[1]].caller, b);
	assert_int_equal(g.nodes[a].called_by_count, 0);
	graph_release(&g);
}

/* main 1, main>f 2, main>f>f 4, main>f>g>f 8, main>g 16: f is 14 in all, once, though it stands on a way three times.
 */
static void calls_of_one_function_are_found_wherever_they_stand(void **state)
{
	enum { CALLEES = 5000 };
	struct graph g;

	(void)state;
	graph_init(&g);
	for (uint32_t i = 0; i < CALLEES; i++)
		node(&g, "", (char[]){(char)('a' + i % 16), (char)('a' + i / 16 % 16), (char)('a' + i / 256 % 16),
				      (char)('a' + i / 4096), 0});
	for (uint32_t i = 0; i < CALLEES; i++)
		call(&g, 0, i);
	for (uint32_t i = 0; i < CALLEES; i++)
		call(&g, 0, i); /* still the latest caller */
	for (uint32_t i = 1; i < CALLEES; i++)
		call(&g, i, 1);
	assert_int_equal(g.edge_count, 2 * CALLEES - 1);
	for (uint32_t i = 0; i < CALLEES; i++) {
		call(&g, 0, i); /* a caller that was left before */
		call(&g, i ? i : 1, 1);
	}
	assert_int_equal(g.edge_count, 2 * CALLEES - 1);
	for (uint32_t i = 0; i < CALLEES; i++)
		assert_int_equal(g.edges[i].nc2, 3);
	assert_int_equal(g.edges[CALLEES].nc2, 3); /* of function 1, which i = 0 stood for too */
	for (uint32_t i = CALLEES + 1; i < g.edge_count; i++)
		assert_int_equal(g.edges[i].nc2, 2);
	assert_int_equal(graph_finish(&g, NULL), 0);
	graph_release(&g);
}

static void stacks_count_recursion_once(void **state)
{
	const struct graph_node *f, *g_;
	struct graph g;

	(void)state;
	graph_init(&g);
	stack(&g, "m", 1);
	stack(&g, "mf", 2);
	stack(&g, "mff", 4);
	stack(&g, "mfgf", 8);
	stack(&g, "mg", 16);
	assert_int_equal(graph_finish(&g, NULL), 0);
	assert_true(g.total == 31);
	assert_true(named(&g, "m")->tall == 31);
	f = named(&g, "f");
	assert_true(f->tin == 14 && f->tall == 14);
	assert_int_equal(f->nc2, 3);
	assert_int_equal(f->nc1, 1);
	g_ = named(&g, "g");
	assert_true(g_->tin == 16 && g_->tall == 24);
	for (size_t i = 0; i < g.edge_count; i++) {
		const struct graph_edge *e = &g.edges[i];

		if (&g.nodes[e->caller] == g_ && &g.nodes[e->callee] == f)
			assert_true(e->tall == 8 && e->tin == 8 && e->nc2 == 1);
	}
	graph_release(&g);
}

static void calls_that_one_stack_does_not_know_are_not_known(void **state)
{
	struct graph g;

	(void)state;
	graph_init(&g);
	stack(&g, "ma", 1);
	stack(&g, "mb", 1);
	for (size_t i = 0; i < g.way_count; i++)
		if (g.ways[i].node == (uint32_t)(named(&g, "b") - g.nodes))
			g.ways[i].calls = -1;
	assert_int_equal(graph_finish(&g, NULL), 0);
	assert_int_equal(named(&g, "a")->nc2, 1);
	assert_int_equal(named(&g, "b")->nc2, -1);
	assert_int_equal(named(&g, "b")->nc1, -1);
	graph_release(&g);
}

/* A chain of callers as long as a hostile file can make it, from its far end. */
static void the_root_of_a_chain_of_a_million_is_found(void **state)
{
	enum { COUNT = 1000000 };
	struct graph g;

	(void)state;
	graph_init(&g);
	for (uint32_t i = 0; i < COUNT; i++) {
		char name[16];

		snprintf(name, sizeof name, "f%u", i);
		node(&g, "", name);
		if (i)
			assert_non_null(graph_edge_new(&g, i, i - 1, NULL));
	}
	assert_int_equal(graph_finish(&g, NULL), 0);
	assert_int_equal(graph_root(&g), COUNT - 1);
	graph_release(&g);
}

static void where_all_calls_go_in_circles_the_dearest_function_is_the_root(void **state)
{
	struct graph g;
	uint32_t a, b;

	(void)state;
	graph_init(&g);
	a = node(&g, "", "a");
	b = node(&g, "", "b");
	g.nodes[b].tall = 2;
	call(&g, a, b);
	call(&g, b, a);
	assert_int_equal(graph_finish(&g, NULL), 0);
	assert_int_equal(graph_root(&g), b);
	graph_release(&g);
	assert_int_equal(graph_root(&g), GRAPH_NONE);
}

/* The same with several callers each: the way back is found by what has been gone through. */
static void a_circle_with_several_callers_ends_too(void **state)
{
	struct graph g;
	uint32_t a, b, c;

	(void)state;
	graph_init(&g);
	a = node(&g, "", "a");
	b = node(&g, "", "b");
	c = node(&g, "", "c");
	g.nodes[c].tall = 3;
	call(&g, b, a);
	call(&g, c, a);
	call(&g, a, b);
	call(&g, c, b);
	call(&g, a, c);
	call(&g, b, c);
	assert_int_equal(graph_finish(&g, NULL), 0);
	assert_true(graph_root(&g) < g.node_count);
	graph_release(&g);
}

static void a_function_is_found_by_its_name_its_key_or_a_pattern(void **state)
{
	uint32_t found[2] = {9, 9};
	struct graph g;

	(void)state;
	graph_init(&g);
	node(&g, "x.py", "parse_line");
	node(&g, "y.py", "parse_line");
	node(&g, "y.py", "parse_*");
	assert_int_equal(graph_find(&g, "y.py:1:parse_line", found, 2), 1);
	assert_int_equal(found[0], 1);
	assert_int_equal(graph_find(&g, "parse_line", found, 1), 2);
	assert_int_equal(found[0], 0);
	assert_int_equal(graph_find(&g, "parse_*", found, 2), 1);
	assert_int_equal(found[0], 2);
	assert_int_equal(graph_find(&g, "*_line", found, 2), 2);
	assert_int_equal(graph_find(&g, "other", found, 2), 0);
	graph_release(&g);
}

static void rules_rename_files_in_turn(void **state)
{
	const char *const rules[] = {"/home=~", "/me=/you", "basename"};
	struct graph g;

	(void)state;
	graph_init(&g);
	node(&g, "/home/me/home/a.c", "f");
	node(&g, "", "/home/me/b.c");
	assert_int_equal(graph_clean(&g, rules, 2, true, NULL), 0);
	assert_string_equal(g.nodes[0].file, "~/you~/a.c");
	assert_string_equal(g.nodes[1].name, "~/you/b.c");
	assert_int_equal(graph_clean(&g, rules + 2, 1, true, NULL), 0);
	assert_string_equal(g.nodes[0].file, "a.c");
	assert_int_equal(graph_find(&g, "a.c:1:f", NULL, 0), 1);
	graph_release(&g);
}

static void functions_that_become_one_are_added_up_or_refused(void **state)
{
	const char *const rules[] = {"basename"};
	struct error err;

	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		uint32_t main_, a, b;
		struct graph g;

		graph_init(&g);
		a = node(&g, "/x/a.c", "f");
		main_ = node(&g, "/x/a.c", "main");
		b = node(&g, "/y/a.c", "f");
		g.nodes[a].nc2 = g.nodes[b].nc2 = 1;
		g.nodes[a].tin = 1;
		g.nodes[b].tin = 2;
		call(&g, main_, a);
		call(&g, main_, b);
		assert_int_equal(graph_finish(&g, NULL), 0);
		if (strict) {
			assert_int_equal(graph_clean(&g, rules, 1, true, &err), -1);
			assert_string_equal(err.text, "two functions become 'a.c:1:f'");
		} else {
			assert_int_equal(graph_clean(&g, rules, 1, false, NULL), 0);
			assert_int_equal(g.node_count, 2);
			assert_true(g.nodes[0].tin == 3 && g.total == 3);
			assert_int_equal(g.nodes[0].nc2, 2);
			assert_int_equal(g.edge_count, 1);
			assert_int_equal(g.edges[0].nc2, 2);
			assert_int_equal(g.nodes[0].called_by_count, 1);
			assert_int_equal(g.note_count, 1);
		}
		graph_release(&g);
	}
}

/* With stacks the merged function's cost is exact: what was a call from one to the other is recursion now. */
static void stacks_of_functions_that_become_one_are_counted_anew(void **state)
{
	const char *const rules[] = {"basename"};
	uint32_t a, b, way = 0;
	struct graph g;

	(void)state;
	graph_init(&g);
	a = node(&g, "/x/a.c", "f");
	b = node(&g, "/y/a.c", "f");
	assert_int_equal(graph_way(&g, 0, a, &way, NULL), 0);
	g.ways[way].self = 1;
	assert_int_equal(graph_way(&g, way, b, &way, NULL), 0);
	g.ways[way].self = 2;
	assert_int_equal(graph_finish(&g, NULL), 0);
	assert_true(g.nodes[a].tall == 3 && g.nodes[b].tall == 2);
	assert_int_equal(graph_clean(&g, rules, 1, false, NULL), 0);
	assert_int_equal(g.node_count, 1);
	assert_true(g.nodes[0].tall == 3 && g.nodes[0].tin == 3);
	graph_release(&g);
}

static void a_rule_that_is_none_is_named(void **state)
{
	const char *const rules[] = {"=x", "base"};
	struct error err;
	struct graph g;

	(void)state;
	graph_init(&g);
	assert_int_equal(graph_clean(&g, rules, 1, false, &err), -1);
	assert_string_equal(err.text, "the rule '=x' has nothing before its '=': say OLD=NEW");
	assert_int_equal(graph_clean(&g, rules + 1, 1, false, &err), -1);
	assert_string_equal(err.text, "the rule 'base' is neither 'basename' nor OLD=NEW");
	graph_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_kept_once),
		cmocka_unit_test(a_zero_byte_in_a_name_is_replaced),
		cmocka_unit_test(edges_are_listed_in_the_order_in_which_they_were_made),
		cmocka_unit_test(calls_of_one_function_are_found_wherever_they_stand),
		cmocka_unit_test(stacks_count_recursion_once),
		cmocka_unit_test(calls_that_one_stack_does_not_know_are_not_known),
		cmocka_unit_test(the_root_of_a_chain_of_a_million_is_found),
		cmocka_unit_test(where_all_calls_go_in_circles_the_dearest_function_is_the_root),
		cmocka_unit_test(a_circle_with_several_callers_ends_too),
		cmocka_unit_test(a_function_is_found_by_its_name_its_key_or_a_pattern),
		cmocka_unit_test(rules_rename_files_in_turn),
		cmocka_unit_test(functions_that_become_one_are_added_up_or_refused),
		cmocka_unit_test(stacks_of_functions_that_become_one_are_counted_anew),
		cmocka_unit_test(a_rule_that_is_none_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
