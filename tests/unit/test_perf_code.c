#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "record/id_map.h"
#include "record/perf_code.h"

static void add(struct perf_codes *c, uint64_t start, uint64_t end, uint64_t mark)
{
	assert_true(perf_codes_add(c, &(struct perf_code){.start = start, .end = end, .bias = mark}));
}

/* The mark of what is at each of the addresses 0 to 9, '.' for nothing. */
static void expect(const struct perf_codes *c, const char *picture)
{
	for (uint64_t at = 0; at < 10; at++) {
		const struct perf_code *code = perf_codes_find(c, at);

		assert_int_equal(code ? (char)code->bias : '.', picture[at]);
	}
	for (size_t i = 0; i + 1 < c->count; i++)
		assert_true(c->items[i].end <= c->items[i + 1].start);
}

static void a_later_mapping_takes_the_place_of_what_it_covers(void **state)
{
	struct perf_codes c, copy;

	(void)state;
	perf_codes_init(&c);
	expect(&c, "..........");
	add(&c, 6, 9, 'c');
	add(&c, 1, 4, 'a');
	expect(&c, ".aaa..ccc.");
	add(&c, 3, 7, 'b'); /* over an end and a beginning */
	expect(&c, ".aabbbbcc.");
	add(&c, 4, 6, 'd'); /* in the midst of one */
	expect(&c, ".aabddbcc.");
	add(&c, 3, 7, 'e'); /* over several */
	expect(&c, ".aaeeeecc.");
	add(&c, 3, 7, 'f'); /* over exactly one */
	expect(&c, ".aaffffcc.");
	add(&c, 5, 5, 'x'); /* over nothing */
	add(&c, 7, 5, 'x');
	expect(&c, ".aaffffcc.");
	perf_codes_init(&copy);
	assert_true(perf_codes_copy(&copy, &c));
	add(&c, 0, 10, 'g');
	expect(&c, "gggggggggg");
	expect(&copy, ".aaffffcc.");
	add(&copy, 9, 10, 'h');
	expect(&copy, ".aaffffcch");
	perf_codes_release(&copy);
	perf_codes_release(&c);
}

static void any_number_of_mappings_stays_bounded(void **state)
{
	struct perf_codes c;
	uint64_t at = 0;

	(void)state;
	perf_codes_init(&c);
	while (at < 200000 && perf_codes_add(&c, &(struct perf_code){.start = at, .end = at + 1}))
		at += 2;
	assert_in_range(at, 100000, 199998);
	assert_non_null(perf_codes_find(&c, at - 2));
	assert_null(perf_codes_find(&c, at));
	perf_codes_release(&c);
}

/* Numbers that come and go, against a plain array. */
static void a_number_is_found_until_it_is_removed(void **state)
{
	static int there[500], values[500];
	struct id_map m;
	uint32_t seed = 1;
	size_t count = 0;

	(void)state;
	id_map_init(&m);
	assert_null(id_map_find(&m, 3));
	id_map_remove(&m, 3);
	for (unsigned i = 0; i < 50000; i++) {
		unsigned which = (seed = seed * 1664525 + 1013904223) >> 8;
		int at = (int)(which % 500), id = at * 64; /* so that many have the same home */

		if (there[at])
			id_map_remove(&m, id);
		else
			assert_true(id_map_set(&m, id, &values[at]));
		count += there[at] ? (size_t)-1 : 1;
		there[at] = !there[at];
		assert_int_equal(m.count, count);
		for (int j = at % 7; j < 500; j += 7)
			assert_ptr_equal(id_map_find(&m, j * 64), there[j] ? &values[j] : NULL);
	}
	id_map_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_later_mapping_takes_the_place_of_what_it_covers),
		cmocka_unit_test(any_number_of_mappings_stays_bounded),
		cmocka_unit_test(a_number_is_found_until_it_is_removed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
