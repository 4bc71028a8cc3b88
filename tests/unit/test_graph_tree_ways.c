#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph_rows.h"

static void ways_are_exact_below_a_function_with_several_callers(void **state)
{
	struct graph g;
	struct graph_tree t;

	(void)state;
	begin(&g);
	way(&g, "abcd", 1);
	way(&g, "aecd", 8);
	way(&g, "aecf", 1);
	build(&g, &everything, &t);
	assert_near(t.whole, 10);
	assert_near(AT("a", "b", "c", "d")->total, 1);
	assert_near(AT("a", "e", "c", "d")->total, 8);
	assert_near(AT("a", "e", "c")->share_of_parent, 1);
	assert_false(t.estimated);
	assert_adds_up(&t);
	graph_tree_release(&t);
	graph_release(&g);
}

static void a_recursion_of_ways_is_folded_into_the_row_that_it_comes_back_to(void **state)
{
	struct graph g;
	struct graph_tree t;

	(void)state;
	begin(&g);
	way(&g, "ma", 1);
	way(&g, "maba", 2);
	way(&g, "mababx", 3);
	way(&g, "mc", 4); /* the walk goes on where it was before the recursion */
	way(&g, "mca", 5);
	build(&g, &everything, &t);
	assert_int_equal(t.count, 6);
	assert_near(AT("m", "a")->total, 6);
	assert_near(AT("m", "a")->self, 3);
	assert_true(AT("m", "a")->recursive);
	assert_near(AT("m", "a", "b", "x")->total, 3);
	assert_near(AT("m", "c")->total, 9);
	assert_near(AT("m", "c", "a")->total, 5);
	assert_false(AT("m", "c", "a")->recursive);
	assert_adds_up(&t);
	graph_tree_release(&t);
	graph_release(&g);
}

static void a_root_of_ones_choice_gathers_all_ways_below_it(void **state)
{
	struct graph_tree_options o = everything;
	struct graph g;
	struct graph_tree t;

	(void)state;
	begin(&g);
	way(&g, "abcd", 1);
	way(&g, "acd", 2);
	way(&g, "ae", 7);
	o.root = node(&g, "c");
	build(&g, &o, &t);
	assert_int_equal(t.count, 2);
	assert_near(t.whole, 3);
	assert_near(AT("c", "d")->total, 3);
	graph_tree_release(&t);
	graph_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways_are_exact_below_a_function_with_several_callers),
		cmocka_unit_test(a_recursion_of_ways_is_folded_into_the_row_that_it_comes_back_to),
		cmocka_unit_test(a_root_of_ones_choice_gathers_all_ways_below_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
