#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph_texts.h"

#define READER (&graph_reader_folded)

static void stacks_are_ways_and_equal_ones_are_added_up(void **state)
{
	struct graph_read r = read_good(READER, "main;work;step 12\nmain;work 3.5\r\n\nmain;work;step 1\n  idle 2  \n");

	(void)state;
	assert_int_equal(r.graph.way_count, 5); /* the root of all, and four */
	assert_costs(&r.graph, "main", 0, 16.5);
	assert_costs(&r.graph, "work", 3.5, 16.5);
	assert_costs(&r.graph, "step", 13, 13);
	assert_costs(&r.graph, "idle", 2, 2);
	assert_int_equal(node_named(&r.graph, "step")->nc2, -1);
	assert_true(edge_named(&r.graph, "work", "step")->tall == 13);
	assert_int_equal(r.graph.note_count, 0);
	graph_release(&r.graph);
}

static void recursion_counts_once(void **state)
{
	struct graph_read r = read_good(READER, "main;f;f;f 4\nmain;f;g;f 2\n");

	(void)state;
	assert_costs(&r.graph, "f", 6, 6);
	assert_costs(&r.graph, "g", 0, 2);
	graph_release(&r.graph);
}

static void names_may_hold_blanks_numbers_and_any_bytes(void **state)
{
	struct graph_read r = read_good(READER, "operator new(unsigned long);a 1 b;\xff\x1b[2J 7 3\n;x 1\n");

	(void)state;
	assert_costs(&r.graph, "operator new(unsigned long)", 0, 3);
	assert_costs(&r.graph, "\xff\x1b[2J 7", 3, 3);
	assert_costs(&r.graph, "(unnamed)", 0, 1);
	graph_release(&r.graph);
}

static void a_stack_without_a_count_counts_once_and_that_is_said(void **state)
{
	struct graph_read r = read_good(READER, "a;b\na;b\na;c nan\na;d 2");

	(void)state;
	assert_costs(&r.graph, "b", 2, 2);
	assert_costs(&r.graph, "c nan", 1, 1);
	assert_costs(&r.graph, "d", 2, 2);
	assert_string_equal(r.graph.notes[0], "X: 3 stacks have no count, and count once each.");
	graph_release(&r.graph);
}

static void what_cannot_be_is_refused_with_its_line(void **state)
{
	struct graph_read r = read_bytes(READER, "a 1\n", 4, "Ir", false);

	(void)state;
	assert_refused(READER, "", "X: it holds no stacks");
	assert_refused(READER, "\n \r\n", "X: it holds no stacks");
	assert_refused(READER, "a 1\nb -2\n", "X: line 2: a count is below 0");
	assert_refused(READER, "a 1e308\nb 1e308\n", "X: its counts add up to more than a number can hold");
	assert_string_equal(r.err.text, "X: folded stacks have no events to choose from");
	graph_release(&r.graph);
}

static void a_stack_of_a_million_functions_is_one(void **state)
{
	struct buf text;
	struct graph_read r;

	(void)state;
	buf_init(&text);
	for (int i = 0; i < 1000000; i++)
		buf_puts(&text, i % 2 ? "a;" : "b;");
	buf_puts(&text, "end 1\n");
	assert_false(text.failed);
	r = read_bytes(READER, text.text, text.length, NULL, false);
	assert_int_equal(r.result, 0);
	assert_int_equal(r.graph.node_count, 3);
	assert_costs(&r.graph, "a", 0, 1);
	assert_costs(&r.graph, "end", 1, 1);
	graph_release(&r.graph);
	buf_release(&text);
}

static void a_file_that_was_cut_anywhere_is_read_or_refused(void **state)
{
	static const char text[] = "main;work;step 12\nmain;w\xc3\xb6rk 3.5e1\r\n\na;b\n";

	(void)state;
	assert_cut_anywhere(READER, text, sizeof text - 1);
}

static void only_stacks_are_taken(void **state)
{
	static const char zero[] = "a;b 1\n\0x 1\n", prose[] = "Dear reader,\nthis is no profile.\n";

	(void)state;
	assert_true(READER->is("main 1\n", 7));
	assert_true(READER->is("a;b\nc;d\n", 8));
	assert_true(READER->is("a;b\nc;d 5\n", 10));
	assert_false(READER->is(zero, sizeof zero - 1));
	assert_false(READER->is(prose, sizeof prose - 1));
	assert_false(READER->is("", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_ways_and_equal_ones_are_added_up),
		cmocka_unit_test(recursion_counts_once),
		cmocka_unit_test(names_may_hold_blanks_numbers_and_any_bytes),
		cmocka_unit_test(a_stack_without_a_count_counts_once_and_that_is_said),
		cmocka_unit_test(what_cannot_be_is_refused_with_its_line),
		cmocka_unit_test(a_stack_of_a_million_functions_is_one),
		cmocka_unit_test(a_file_that_was_cut_anywhere_is_read_or_refused),
		cmocka_unit_test(only_stacks_are_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
