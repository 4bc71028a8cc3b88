#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "scratch.h"
#include "store/region_calls.h"
#include "store/region_segments.h"
#include "wire/segment.h"

#define NAME "regions-7-00000000000000aa"
#define DATA_OFFSET 65536u /* the areas of this file are small: a reader goes by the header */
#define STACK_OFFSET 4096u
#define TOTALS_OFFSET 8192u
#define BUCKETS_OFFSET 16384u

static void append(struct segment_writer *w, uint16_t type, const void *head, size_t size, const char *texts,
		   size_t length)
{
	char payload[512];

	memcpy(payload, head, size);
	memcpy(payload + size, texts, length);
	assert_int_equal(segment_append(w, type, 0, payload, size + length), 0);
}

static void begin_table(struct segment_writer *w, const char *name, int64_t mono)
{
	struct region_process p = {.layout = 1, .clock = REGION_CLOCK_MONOTONIC, .pid = 7, .mono_ns = mono,
				   .boot_id = "boot"};

	assert_int_equal(segment_create(w, scratch_path(name), SEGMENT_KIND_REGIONS, 1 << 20), 0);
	append(w, REGION_RECORD_PROCESS, &p, sizeof p, "host\0./app", 11);
}

static void a_process_is_what_its_table_says(void **state)
{
	struct region_name solve = {3, 42};
	struct region_rank rank = {2, 4, 1, 0};
	struct region_thread_born born = {0, 70, 0, 0, 5};
	struct region_thread_end end = {0, 0, 99, 17};
	struct segment_writer w;
	struct region_job j;
	struct region_details d;
	struct error err;

	(void)state;
	begin_table(&w, NAME ".table", 5);
	append(&w, REGION_RECORD_RANK, &rank, sizeof rank, "", 0);
	append(&w, REGION_RECORD_NAME, &solve, sizeof solve, "s\xffolve\0a.c\0k=v", 14);
	append(&w, REGION_RECORD_THREAD_END, &end, sizeof end, "", 0); /* also before the beginning */
	append(&w, REGION_RECORD_THREAD, &born, sizeof born, "worker", 7);
	append(&w, REGION_RECORD_METADATA, "", 0, "user\0me", 8);
	append(&w, 999, "", 0, "of the future", 14);
	segment_close(&w);
	region_job_init(&j);
	assert_int_equal(region_job_add_folder(&j, scratch_dir, &err), 0);
	assert_int_equal(region_job_add_folder(&j, scratch_dir, &err), 0);
	region_job_finish(&j);
	assert_int_equal(j.count, 1); /* found twice, there once */
	assert_string_equal(j.logs[0].host, "host");
	assert_string_equal(j.logs[0].command, "./app");
	assert_int_equal(j.logs[0].rank.rank, 2);
	assert_true(j.logs[0].closed && !j.logs[0].damage);
	region_details_init(&d);
	assert_int_equal(region_details_read(&j.logs[0], &d, &err), 0);
	assert_int_equal(d.name_count, 4);
	assert_null(d.names[1].name);
	assert_string_equal(d.names[3].name, "s\xef\xbf\xbdolve");
	assert_string_equal(d.names[3].file, "a.c");
	assert_string_equal(d.names[3].tags, "k=v");
	assert_int_equal(d.thread_count, 1);
	assert_int_equal(region_details_thread(&d, 0)->end, 99);
	assert_int_equal(region_details_thread(&d, 0)->cpu, 17);
	assert_string_equal(region_details_thread(&d, 0)->name, "worker");
	assert_null(region_details_thread(&d, 1));
	assert_string_equal(d.facts[0].value, "me");
	region_details_release(&d);
	region_job_release(&j);
}

static void processes_come_in_the_order_of_their_starts(void **state)
{
	struct segment_writer w;
	struct region_job j;
	struct error err;

	(void)state;
	begin_table(&w, "regions-1-00000000000000aa.table", 300);
	segment_close(&w);
	begin_table(&w, "regions-2-00000000000000ab.table", 100);
	segment_close(&w);
	region_job_init(&j);
	assert_int_equal(region_job_add_folder(&j, scratch_dir, &err), 0);
	region_job_finish(&j);
	assert_int_equal(j.count, 2);
	assert_int_equal(j.logs[0].process.mono_ns, 100);
	region_job_release(&j);
}

static void damage_costs_what_stands_behind_it(void **state)
{
	struct region_rank rank = {1, 0, 1, 0};
	struct segment_writer w;
	struct region_job j;
	struct error err;

	(void)state;
	begin_table(&w, NAME ".table", 5);
	append(&w, REGION_RECORD_RANK, &rank, sizeof rank, "", 0);
	append(&w, REGION_RECORD_CLOCK, "short", 5, "", 0);
	rank.rank = 3;
	append(&w, REGION_RECORD_RANK, &rank, sizeof rank, "", 0);
	segment_abandon(&w); /* never closed */
	region_job_init(&j);
	assert_int_equal(region_job_add_folder(&j, scratch_dir, &err), 0);
	assert_int_equal(j.count, 1);
	assert_int_equal(j.logs[0].rank.rank, 1);
	assert_false(j.logs[0].closed);
	assert_non_null(strstr(j.logs[0].damage, "too short"));
	region_job_release(&j);
}

static void what_cannot_be_read_is_named(void **state)
{
	struct region_job j;
	struct error err;

	(void)state;
	assert_int_equal(fs_write_file(scratch_path(NAME ".table"), "nonsense", 8, &err), 0);
	assert_int_equal(fs_write_file(scratch_path("regions-8-00000000000000bb.0"), "", 0, &err), 0);
	assert_int_equal(fs_write_file(scratch_path("regions-x-00000000000000bb.table"), "", 0, &err), 0);
	assert_int_equal(fs_write_file(scratch_path("other"), "", 0, &err), 0);
	region_job_init(&j);
	assert_int_equal(region_job_add_folder(&j, scratch_dir, &err), 0);
	assert_int_equal(j.count, 0);
	assert_int_equal(j.note_count, 2);
	assert_non_null(strstr(j.notes[0], NAME ".table: not a segment"));
	assert_non_null(strstr(j.notes[1], "calls without their table"));
	assert_int_equal(region_job_add_folder(&j, scratch_path("missing"), &err), -1);
	region_job_release(&j);
}

/* A file of calls with some events, `depth` open regions and one sum, whose header says `committed`. */
static void write_calls(const struct region_event *events, size_t count, uint32_t depth, uint64_t committed)
{
	static unsigned char file[DATA_OFFSET + 1024];
	struct segment_header *h = (struct segment_header *)file;
	struct region_thread *t = (struct region_thread *)(file + REGION_THREAD_OFFSET);
	struct region_slot *slots = (struct region_slot *)(file + STACK_OFFSET);
	struct region_total *totals = (struct region_total *)(file + TOTALS_OFFSET);
	struct error err;

	memset(file, 0, sizeof file);
	memcpy(h->magic, SEGMENT_MAGIC, 8);
	h->version = SEGMENT_VERSION;
	h->kind = SEGMENT_KIND_CALLS;
	h->data_offset = DATA_OFFSET;
	h->committed = committed;
	*t = (struct region_thread){.layout = 1, .clock = REGION_CLOCK_MONOTONIC, .stack_offset = STACK_OFFSET,
				    .totals_offset = TOTALS_OFFSET, .buckets_offset = BUCKETS_OFFSET};
	t->depth = depth;
	for (uint32_t i = 0; i < 3; i++) {
		slots[i].start = 10 * (i + 1);
		slots[i].region = i + 1;
	}
	totals[2].timed = 5;
	totals[2].calls = 4; /* killed between the two */
	((uint64_t *)(file + BUCKETS_OFFSET))[2 * REGION_BUCKETS + 3] = 5;
	memcpy(file + DATA_OFFSET, events, count * sizeof *events);
	assert_int_equal(fs_write_file(scratch_path("calls"), file, DATA_OFFSET + count * sizeof *events, &err), 0);
}

static void committed_is_cut_to_what_the_file_holds(void **state)
{
	struct region_event events[2] = {{1, 2, 1, 0, 0, 0}, {3, 4, 2, 0, 0, 0}}, got;
	CLEANUP(region_calls_cleanup) struct region_calls *c = NULL;
	struct error err;

	(void)state;
	write_calls(events, 2, 0, UINT64_MAX);
	assert_int_equal(region_calls_open(scratch_path("calls"), &c, &err), 0);
	assert_int_equal(region_calls_facts(c)->events, 2);
	assert_int_equal(region_calls_read(c, 1, 1, &got, &err), 0);
	assert_int_equal(got.end, 4);
	assert_int_equal(region_calls_read(c, 2, 1, &got, &err), -1);
}

static void an_event_that_was_not_committed_is_none(void **state)
{
	struct region_event events[2] = {{1, 2, 1, 0, 0, 0}, {3, 4, 2, 0, 0, 0}};
	CLEANUP(region_calls_cleanup) struct region_calls *c = NULL;
	struct error err;

	(void)state;
	write_calls(events, 2, 0, DATA_OFFSET + 47);
	assert_int_equal(region_calls_open(scratch_path("calls"), &c, &err), 0);
	assert_int_equal(region_calls_facts(c)->events, 1);
}

static void open_regions_are_found_but_not_one_that_has_just_ended(void **state)
{
	struct region_event other = {1, 2, 1, 0, 0, 0}, ended = {30, 35, 3, 2, 0, 0};
	CLEANUP(region_calls_cleanup) struct region_calls *c = NULL;
	CLEANUP(free_cleanup) struct region_open *open = NULL;
	struct error err;
	size_t count;

	(void)state;
	write_calls(&other, 1, 3, UINT64_MAX);
	assert_int_equal(region_calls_open(scratch_path("calls"), &c, &err), 0);
	assert_int_equal(region_calls_stack(c, &open, &count, &err), 0);
	assert_int_equal(count, 3);
	assert_int_equal(open[2].region, 3);
	assert_int_equal(open[2].start, 30);
	assert_int_equal(open[2].depth, 2);
	free_cleanup(&open);
	open = NULL;
	region_calls_free(c);
	c = NULL;
	write_calls(&ended, 1, 3, UINT64_MAX);
	assert_int_equal(region_calls_open(scratch_path("calls"), &c, &err), 0);
	assert_int_equal(region_calls_stack(c, &open, &count, &err), 0);
	assert_int_equal(count, 2);
}

static void sums_and_their_histograms_are_read(void **state)
{
	CLEANUP(region_calls_cleanup) struct region_calls *c = NULL;
	CLEANUP(free_cleanup) struct region_sum *sums = NULL;
	uint64_t buckets[REGION_BUCKETS];
	struct region_event none = {0};
	struct error err;
	size_t count;

	(void)state;
	write_calls(&none, 0, 0, 0);
	assert_int_equal(region_calls_open(scratch_path("calls"), &c, &err), 0);
	assert_int_equal(region_calls_sums(c, 3, &sums, &count, &err), 0);
	assert_int_equal(count, 1);
	assert_int_equal(sums[0].region, 2);
	assert_int_equal(sums[0].timed, 5);
	assert_int_equal(sums[0].calls, 5);
	assert_int_equal(region_calls_buckets(c, 2, buckets, &err), 0);
	assert_int_equal(buckets[3], 5);
	assert_int_equal(buckets[4], 0);
}

static void what_is_no_file_of_calls_is_refused(void **state)
{
	struct region_calls *c = NULL;
	struct error err;

	(void)state;
	assert_int_equal(fs_write_file(scratch_path("calls"), "short", 5, &err), 0);
	assert_int_equal(region_calls_open(scratch_path("calls"), &c, &err), -1);
	assert_int_equal(region_calls_open(scratch_dir, &c, &err), -1);
	assert_int_equal(mkfifo(scratch_path("fifo"), 0600), 0);
	assert_int_equal(region_calls_open(scratch_path("fifo"), &c, &err), -1);
	assert_null(c);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(a_process_is_what_its_table_says),
		IN_SCRATCH(processes_come_in_the_order_of_their_starts),
		IN_SCRATCH(damage_costs_what_stands_behind_it),
		IN_SCRATCH(what_cannot_be_read_is_named),
		IN_SCRATCH(committed_is_cut_to_what_the_file_holds),
		IN_SCRATCH(an_event_that_was_not_committed_is_none),
		IN_SCRATCH(open_regions_are_found_but_not_one_that_has_just_ended),
		IN_SCRATCH(sums_and_their_histograms_are_read),
		IN_SCRATCH(what_is_no_file_of_calls_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
