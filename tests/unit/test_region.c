#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <assay.h>
#include <errno.h>
#include <time.h>

#include "scratch.h"

#include "region_raw.h"

static struct assay_region outer = ASSAY_REGION_TAGGED("outer", "key=value");
static struct assay_region inner = ASSAY_REGION("inner");

static void wait_ns(int64_t ns)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec < ns);
}

static void nest(void)
{
	errno = EXDEV;
	assay_region_begin(&outer);
	for (int i = 0; i < 3; i++) {
		assay_region_begin(&inner);
		wait_ns(20000);
		assay_region_end(&inner);
	}
	assay_region_end(&outer);
	if (errno != EXDEV)
		_exit(1);
}

static void calls_are_written_when_they_end_with_their_depth(void **state)
{
	(void)state;
	raw_run(nest);
	assert_int_equal(raw.count, 4);
	assert_string_equal(raw.calls[0].name, "inner");
	assert_string_equal(raw.calls[3].name, "outer");
	assert_int_equal(raw.calls[0].event.depth, 1);
	assert_int_equal(raw.calls[3].event.depth, 0);
	for (size_t i = 0; i < 4; i++) {
		assert_true(raw.calls[i].event.start < raw.calls[i].event.end);
		assert_int_equal(raw.calls[i].event.flags, 0);
		assert_true(raw.calls[i].event.start >= raw.calls[3].event.start);
	}
	assert_int_equal(raw_trouble_sum(), 0);
	assert_int_equal(raw.closed, 1);
	assert_int_equal(raw.records[REGION_RECORD_NAME], 2);
	assert_int_equal(raw.records[REGION_RECORD_THREAD], 1);
	assert_int_equal(raw.records[REGION_RECORD_THREAD_END], 1);
	assert_int_equal(raw.records[WIRE_END], 1);
	assert_true(raw.records[REGION_RECORD_CLOCK] >= 2 && raw.clock_events >= 1);
}

static void aggregate(void)
{
	setenv("ASSAY_REGIONS", "aggregate", 1);
	nest();
}

static void sums_and_a_histogram_are_kept_in_mode_aggregate(void **state)
{
	const struct raw_total *in, *out;

	(void)state;
	raw_run(aggregate);
	assert_int_equal(raw.count, 0);
	in = raw_total_of("inner");
	out = raw_total_of("outer");
	assert_int_equal(in->calls, 3);
	assert_int_equal(in->timed, 3);
	assert_int_equal(in->in_buckets, 3);
	assert_int_equal(out->calls, 1);
	assert_int_equal(out->shortest, out->longest);
	assert_int_equal(out->total, out->longest);
	assert_int_equal(out->exclusive, out->total - in->total);
	assert_true(in->shortest <= in->longest && 3 * in->shortest <= in->total && in->total <= 3 * in->longest);
}

static void recurse(int depth)
{
	assay_region_begin(&outer);
	wait_ns(5000);
	if (depth > 0)
		recurse(depth - 1);
	assay_region_end(&outer);
}

static void recurse_in_aggregate(void)
{
	setenv("ASSAY_REGIONS", "aggregate", 1);
	recurse(5);
}

static void exclusive_time_is_right_under_recursion(void **state)
{
	const struct raw_total *total;

	(void)state;
	raw_run(recurse_in_aggregate);
	total = raw_total_of("outer");
	assert_int_equal(total->calls, 6);
	/* Inclusive time counts a moment as often as the region is open then; exclusive time once: the longest call. */
	assert_int_equal(total->exclusive, total->longest);
	assert_true(total->total > total->exclusive);
}

static void count(void)
{
	setenv("ASSAY_REGIONS", "count", 1);
	nest();
}

static void only_begins_are_counted_in_mode_count(void **state)
{
	(void)state;
	raw_run(count);
	assert_int_equal(raw.count, 0);
	assert_int_equal(raw_total_of("inner")->calls, 3);
	assert_int_equal(raw_total_of("outer")->calls, 1);
	assert_int_equal(raw_total_of("outer")->timed, 0);
	assert_int_equal(raw_trouble_sum(), 0);
}

static void stay_off(void)
{
	setenv("ASSAY_REGIONS", "off", 1);
	nest();
}

static void without(void)
{
	unsetenv("ASSAY_DIR");
	nest();
	if (assay_flush() != -1 || assay_set_mode(ASSAY_TRACE) != -1 || assay_directory() || assay_finalize() != 0)
		_exit(2);
	if (strcmp(assay_last_error(), "assay_set_mode: nothing is being recorded") != 0)
		_exit(3);
}

static void switched_off_or_without_a_folder_nothing_is_recorded(void **state)
{
	(void)state;
	raw_run(stay_off);
	assert_int_equal(raw.files, 0);
	raw_run(without);
	assert_int_equal(raw.files, 0);
}

static void switch_modes(void)
{
	assay_region_begin(&outer);
	assay_set_mode(ASSAY_AGGREGATE);
	assay_region_begin(&inner);
	assay_region_end(&inner);
	assay_region_end(&outer);
	assay_set_mode(ASSAY_OFF);
	assay_region_begin(&outer);
	assay_set_mode(ASSAY_TRACE);
	assay_region_end(&outer);
	nest();
}

static void a_region_that_is_open_while_the_mode_changes_is_counted(void **state)
{
	(void)state;
	raw_run(switch_modes);
	assert_int_equal(raw.troubles[REGION_TROUBLE_SWITCHED], 2);
	assert_int_equal(raw_trouble_sum(), 2);
	assert_int_equal(raw.count, 4);
	assert_int_equal(raw_total_of("inner")->calls, 1);
	assert_int_equal(raw.records[REGION_RECORD_MODE], 3);
}

static void use_after_the_end(void)
{
	nest();
	assay_finalize();
	nest();
	assay_token_end(assay_token_begin(&outer));
}

static void after_finalize_nothing_is_recorded(void **state)
{
	(void)state;
	raw_run(use_after_the_end);
	assert_int_equal(raw.count, 4);
	assert_int_equal(raw.processes, 1);
}

static void begin_again(void)
{
	struct assay_options options = {NULL, ASSAY_TRACE, 0};

	nest();
	assay_finalize();
	if (assay_init(&options) != 0 || assay_init(&options) != 0)
		_exit(1);
	nest();
	options.dir = "/";
	if (assay_init(&options) != -1 || !strstr(assay_last_error(), "already"))
		_exit(2);
}

static void a_program_can_begin_again(void **state)
{
	(void)state;
	raw_run(begin_again);
	assert_int_equal(raw.processes, 2);
	assert_int_equal(raw.count, 8);
	assert_int_equal(raw_calls_of("inner"), 6);
}

static void name_many(void)
{
	char name[2000];

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 70000; i++) {
			struct assay_region *region;

			snprintf(name, sizeof name, "name %d", i);
			region = assay_region_named(name);
			if (i < 65000 && region != assay_region_named(name))
				_exit(1);
			assay_region_begin(region);
			assay_region_end(region);
		}
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	if (assay_region_named(name) != assay_region_named(name) || !assay_region_named(NULL))
		_exit(2);
}

static void names_beyond_the_last_id_are_one(void **state)
{
	(void)state;
	raw_run(name_many);
	assert_int_equal(raw.count, 140000);
	assert_int_equal(raw.records[REGION_RECORD_NAME], 65535);
	assert_int_equal(raw.troubles[REGION_TROUBLE_OTHER_NAMES], 2 * (70000 - 65534));
	assert_int_equal(raw_calls_of("name 7"), 2);
}

static void tell_facts(void)
{
	setenv("OMPI_COMM_WORLD_RANK", "3", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
	setenv("ASSAY_LIMIT", "lots", 1);
	if (assay_set_metadata("label", "first") != 0 || assay_set_metadata(NULL, "x") != -1)
		_exit(1);
	if (assay_set_clock_offset(5, 1) != 0 || assay_set_rank(9, 8) != -1 || assay_flush() != 0)
		_exit(2);
	if (strcmp(assay_directory(), scratch_dir) != 0 || assay_get_mode() != ASSAY_TRACE)
		_exit(3);
}

static void ask_for_no_byte(void)
{
	setenv("ASSAY_LIMIT", "0", 1);
	assay_flush();
	if (assay_set_metadata("label", "first") != 0)
		_exit(1);
}

static void a_limit_of_nothing_is_none(void **state)
{
	(void)state;
	raw_run(ask_for_no_byte);
	assert_int_equal(raw.process.limit, UINT64_C(8) << 30);
	assert_non_null(strstr(raw.metadata, "libassay_note=ASSAY_LIMIT is no number"));
}

static void the_table_tells_of_the_process(void **state)
{
	(void)state;
	raw_run(tell_facts);
	assert_int_equal(raw.rank.rank, 3);
	assert_int_equal(raw.rank.size, 8);
	assert_int_equal(raw.rank.source, 1);
	assert_int_equal(raw.process.limit, UINT64_C(8) << 30);
	assert_non_null(strstr(raw.metadata, "label=first\n"));
	assert_non_null(strstr(raw.metadata, "libassay_note=ASSAY_LIMIT is no number"));
	assert_non_null(strstr(raw.metadata, "working_directory=/"));
	assert_int_equal(raw.records[REGION_RECORD_OFFSET], 1);
}

static void use_tokens(void)
{
	assay_token a = assay_token_begin(&outer), b = assay_token_begin(&inner), none = {0, 0, 0};

	assay_token_end(a);
	assay_token_end(b);
	assay_token_end(b);
	assay_token_end((assay_token){1, 1, 12345});
	assay_token_end(none);
}

static void tokens_overlap_and_end_once(void **state)
{
	(void)state;
	raw_run(use_tokens);
	assert_int_equal(raw.count, 2);
	assert_int_equal(raw_call("outer")->flags, REGION_EVENT_DETACHED);
	assert_true(raw_call("outer")->end > raw_call("inner")->start);
	assert_int_equal(raw.troubles[REGION_TROUBLE_BAD_TOKEN], 2);
}

static void hold_many_tokens(void)
{
	static assay_token tokens[100000];

	for (int i = 0; i < 100000; i++)
		tokens[i] = assay_token_begin(&outer);
	for (int i = 0; i < 100000; i++)
		assay_token_end(tokens[i]);
}

static void more_tokens_than_can_be_told_apart_are_recorded_as_well(void **state)
{
	(void)state;
	raw_run(hold_many_tokens);
	assert_int_equal(raw.count, 100000);
	assert_int_equal(raw_trouble_sum(), 0);
}

static void call_many(void)
{
	for (int i = 0; i < 1000000; i++) {
		assay_region_begin(&inner);
		assay_region_end(&inner);
	}
}

static void no_call_is_lost_over_many_windows(void **state)
{
	uint64_t last = 0;

	(void)state;
	raw_run(call_many);
	assert_int_equal(raw.count, 1000000);
	for (size_t i = 0; i < raw.count; i++) {
		assert_true(raw.calls[i].event.start >= last && raw.calls[i].event.end >= raw.calls[i].event.start);
		last = raw.calls[i].event.end;
	}
	assert_int_equal(raw.dropped, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
	const struct CMUnitTest tests[] = {
		TEST(calls_are_written_when_they_end_with_their_depth),
		TEST(sums_and_a_histogram_are_kept_in_mode_aggregate),
		TEST(exclusive_time_is_right_under_recursion),
		TEST(only_begins_are_counted_in_mode_count),
		TEST(switched_off_or_without_a_folder_nothing_is_recorded),
		TEST(a_region_that_is_open_while_the_mode_changes_is_counted),
		TEST(after_finalize_nothing_is_recorded),
		TEST(a_program_can_begin_again),
		TEST(names_beyond_the_last_id_are_one),
		TEST(the_table_tells_of_the_process),
		TEST(a_limit_of_nothing_is_none),
		TEST(tokens_overlap_and_end_once),
		TEST(more_tokens_than_can_be_told_apart_are_recorded_as_well),
		TEST(no_call_is_lost_over_many_windows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
