#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph_file.h"
#include "graph/tree.h"

static uint32_t add(struct graph *g, const char *file, int64_t line, const char *name, const char *module)
{
	uint32_t node;

	assert_int_equal(graph_node(g, file, SIZE_MAX, line, name, SIZE_MAX, module, &node, NULL), 0);
	return node;
}

/* main calls work three times, once from itself; names as hostile as can be. */
static void build(struct graph *g)
{
	struct graph_edge *e;
	uint32_t root, work;

	graph_init(g);
	assert_int_equal(graph_set_unit(g, "s", 1, NULL), 0);
	root = add(g, "a\tb\nc.c", 12, "main\\x00 \x01\x7f", NULL);
	work = add(g, "", 0, "w\xc3\xb6rk\xff", "-");
	g->nodes[root].nc1 = g->nodes[root].nc2 = 1;
	g->nodes[root].tin = 0.1;
	g->nodes[root].tall = 1.0 / 3;
	g->nodes[work].nc1 = 2;
	g->nodes[work].nc2 = INT64_MAX;
	g->nodes[work].tin = 5e-324;
	g->nodes[work].tall = 1.7976931348623157e308;
	e = graph_edge(g, root, work, NULL);
	e->nc1 = 2, e->nc2 = 2, e->tin = 0.1 + 0.2, e->tall = 123456789.123456789;
	e = graph_edge(g, work, work, NULL);
	e->nc1 = -1, e->nc2 = 9007199254740993, e->tin = 0, e->tall = 0;
	assert_int_equal(graph_note(g, "a note\nof two lines"), 0);
	assert_int_equal(graph_finish(g, NULL), 0);
}

static void same_double(double a, double b)
{
	assert_memory_equal(&a, &b, sizeof a);
}

static void what_was_written_is_read_again_to_the_last_bit(void **state)
{
	struct graph g, back;
	struct buf text, again;

	(void)state;
	build(&g);
	graph_init(&back);
	buf_init(&text), buf_init(&again);
	graph_file_write(&g, &text);
	assert_true(graph_file_is(text.text, text.length));
	assert_int_equal(graph_file_read(text.text, text.length, "x.graph", &back, NULL), 0);
	assert_int_equal(back.node_count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(back.nodes[i].file, g.nodes[i].file);
		assert_string_equal(back.nodes[i].name, g.nodes[i].name);
		assert_int_equal(back.nodes[i].nc2, g.nodes[i].nc2);
		same_double(back.nodes[i].tin, g.nodes[i].tin);
		same_double(back.nodes[i].tall, g.nodes[i].tall);
		assert_int_equal(back.edges[i].nc1, g.edges[i].nc1);
		assert_int_equal(back.edges[i].nc2, g.edges[i].nc2);
		same_double(back.edges[i].tin, g.edges[i].tin);
		same_double(back.edges[i].tall, g.edges[i].tall);
	}
	assert_null(back.nodes[0].module);
	assert_string_equal(back.nodes[1].module, "-");
	assert_string_equal(back.notes[0], "a note\nof two lines");
	assert_string_equal(back.unit, "s");
	graph_file_write(&back, &again);
	assert_string_equal(again.text, text.text);
	buf_release(&text), buf_release(&again);
	graph_release(&g), graph_release(&back);
}

static void ways_are_kept(void **state)
{
	struct graph g, back;
	struct buf text;
	uint32_t a, b, way;

	(void)state;
	graph_init(&g), graph_init(&back);
	buf_init(&text);
	a = add(&g, "f", 1, "a", NULL);
	b = add(&g, "f", 2, "b", NULL);
	assert_int_equal(graph_set_unit(&g, "samples", 0, NULL), 0);
	assert_int_equal(graph_way(&g, 0, a, &way, NULL), 0);
	g.ways[way].self = 3;
	assert_int_equal(graph_way(&g, way, b, &way, NULL), 0);
	g.ways[way].self = 4;
	assert_int_equal(graph_finish(&g, NULL), 0);
	graph_file_write(&g, &text);
	assert_int_equal(graph_file_read(text.text, text.length, "x.graph", &back, NULL), 0);
	assert_int_equal(back.way_count, 3);
	assert_int_equal(back.ways[2].parent, 1);
	same_double(back.ways[2].self, 4);
	same_double(back.nodes[a].tall, 7);
	buf_release(&text);
	graph_release(&g), graph_release(&back);
}

static void a_file_cut_anywhere_is_an_error_that_names_the_line(void **state)
{
	struct graph g;
	struct buf text;

	(void)state;
	build(&g);
	buf_init(&text);
	graph_file_write(&g, &text);
	for (size_t length = 0; length < text.length; length++) {
		char *part = malloc(length + 1); /* of its very size, for sanitizers */
		struct graph cut;
		struct error err = {""};

		memcpy(part, text.text, length);
		part[length] = '\0';
		graph_init(&cut);
		assert_int_equal(graph_file_read(part, length, "cut.graph", &cut, &err), -1);
		assert_non_null(strstr(err.text, "cut.graph: "));
		if (length > 20)
			assert_non_null(strstr(err.text, "line "));
		graph_release(&cut);
		free(part);
	}
	buf_release(&text);
	graph_release(&g);
}

static void refused(const char *text, const char *why)
{
	struct graph g;
	struct error err = {""};

	graph_init(&g);
	assert_int_equal(graph_file_read(text, strlen(text), "bad.graph", &g, &err), -1);
	if (!strstr(err.text, why))
		fail_msg("'%s' does not say '%s'", err.text, why);
	graph_release(&g);
}

#define HEAD "assay-graph 1\nunit\ts\t1\nestimated\t0\nnotes\t0\n"
#define NODE(name) "n\tf\t1\t" name "\t-\t1\t1\t1\t1\n"

static void what_is_wrong_is_refused_with_its_line(void **state)
{
	(void)state;
	refused("", "it is no graph file");
	refused("assay-graph 2\n", "line 1: this program reads graph files of version 1, and not '2'");
	refused("assay-graph 1\nunit\ts\tnan\n", "line 2: 'nan' is not a cost");
	refused(HEAD "nodes\t-1\n", "line 5: '-1' is not a whole number");
	refused(HEAD "nodes\t2147483647\n" NODE("a"), "line 7: the file ends");
	refused(HEAD "nodes\t2\n" NODE("a") NODE("a"), "line 7: this function stands here for the second time");
	refused(HEAD "nodes\t1\nn\tf\t1\t\\q\t-\t1\t1\t1\t1\n", "line 6: a backslash");
	refused(HEAD "nodes\t1\nn\tf\t1\ta\t-\t1\t9223372036854775808\t1\t1\n", "line 6: '9223372036854775808'");
	refused(HEAD "nodes\t1\nn\tf\t1\ta\t-\t1\t1\t1e999\t1\n", "line 6: '1e999' is not a cost");
	refused(HEAD "nodes\t1\n" NODE("a") "edges\t1\ne\t0\t1\t1\t1\t1\t1\n",
		"line 8: '1' is not a whole number from 0 "
		"to 0");
	refused(HEAD "nodes\t1\n" NODE("a") "edges\t2\ne\t0\t0\t1\t1\t1\t1\ne\t0\t0\t1\t1\t1\t1\n",
		"line 9: these calls stand here for the second time");
	refused(HEAD "nodes\t0\nedges\t0\nways\t0\nend\nmore\n", "line 9: nothing may follow");
	refused(HEAD "nodes\t0\nedges\t0\nways\t1\nw\t0\t0\t1\t1\n", "line 8: ");
}

static void an_empty_graph_is_one(void **state)
{
	static const char text[] = HEAD "nodes\t0\nedges\t0\nways\t0\nend\n";
	struct graph g;

	(void)state;
	graph_init(&g);
	assert_int_equal(graph_file_read(text, strlen(text), "empty.graph", &g, NULL), 0);
	assert_int_equal(g.node_count, 0);
	graph_release(&g);
}

static void sums_of_counts_end_at_the_largest(void **state)
{
	static const char ways[] = HEAD "nodes\t2\n" NODE("a") NODE("b") "edges\t0\nways\t3\n"
					"w\t0\t0\t1\t9223372036854775807\nw\t1\t1\t1\t9223372036854775807\n"
					"w\t2\t0\t1\t9223372036854775807\nend\n";
	static const char edges[] = HEAD "nodes\t2\nn\tf\t1\ta\t-\t1\t1\t0\t1\n" NODE("b")
					 "edges\t2\ne\t0\t1\t1\t3\t0\t1\n"
					 "e\t1\t1\t1\t9223372036854775807\t0\t0\nways\t0\nend\n";
	const struct graph_tree_options options = {.root = GRAPH_NONE, .sort = GRAPH_BY_CUMULATIVE};
	struct graph_tree tree = {0};
	struct graph g;

	(void)state;
	graph_init(&g);
	assert_int_equal(graph_file_read(ways, strlen(ways), "ways.graph", &g, NULL), 0);
	assert_true(g.nodes[0].nc2 == INT64_MAX);
	graph_release(&g);
	graph_init(&g);
	assert_int_equal(graph_file_read(edges, strlen(edges), "edges.graph", &g, NULL), 0);
	assert_int_equal(graph_tree_build(&g, &options, &tree, NULL), 0);
	assert_int_equal(tree.count, 2);
	assert_true(tree.rows[1].calls == INT64_MAX);
	graph_tree_release(&tree);
	graph_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read_again_to_the_last_bit),
		cmocka_unit_test(ways_are_kept),
		cmocka_unit_test(a_file_cut_anywhere_is_an_error_that_names_the_line),
		cmocka_unit_test(what_is_wrong_is_refused_with_its_line),
		cmocka_unit_test(an_empty_graph_is_one),
		cmocka_unit_test(sums_of_counts_end_at_the_largest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
