#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "model/regions.h"
#include "wire/regions.h"

static void a_name_has_one_index_however_often_it_is_added(void **state)
{
	struct regions r;
	char name[32];

	(void)state;
	regions_init(&r);
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < 5000; i++) {
			snprintf(name, sizeof name, "region %d", i);
			assert_int_equal(regions_name(&r, name, NULL), i);
		}
	}
	assert_int_equal(r.name_count, 5000);
	assert_string_equal(r.names[4321], "region 4321");
	regions_release(&r);
}

static void ranks_are_kept_in_order_and_once(void **state)
{
	static const uint32_t added[] = {5, 1, 3, 5, 0, 3, 7};
	static const uint32_t kept[] = {0, 1, 3, 5, 7};
	struct regions r;

	(void)state;
	regions_init(&r);
	for (size_t i = 0; i < sizeof added / sizeof *added; i++)
		assert_int_equal(regions_add_rank(&r, added[i], NULL), 0);
	assert_int_equal(r.rank_count, 5);
	assert_memory_equal(r.ranks, kept, sizeof kept);
	regions_release(&r);
}

static void what_is_added_begins_unknown(void **state)
{
	struct regions r;
	struct region_part *part;
	struct region_thread_row *thread;
	struct region_trouble_count *trouble;

	(void)state;
	regions_init(&r);
	part = regions_add_part(&r, 3, 4, NULL);
	assert_non_null(part);
	assert_int_equal(part->rank, 3);
	assert_int_equal(part->region, 4);
	assert_int_equal(part->exclusive, -1);
	assert_int_equal(part->line, -1);
	assert_string_equal(part->file, "");
	assert_int_equal(region_text(&part->file, "a.c", NULL), 0);
	assert_string_equal(part->file, "a.c");
	thread = regions_add_thread(&r, NULL);
	assert_int_equal(thread->cpu, -1);
	assert_string_equal(thread->name, "");
	trouble = regions_add_trouble(&r, NULL);
	assert_int_equal(trouble->count, 0);
	assert_string_equal(trouble->example, "");
	regions_release(&r);
}

static void the_last_of_a_fact_counts(void **state)
{
	struct regions r;

	(void)state;
	regions_init(&r);
	assert_null(regions_fact(&r, "host"));
	assert_int_equal(regions_set_fact(&r, "host", "a", NULL), 0);
	assert_int_equal(regions_set_fact(&r, "user", "u", NULL), 0);
	assert_int_equal(regions_set_fact(&r, "host", "b", NULL), 0);
	assert_int_equal(r.fact_count, 2);
	assert_string_equal(regions_fact(&r, "host"), "b");
	assert_int_equal(regions_add_note(&r, "rank %d is missing", 4), 0);
	assert_string_equal(r.notes[0], "rank 4 is missing");
	regions_release(&r);
}

/* The formula that stands in wire/regions.h, which writers follow. */
static uint64_t bucket_as_written(uint64_t d)
{
	unsigned e;

	if (d < 16)
		return d;
	e = 63 - (unsigned)__builtin_clzll(d);
	return 16 * (e - 3) + (d >> (e - 4)) - 16;
}

static void buckets_follow_each_other_and_are_those_of_the_writer(void **state)
{
	uint64_t low, high, before = 0;

	(void)state;
	assert_int_equal(REGION_BUCKET_COUNT, REGION_BUCKETS);
	for (unsigned i = 0; i < REGION_BUCKET_COUNT; i++) {
		region_bucket_bounds(i, &low, &high);
		assert_true(low == before && high > low);
		assert_int_equal(bucket_as_written(low), i);
		if (i + 1 < REGION_BUCKET_COUNT)
			assert_int_equal(bucket_as_written(high - 1), i);
		before = high;
	}
	assert_true(high == UINT64_MAX);
}

static void every_kind_of_trouble_has_its_own_text(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < REGION_TROUBLES; i++)
		for (uint32_t k = 0; k < i; k++)
			assert_string_not_equal(region_trouble_text(i), region_trouble_text(k));
	assert_string_equal(region_trouble_text(REGION_TROUBLE_NO_BEGIN), "ended without a beginning");
	assert_string_equal(region_trouble_text(REGION_TROUBLES), "of an unknown kind");
	assert_string_not_equal(region_trouble_text(REGION_TROUBLES - 1), "of an unknown kind");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_has_one_index_however_often_it_is_added),
		cmocka_unit_test(ranks_are_kept_in_order_and_once),
		cmocka_unit_test(what_is_added_begins_unknown),
		cmocka_unit_test(the_last_of_a_fact_counts),
		cmocka_unit_test(buckets_follow_each_other_and_are_those_of_the_writer),
		cmocka_unit_test(every_kind_of_trouble_has_its_own_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
