#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/table.h"

static void fill(struct table *t, const char *const *cells, size_t count)
{
	for (size_t i = 0; i < count; i++)
		table_cell(t, "%s", cells[i]);
}

static void columns_are_aligned_by_characters_not_bytes(void **state)
{
	static const char *const cells[] = {"phase", "wall", "load", "1.2 s", "pr\xc3\xa9", "10.0 s"};
	struct table t;
	struct buf out;

	(void)state;
	table_init(&t, 2);
	buf_init(&out);
	fill(&t, cells, 6);
	table_print(&t, "lr", "  ", &out);
	assert_string_equal(out.text, "  phase    wall\n"
				      "  load    1.2 s\n"
				      "  pr\xc3\xa9    10.0 s\n");
	buf_release(&out);
	table_release(&t);
}

static void no_line_ends_in_blanks(void **state)
{
	static const char *const cells[] = {"name", "note", "longer", "", "x", "y"};
	struct table t;
	struct buf out;

	(void)state;
	table_init(&t, 2);
	buf_init(&out);
	fill(&t, cells, 6);
	table_print(&t, "ll", "", &out);
	assert_string_equal(out.text, "name    note\nlonger\nx       y\n");
	buf_release(&out);
	table_release(&t);
}

static void the_last_cell_is_folded_below_itself(void **state)
{
	static const char *const cells[] = {"phase", "why", "load", "one two three four five six seven eight nine ten"};
	struct table t;
	struct buf out;

	(void)state;
	table_init(&t, 2);
	t.fold = 40;
	buf_init(&out);
	fill(&t, cells, 4);
	table_print(&t, "ll", "  ", &out);
	assert_string_equal(out.text, "  phase  why\n"
				      "  load   one two three four five six\n"
				      "         seven eight nine ten\n");
	buf_release(&out);
	table_release(&t);
}

static void a_cell_is_one_line_whatever_it_holds(void **state)
{
	static const char *const cells[] = {"a|b", "c\nd\x1b[31m"};
	struct table t;
	struct buf out;

	(void)state;
	table_init(&t, 2);
	buf_init(&out);
	fill(&t, cells, 2);
	table_print(&t, "ll", "", &out);
	assert_string_equal(out.text, "a|b  c d [31m\n");
	buf_clear(&out);
	table_print_markdown(&t, "lr", &out);
	assert_string_equal(out.text, "| a\\|b | c d \\[31m |\n|---|---:|\n");
	buf_release(&out);
	table_release(&t);
}

static void an_empty_table_prints_nothing(void **state)
{
	struct table t;
	struct buf out;

	(void)state;
	table_init(&t, 3);
	buf_init(&out);
	table_print(&t, "lll", "", &out);
	table_print_markdown(&t, "lll", &out);
	assert_int_equal(out.length, 0);
	buf_release(&out);
	table_release(&t);
}

static void a_large_table_is_whole(void **state)
{
	struct table t;
	struct buf out;

	(void)state;
	table_init(&t, 2);
	buf_init(&out);
	for (int i = 0; i < 100000; i++)
		table_cell(&t, "%d", i);
	table_print(&t, "rr", "", &out);
	assert_int_equal(out.length, 50000 * (5 + 2 + 5 + 1));
	assert_memory_equal(out.text + out.length - 13, "99998  99999\n", 13);
	buf_release(&out);
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_aligned_by_characters_not_bytes),
		cmocka_unit_test(no_line_ends_in_blanks),
		cmocka_unit_test(the_last_cell_is_folded_below_itself),
		cmocka_unit_test(a_cell_is_one_line_whatever_it_holds),
		cmocka_unit_test(an_empty_table_prints_nothing),
		cmocka_unit_test(a_large_table_is_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
