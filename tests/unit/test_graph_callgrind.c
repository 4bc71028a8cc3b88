#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>

#include "graph_texts.h"

#define READER (&graph_reader_callgrind)
#define BEGIN "positions: line\nevents: Ir\n"

static struct graph_read read_file(const char *name, bool fold)
{
	struct buf text;
	char path[4096];
	struct graph_read r;

	buf_init(&text);
	snprintf(path, sizeof path, "%s/callgrind/%s", getenv("ASSAY_TEST_DATA"), name);
	assert_int_equal(fs_read_file(path, 1 << 20, &text, NULL), 0);
	assert_true(READER->is(text.text, text.length));
	r = read_bytes(READER, text.text, text.length, NULL, fold);
	if (r.result < 0)
		fail_msg("%s", r.err.text);
	buf_release(&text);
	return r;
}

static const struct graph_node *same_node(const struct graph *g, const struct graph_node *like)
{
	for (size_t i = 0; i < g->node_count; i++)
		if (strcmp(g->nodes[i].name, like->name) == 0 && strcmp(g->nodes[i].file, like->file) == 0 &&
		    strcmp(g->nodes[i].module ? g->nodes[i].module : "", like->module ? like->module : "") == 0)
			return &g->nodes[i];
	return NULL;
}

static void assert_same_nodes(const struct graph *a, const struct graph *b)
{
	assert_int_equal(a->node_count, b->node_count);
	assert_int_equal(a->edge_count, b->edge_count);
	for (size_t i = 0; i < a->node_count; i++) {
		const struct graph_node *x = &a->nodes[i], *y = same_node(b, x);

		if (!y)
			fail_msg("%s:%s is not in both", x->file, x->name);
		if (x->tin != y->tin || x->tall != y->tall || x->nc1 != y->nc1 || x->nc2 != y->nc2 ||
		    x->line != y->line || x->calls_to_count != y->calls_to_count)
			fail_msg("%s:%s differs", x->file, x->name);
	}
}

static void all_ways_of_writing_a_program_s_costs_are_one_graph(void **state)
{
	struct graph_read plain = read_file("default.out", true), instr = read_file("instr.out", true),
			  long_names = read_file("uncompressed.out", true);

	(void)state;
	assert_same_nodes(&plain.graph, &instr.graph);
	assert_same_nodes(&plain.graph, &long_names.graph);
	graph_release(&plain.graph);
	graph_release(&instr.graph);
	graph_release(&long_names.graph);
}

/* The figures are those of callgrind_annotate --inclusive=yes for default.out, for functions that do not recur. */
static void figures_are_those_of_callgrind_annotate(void **state)
{
	struct graph_read r = read_file("default.out", true);

	(void)state;
	assert_true(r.graph.total == 383900);
	assert_int_equal(r.graph.note_count, 0);
	assert_costs(&r.graph, "main", 31, 258183);
	assert_costs(&r.graph, "sort_some", 11348, 227596);
	assert_costs(&r.graph, "qsort_r", 248, 170029);
	assert_costs(&r.graph, "dl_main", 1776, 91090);
	assert_int_equal(node_named(&r.graph, "main")->line, 11);
	assert_string_equal(node_named(&r.graph, "main")->file, "cg.c");
	assert_string_equal(node_named(&r.graph, "main")->module, "cg");
	assert_true(edge_named(&r.graph, "main", "sort_some")->tall == 227596);
	assert_int_equal(edge_named(&r.graph, "main", "sort_some")->nc2, 4);
	graph_release(&r.graph);
}

static void recursion_counts_once_when_it_is_folded(void **state)
{
	struct graph_read r = read_file("default.out", true);
	const struct graph_node *fib = node_named(&r.graph, "fib");

	(void)state;
	assert_costs(&r.graph, "fib", 28605, 28605);
	assert_int_equal(fib->nc1, 1);
	assert_int_equal(fib->nc2, 1973);
	assert_costs(&r.graph, "is_even", 164, 324);
	assert_costs(&r.graph, "is_odd", 160, 316);
	assert_costs(&r.graph, "msort_with_tmp.part.0", 133341, 169765);
	graph_release(&r.graph);
}

static void nothing_costs_more_than_the_whole_whether_folded_or_not(void **state)
{
	(void)state;
	for (int fold = 0; fold < 2; fold++) {
		struct graph_read r = read_file("default.out", fold);

		for (size_t i = 0; i < r.graph.node_count; i++)
			assert_true(r.graph.nodes[i].tin <= r.graph.nodes[i].tall &&
				    r.graph.nodes[i].tall <= r.graph.total);
		for (size_t i = 0; i < r.graph.edge_count; i++)
			assert_true(r.graph.edges[i].tall <= r.graph.nodes[r.graph.edges[i].callee].tall);
		graph_release(&r.graph);
	}
}

static void depths_of_a_recursion_are_functions_of_their_own_unless_folded(void **state)
{
	struct graph_read r = read_file("default.out", false);

	(void)state;
	assert_costs(&r.graph, "fib", 18, 28605);
	assert_costs(&r.graph, "fib'2", 28587, 28587);
	assert_costs(&r.graph, "msort_with_tmp.part.0'2", 119958, 152762);
	graph_release(&r.graph);
}

static void a_depth_stands_behind_the_function_and_before_its_callers(void **state)
{
	struct graph_read r = read_bytes(READER, BEGIN "fn=f'main\n1 1\nfn=f'2'main\n1 2\nfn=it's\n1 4\n",
					 strlen(BEGIN "fn=f'main\n1 1\nfn=f'2'main\n1 2\nfn=it's\n1 4\n"), NULL, true);

	(void)state;
	assert_int_equal(r.graph.node_count, 2);
	assert_costs(&r.graph, "f'main", 3, 3);
	assert_costs(&r.graph, "it's", 4, 4);
	graph_release(&r.graph);
}

static void a_function_that_calls_itself_without_depths_costs_what_is_in_it(void **state)
{
	struct graph_read r = read_good(READER, BEGIN "fn=main\n1 1\ncfn=f\ncalls=1 5\n2 30\n"
						      "fn=f\n5 10\ncfn=f\ncalls=2 5\n6 50\ncfn=g\ncalls=3 9\n7 20\n"
						      "fn=g\n9 20\n");

	(void)state;
	assert_costs(&r.graph, "f", 10, 30);
	assert_int_equal(node_named(&r.graph, "f")->nc1, 1);
	assert_int_equal(node_named(&r.graph, "f")->nc2, 3);
	assert_true(edge_named(&r.graph, "f", "f")->tall <= 30);
	graph_release(&r.graph);
}

static void a_circle_costs_at_most_what_is_in_it_and_that_is_said(void **state)
{
	struct graph_read r = read_good(READER, BEGIN "fn=main\n1 1\ncfn=a\ncalls=1 0\n1 40\n"
						      "fn=a\n1 10\ncfn=b\ncalls=5 0\n1 70\n"
						      "fn=b\n1 20\ncfn=a\ncalls=4 0\n1 60\ncfn=leaf\ncalls=1 0\n1 10\n"
						      "fn=leaf\n1 10\n");

	(void)state;
	assert_costs(&r.graph, "a", 10, 40);
	assert_costs(&r.graph, "b", 20, 40);
	assert_int_equal(r.graph.note_count, 1);
	assert_non_null(strstr(r.graph.notes[0], "2 functions call each other in circles"));
	assert_int_equal(edge_named(&r.graph, "b", "a")->nc1, -1);
	graph_release(&r.graph);
}

static void names_and_positions_in_short_are_those_given_before(void **state)
{
	struct graph_read r = read_good(READER, "positions: instr line\nevents: Ir\nob=(1) prog\nfl=(1) a.c\nfn=(1) f\n"
						"0x10 7 1\n+4 +1 2\n* * 4\n-0x4 -1 8\n"
						"fn=(2) g\n0x20 20 16\ncfi=(2) b.c\ncfn=(1)\ncalls=1 +0x10 9\n+4 * 3\n"
						"fn=(1)\n0x10 7 32\n");

	(void)state;
	assert_int_equal(r.graph.node_count, 3); /* f of a.c, g, f of b.c */
	assert_costs(&r.graph, "f", 47, 47);
	assert_int_equal(node_named(&r.graph, "f")->line, 7);
	assert_costs(&r.graph, "g", 16, 19);
	assert_string_equal(r.graph.nodes[2].file, "b.c");
	assert_int_equal(r.graph.nodes[2].line, 9);
	graph_release(&r.graph);
}

static void what_is_inlined_belongs_to_the_function_it_stands_in(void **state)
{
	struct graph_read r = read_good(READER, BEGIN "fl=a.c\nfn=f\n3 1\nfi=b.h\n90 2\nfe=a.c\n4 4\n");

	(void)state;
	assert_int_equal(r.graph.node_count, 1);
	assert_costs(&r.graph, "f", 7, 7);
	assert_int_equal(node_named(&r.graph, "f")->line, 3);
	graph_release(&r.graph);
}

static void jumps_cost_nothing_and_name_what_comes_later(void **state)
{
	struct graph_read r = read_good(READER, BEGIN "fl=(1) a.c\nfn=(1) f\n3 1\njcnd=1/2 +4\n*\njfi=(2) b.c\n"
						      "jump=3 9\n* \nfl=(2)\nfn=(2) g\n1 5\n");

	(void)state;
	assert_true(r.graph.total == 6);
	assert_string_equal(node_named(&r.graph, "g")->file, "b.c");
	graph_release(&r.graph);
}

static void parts_are_added_up_and_each_may_have_its_own_order_of_events(void **state)
{
	struct graph_read r = read_good(READER, "part: 1\nevents: Ir Dr\nfn=f\n1 1 100\n2\ntotals: 1 100\n"
						"part: 2\nevents: Dr Ir\nfn=f\n1 100 2\n1 100\ntotals: 200 2\n");

	(void)state;
	assert_costs(&r.graph, "f", 3, 3);
	assert_int_equal(r.graph.note_count, 0);
	graph_release(&r.graph);
}

static void an_event_is_chosen_by_its_name_and_a_wrong_one_is_told_what_there_is(void **state)
{
	static const char text[] = "events: Ir Dr  Dw\nfn=f\n1 1 20\n";
	struct graph_read good = read_bytes(READER, text, sizeof text - 1, "Dr", false),
			  absent = read_bytes(READER, text, sizeof text - 1, "Dw", false),
			  wrong = read_bytes(READER, text, sizeof text - 1, "Dx", false);

	(void)state;
	assert_costs(&good.graph, "f", 20, 20);
	assert_string_equal(good.graph.unit, "Dr");
	assert_costs(&absent.graph, "f", 0, 0);
	assert_int_equal(wrong.result, -1);
	assert_string_equal(wrong.err.text, "X: line 1: there is no event 'Dx'; it has: Ir, Dr, Dw");
	graph_release(&good.graph);
	graph_release(&absent.graph);
	graph_release(&wrong.graph);
}

static void events_that_are_times_make_seconds(void **state)
{
	struct graph_read r = read_good(READER, "events: ns\nfn=f\n1 5\n");

	(void)state;
	assert_true(r.graph.per_second == 1e-9);
	graph_release(&r.graph);
}

static void a_file_that_lacks_costs_is_noticed_by_its_totals(void **state)
{
	struct graph_read r = read_good(READER, BEGIN "summary: 12\nfn=f\n1 5\n");

	(void)state;
	assert_int_equal(r.graph.note_count, 1);
	assert_string_equal(
		r.graph.notes[0],
		"X: line 3: the file says that Ir is 12 in all, and what its functions cost adds up to 5: it "
		"may have been cut.");
	graph_release(&r.graph);
}

static void numbers_of_any_size_are_numbers(void **state)
{
	struct graph_read r =
		read_good(READER, BEGIN "fn=f\n1 9007199254740993\n18446744073709551616 18446744073709551616\n"
					"cfn=g\ncalls=99999999999999999999 1\n1 1e280\n");

	(void)state;
	assert_true(fabs(node_named(&r.graph, "f")->tin - 18455751272964292608.0) < 4096);
	assert_int_equal(r.graph.note_count, 1);
	assert_string_equal(r.graph.notes[0], "X: costs above 2^53 are rounded.");
	graph_release(&r.graph);
}

static void what_cannot_be_is_refused_with_its_line(void **state)
{
	(void)state;
	assert_refused(READER, "", "X: it names no function");
	assert_refused(READER, "fn=f\n", "X: it does not say what its costs are (\"events:\")");
	assert_refused(READER, "fn=f\n1 5\n", "X: line 2: a cost before \"events:\" has said what it is");
	assert_refused(READER, BEGIN "1 5\n", "X: line 3: a cost before any function (\"fn=\")");
	assert_refused(READER, BEGIN "fn=f\n1 -5\n", "X: line 4: a cost is below 0");
	assert_refused(READER, BEGIN "fn=f\n1 1e300\n", "X: line 4: a cost is too large");
	assert_refused(READER, BEGIN "fn=f\n1 nan\n", "X: line 4: a cost is no number");
	assert_refused(READER, BEGIN "fn=f\n1x 5\n", "X: line 4: a position is no number");
	assert_refused(READER, BEGIN "fn=(7)\n", "X: line 3: the name (7) stands for nothing: it was not given before");
	assert_refused(READER, BEGIN "fn=f\ncalls=1 2\n1 5\n",
		       "X: line 4: \"calls=\" without the function that was called (\"cfn=\") before it");
	assert_refused(READER, BEGIN "fn=f\ncfn=g\ncalls=1 2\n",
		       "X: line 5: the file ends before the cost of a call: it was cut");
	assert_refused(READER, BEGIN "fn=f\ncfn=g\ncalls=1 2\nfn=h\n",
		       "X: line 6: the cost of a call should stand here, after \"calls=\"");
	assert_refused(READER, BEGIN "fn=f\nhello\n", "X: line 4: this is no line of a callgrind file");
	assert_refused(READER, "positions: instr addr\n",
		       "X: line 1: \"positions:\" is neither \"line\", \"instr\" nor \"instr line\"");
	assert_refused(READER, "events:\n", "X: line 1: \"events:\" names none");
}

static void a_file_that_was_cut_anywhere_is_read_or_refused(void **state)
{
	static const char text[] =
		"# callgrind format\nversion: 1\npositions: instr line\nevents: Ir Dr\nsummary: 9 9\n\n"
		"ob=(1) prog\nfl=(1) a.c\nfn=(1) f\n0x10 7 1 2\n+4 +1 2\ncob=(2) lib\ncfi=(2) b.c\n"
		"cfn=(2) g'2\ncalls=3 0x20 9\n* * 5 6\njcnd=1/2 +4 0\n* *\nfn=(2)\n0x20 1 3\n"
		"totals: 9 9\n";

	(void)state;
	assert_cut_anywhere(READER, text, sizeof text - 1);
}

static void only_its_own_kind_of_file_is_taken(void **state)
{
	static const char yaml[] = "version: 1\nname: x\nsteps:\n  - a\n";

	(void)state;
	assert_true(READER->is("\nversion: 1\ncmd: ls\nevents: Ir\n", 34));
	assert_true(READER->is("# callgrind format\n", 19));
	assert_false(READER->is("main;work 12\n", 13));
	assert_false(READER->is(yaml, sizeof yaml - 1));
	assert_false(READER->is("", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ways_of_writing_a_program_s_costs_are_one_graph),
		cmocka_unit_test(figures_are_those_of_callgrind_annotate),
		cmocka_unit_test(recursion_counts_once_when_it_is_folded),
		cmocka_unit_test(nothing_costs_more_than_the_whole_whether_folded_or_not),
		cmocka_unit_test(depths_of_a_recursion_are_functions_of_their_own_unless_folded),
		cmocka_unit_test(a_depth_stands_behind_the_function_and_before_its_callers),
		cmocka_unit_test(a_function_that_calls_itself_without_depths_costs_what_is_in_it),
		cmocka_unit_test(a_circle_costs_at_most_what_is_in_it_and_that_is_said),
		cmocka_unit_test(names_and_positions_in_short_are_those_given_before),
		cmocka_unit_test(what_is_inlined_belongs_to_the_function_it_stands_in),
		cmocka_unit_test(jumps_cost_nothing_and_name_what_comes_later),
		cmocka_unit_test(parts_are_added_up_and_each_may_have_its_own_order_of_events),
		cmocka_unit_test(an_event_is_chosen_by_its_name_and_a_wrong_one_is_told_what_there_is),
		cmocka_unit_test(events_that_are_times_make_seconds),
		cmocka_unit_test(a_file_that_lacks_costs_is_noticed_by_its_totals),
		cmocka_unit_test(numbers_of_any_size_are_numbers),
		cmocka_unit_test(what_cannot_be_is_refused_with_its_line),
		cmocka_unit_test(a_file_that_was_cut_anywhere_is_read_or_refused),
		cmocka_unit_test(only_its_own_kind_of_file_is_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
