#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "need.h"
#include "hdf5_plugin.h"
#include "scratch.h"
#include "store/region_writer.h"
#include "wire/regions.h"

#define CALLS 200000u /* more than three chunks */
#define PARTS 4u

static int64_t start_of(uint64_t i)
{
	return 1000000 + (int64_t)(i * 5000 + i * i % 977);
}

static int64_t end_of(uint64_t i)
{
	return start_of(i) + 100 + (int64_t)(i * 31 % 1009);
}

static int64_t value_of(enum region_column c, uint64_t i)
{
	switch (c) {
	case REGION_START:
		return start_of(i);
	case REGION_END:
		return end_of(i);
	case REGION_GPU:
		return i % 3 ? -1 : (int64_t)i;
	default:
		return (int64_t)(i * (uint64_t)c) - 1;
	}
}

#define SOME (1u << REGION_GPU | 1u << REGION_CALL | 1u << REGION_THREAD)

/* In pieces whose size has nothing to do with that of chunks. */
static int add_calls(struct region_writer *w, struct error *err)
{
	static int64_t rows[REGION_COLUMNS][7001];

	for (uint64_t at = 0; at < CALLS;) {
		const int64_t *columns[REGION_COLUMNS] = {NULL};
		size_t n = 0;

		for (; n < 7001 && at + n < CALLS; n++)
			for (enum region_column c = 0; c < REGION_COLUMNS; c++)
				rows[c][n] = value_of(c, at + n);
		for (enum region_column c = 0; c < REGION_COLUMNS; c++)
			columns[c] = (SOME | 3u) & 1u << c ? rows[c] : NULL;
		if (region_writer_add(w, columns, n, err) < 0)
			return -1;
		at += n;
	}
	return 0;
}

/* Part 0 has a few calls, part 1 none, part 2 nearly all, part 3 the rest and some that were only added up. */
static void describe(struct regions *r)
{
	static const uint64_t firsts[] = {0, 10, 10, 150000, CALLS};
	static const char *const names[] = {"first", "none", "inner/most", "last \xc3\xa4"};
	struct region_thread_row *thread;
	struct region_trouble_count *trouble;
	struct error err;

	regions_init(r);
	for (uint32_t i = 0; i < PARTS; i++) {
		int64_t name = regions_name(r, names[i], &err);
		struct region_part *part = regions_add_part(r, i / 2, (uint32_t)name, &err);

		part->first = firsts[i];
		part->count = part->calls = firsts[i + 1] - firsts[i];
		part->exclusive = i == 1 ? -1 : 77 + (int64_t)i;
		part->line = i;
		part->dropped = i * 5;
		assert_int_equal(regions_add_rank(r, i / 2, &err), 0);
	}
	r->parts[3].summarised = true;
	r->parts[3].timed = 2;
	r->parts[3].calls += 3;
	r->parts[3].summary = (struct region_summary){.total = 30, .minimum = 10, .maximum = 20, .first = 10,
						      .last = 20, .mean = 15, .m2 = 50};
	r->parts[3].ns_per_unit = 0.5;
	r->parts[3].buckets = calloc(REGION_BUCKETS, sizeof *r->parts[3].buckets);
	r->parts[3].buckets[9] = 2;
	assert_int_equal(regions_add_rank(r, 7, &err), 0); /* has no regions */
	assert_int_equal(regions_set_fact(r, "hostname", "no\377xy", &err), 0);
	assert_int_equal(regions_set_fact(r, "mpi_size", "8", &err), 0);
	assert_int_equal(regions_add_note(r, "rank %d was killed", 5), 0);
	thread = regions_add_thread(r, &err);
	thread->rank = 1, thread->index = 3, thread->native_id = 4711, thread->cpu = 99;
	trouble = regions_add_trouble(r, &err);
	trouble->rank = 1, trouble->kind = REGION_TROUBLE_CROSSED, trouble->count = 6;
}

static void write_file(const char *path, struct regions *r)
{
	struct region_writer *w = NULL;
	struct error err = {{0}};

	describe(r);
	if (region_writer_new(path, SOME, &w, &err) < 0 || add_calls(w, &err) < 0 ||
	    region_writer_commit(w, r, &err) < 0)
		fail_msg("%s", err.text);
	region_writer_free(w);
}

static void what_was_written_is_what_is_read(void **state)
{
	struct region_file *f;
	const struct regions *r;
	struct regions w;
	int64_t *rows = calloc(CALLS, sizeof *rows);
	struct error err;

	(void)state;
	need_plugin();
	write_file(scratch_path("a.h5"), &w);
	f = open_file(scratch_path("a.h5"));
	r = region_file_regions(f);
	assert_int_equal(r->layout, 2);
	assert_int_equal(r->columns, SOME | 3u);
	assert_int_equal(r->call_count, CALLS);
	for (enum region_column c = 0; c < REGION_COLUMNS; c++) {
		assert_int_equal(region_file_read(f, c, 0, CALLS, rows, &err), 0);
		for (uint64_t i = 0; i < CALLS; i++)
			assert_int_equal(rows[i], r->columns & 1u << c ? value_of(c, i) : -1);
		for (uint64_t i = 0; i < CALLS; i += 9973) {
			assert_int_equal(region_file_read(f, c, i, 1, rows, &err), 0);
			assert_int_equal(rows[0], r->columns & 1u << c ? value_of(c, i) : -1);
		}
	}
	assert_int_equal(region_file_read(f, REGION_START, CALLS, 1, rows, &err), -1);
	assert_int_equal(r->part_count, PARTS);
	for (size_t i = 0; i < PARTS; i++) {
		assert_string_equal(r->names[r->parts[i].region], w.names[i]);
		assert_int_equal(r->parts[i].rank, i / 2);
		assert_int_equal(r->parts[i].first, w.parts[i].first);
		assert_int_equal(r->parts[i].count, w.parts[i].count);
		assert_int_equal(r->parts[i].calls, w.parts[i].calls);
		assert_int_equal(r->parts[i].dropped, w.parts[i].dropped);
		assert_int_equal(r->parts[i].exclusive, w.parts[i].exclusive);
		assert_int_equal(r->parts[i].line, w.parts[i].line);
		assert_int_equal(r->parts[i].summarised, i == 3);
	}
	regions_release(&w);
	region_file_free(f);
	free(rows);
}

static void what_is_known_beside_the_calls_comes_back(void **state)
{
	struct region_file *f;
	const struct regions *r;
	struct regions w;

	(void)state;
	need_plugin();
	write_file(scratch_path("a.h5"), &w);
	f = open_file(scratch_path("a.h5"));
	r = region_file_regions(f);
	assert_int_equal(r->rank_count, 3);
	assert_int_equal(r->ranks[2], 7);
	assert_string_equal(regions_fact(r, "hostname"), "no\357\277\275xy");
	assert_string_equal(regions_fact(r, "mpi_size"), "8");
	assert_int_equal(r->note_count, 1);
	assert_string_equal(r->notes[0], "rank 5 was killed");
	assert_int_equal(r->thread_count, 1);
	assert_int_equal(r->threads[0].native_id, 4711);
	assert_int_equal(r->threads[0].cpu, 99);
	assert_int_equal(r->threads[0].start, -1);
	assert_int_equal(r->trouble_count, 1);
	assert_int_equal(r->troubles[0].kind, REGION_TROUBLE_CROSSED);
	assert_int_equal(r->troubles[0].count, 6);
	assert_int_equal(r->parts[3].timed, 2);
	assert_int_equal(r->parts[3].summary.total, 30);
	assert_int_equal(r->parts[3].buckets[9], 2);
	assert_true(fabs(r->parts[3].ns_per_unit - 0.5) < 1e-15);
	regions_release(&w);
	region_file_free(f);
}

static void the_statistics_of_a_region_are_those_of_its_calls(void **state)
{
	struct region_file *f;
	const struct region_part *part;
	struct regions w;
	double mean = 0, m2 = 0;
	int64_t total = 0;

	(void)state;
	need_plugin();
	write_file(scratch_path("a.h5"), &w);
	f = open_file(scratch_path("a.h5"));
	part = &region_file_regions(f)->parts[2];
	for (uint64_t i = part->first; i < part->first + part->count; i++)
		total += end_of(i) - start_of(i);
	mean = (double)total / (double)part->count;
	for (uint64_t i = part->first; i < part->first + part->count; i++)
		m2 += ((double)(end_of(i) - start_of(i)) - mean) * ((double)(end_of(i) - start_of(i)) - mean);
	assert_int_equal(part->summary.total, total);
	assert_int_equal(part->summary.minimum, 100);
	assert_int_equal(part->summary.maximum, 1108);
	assert_int_equal(part->summary.first, end_of(10) - start_of(10));
	assert_int_equal(part->summary.last, end_of(149999) - start_of(149999));
	assert_int_equal(part->summary.end_maximum, end_of(149999));
	assert_int_equal(part->summary.gpu_count, 49996); /* every third of 10 to 149999 */
	assert_true(fabs(part->summary.mean - mean) <= 1e-12 * mean);
	assert_true(fabs(part->summary.m2 - m2) <= 1e-12 * m2);
	regions_release(&w);
	region_file_free(f);
}

struct counted {
	_Atomic uint64_t calls, sum;
	unsigned char seen[CALLS];
	uint64_t next; /* row that is expected, where `ordered` */
	bool ordered, stop;
};

static int count_block(void *context, unsigned worker, const struct region_block *block, struct error *err)
{
	struct counted *counted = context;

	(void)worker;
	if (counted->stop)
		return error_set(err, "enough");
	if (counted->ordered) {
		assert_int_equal(counted->next, block->first);
		counted->next = block->first + block->n;
	}
	for (size_t i = 0; i < block->n; i++) {
		assert_int_equal(counted->seen[block->first + i]++, 0);
		assert_int_equal(block->columns[REGION_START][i], start_of(block->first + i));
		assert_int_equal(block->columns[REGION_TASK][i], -1);
		assert_null(block->columns[REGION_GPU]);
	}
	atomic_fetch_add(&counted->calls, block->n);
	return 0;
}

static void a_scan_gives_every_wanted_call_once(void **state)
{
	static const bool wanted[PARTS] = {true, true, false, true};
	static struct counted all, some, ordered, stopped;
	struct region_scan scan = {.columns = 1u << REGION_TASK, .workers = 4, .block = count_block, .context = &all};
	struct region_file *f;
	struct regions w;
	struct error err;

	(void)state;
	need_plugin();
	write_file(scratch_path("a.h5"), &w);
	f = open_file(scratch_path("a.h5"));
	assert_int_equal(region_file_scan(f, &scan, &err), 0);
	assert_int_equal(all.calls, CALLS);
	scan.wanted = wanted;
	scan.context = &some;
	assert_int_equal(region_file_scan(f, &scan, &err), 0);
	assert_int_equal(some.calls, 10 + 50000);
	scan.wanted = NULL;
	scan.workers = 1;
	scan.context = &ordered;
	ordered.ordered = true;
	assert_int_equal(region_file_scan(f, &scan, &err), 0);
	assert_int_equal(ordered.calls, CALLS);
	stopped.stop = true;
	scan.context = &stopped;
	assert_int_equal(region_file_scan(f, &scan, &err), -1);
	assert_non_null(strstr(err.text, "a.h5: enough"));
	regions_release(&w);
	region_file_free(f);
}

static void the_last_digits_do_not_depend_on_the_threads(void **state)
{
	struct region_file *a, *b;
	struct regions w;

	(void)state;
	need_plugin();
	write_file(scratch_path("a.h5"), &w);
	regions_release(&w);
	write_file(scratch_path("b.h5"), &w);
	a = open_file(scratch_path("a.h5"));
	b = open_file(scratch_path("b.h5"));
	for (size_t i = 0; i < PARTS; i++)
		assert_memory_equal(&region_file_regions(a)->parts[i].summary,
				    &region_file_regions(b)->parts[i].summary, sizeof(struct region_summary));
	regions_release(&w);
	region_file_free(a);
	region_file_free(b);
}

static void layout_1_holds_the_calls_and_says_what_it_lost(void **state)
{
	struct region_file *f, *old;
	const struct regions *r;
	struct regions w;
	char *lost = NULL;
	struct error err = {{0}};
	int64_t gpu[3];

	(void)state;
	need_plugin();
	write_file(scratch_path("a.h5"), &w);
	f = open_file(scratch_path("a.h5"));
	if (region_layout1_write(f, scratch_path("old.h5"), &lost, &err) < 0)
		fail_msg("%s", err.text);
	assert_non_null(lost);
	assert_non_null(strstr(lost, "threads"));
	assert_non_null(strstr(lost, "dropped"));
	assert_null(strstr(lost, "tasks"));
	old = open_file(scratch_path("old.h5"));
	r = region_file_regions(old);
	assert_int_equal(r->layout, 1);
	assert_int_equal(r->call_count, CALLS);
	assert_int_equal(r->part_count, 3); /* not the one without calls */
	assert_int_equal(r->rank_count, 3);
	assert_string_equal(r->names[r->parts[1].region], "inner/most");
	assert_int_equal(r->parts[1].line, 2);
	assert_int_equal(region_file_read(old, REGION_GPU, 9, 3, gpu, &err), 0);
	assert_int_equal(gpu[0], 9);
	assert_int_equal(gpu[1], -1);
	free(lost);
	regions_release(&w);
	region_file_free(old);
	region_file_free(f);
}

static void a_name_that_layout_1_cannot_hold_is_told(void **state)
{
	static const char *const names[] = {"", ".", "a//b", "/a", "a/."};
	const int64_t row = 5;
	const int64_t *columns[REGION_COLUMNS] = {&row, &row};

	(void)state;
	need_plugin();
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct region_writer *w;
		struct region_file *f;
		struct regions r;
		struct error err;
		char *lost = NULL;

		regions_init(&r);
		regions_add_part(&r, 0, (uint32_t)regions_name(&r, names[i], &err), &err)->count = 1;
		assert_int_equal(region_writer_new(scratch_path("n.h5"), 0, &w, &err), 0);
		assert_int_equal(region_writer_add(w, columns, 1, &err), 0);
		assert_int_equal(region_writer_commit(w, &r, &err), 0);
		region_writer_free(w);
		f = open_file(scratch_path("n.h5"));
		assert_int_equal(region_layout1_write(f, scratch_path("o.h5"), &lost, &err), -1);
		assert_non_null(strstr(err.text, "layout 1 cannot hold a region of the name"));
		assert_false(fs_exists(scratch_path("o.h5")));
		region_file_free(f);
		regions_release(&r);
	}
}

/* Nothing but the old file is there. */
static void assert_old_file_alone(const char *path)
{
	struct buf text;
	struct error err;
	char command[600];

	buf_init(&text);
	assert_int_equal(fs_read_file(path, 100, &text, &err), 0);
	assert_string_equal(text.text, "old and good");
	buf_release(&text);
	snprintf(command, sizeof command, "test \"$(ls %s)\" = old.h5", scratch_dir);
	assert_int_equal(system(command), 0);
}

static void a_writer_that_ends_without_a_commit_leaves_the_old_file(void **state)
{
	struct region_writer *w = NULL;
	struct error err;

	(void)state;
	need_plugin();
	assert_int_equal(fs_write_file(scratch_path("old.h5"), "old and good", 12, &err), 0);
	assert_int_equal(region_writer_new(scratch_path("old.h5"), SOME, &w, &err), 0);
	assert_int_equal(add_calls(w, &err), 0);
	region_writer_free(w);
	assert_old_file_alone(scratch_path("old.h5"));
}

static void a_full_disk_is_one_sentence_and_leaves_the_old_file(void **state)
{
	struct rlimit old, small;
	struct region_writer *w = NULL;
	struct regions r;
	struct error err = {{0}};
	int result;

	(void)state;
	need_plugin();
	describe(&r);
	assert_int_equal(fs_write_file(scratch_path("old.h5"), "old and good", 12, &err), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 300000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	result = region_writer_new(scratch_path("old.h5"), SOME, &w, &err);
	if (result == 0)
		result = add_calls(w, &err);
	if (result == 0)
		result = region_writer_commit(w, &r, &err);
	region_writer_free(w);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(result, -1);
	assert_non_null(strstr(err.text, "old.h5: HDF5 cannot"));
	assert_non_null(strstr(err.text, "File too large"));
	assert_old_file_alone(scratch_path("old.h5"));
	regions_release(&r);
}

static void parts_that_do_not_cover_what_was_added_are_an_error(void **state)
{
	struct region_writer *w;
	struct regions r;
	struct error err;

	(void)state;
	need_plugin();
	describe(&r);
	r.parts[3].count--;
	assert_int_equal(region_writer_new(scratch_path("a.h5"), SOME, &w, &err), 0);
	assert_int_equal(add_calls(w, &err), 0);
	assert_int_equal(region_writer_commit(w, &r, &err), -1);
	assert_non_null(strstr(err.text, "200000 calls were written, and the parts have 199999"));
	region_writer_free(w);
	assert_false(fs_exists(scratch_path("a.h5")));
	regions_release(&r);
}

static void a_file_without_any_call_is_a_file(void **state)
{
	struct region_writer *w;
	struct region_file *f;
	struct regions r;
	struct error err;

	(void)state;
	need_plugin();
	regions_init(&r);
	assert_int_equal(region_writer_new(scratch_path("a.h5"), SOME, &w, &err), 0);
	assert_int_equal(region_writer_commit(w, &r, &err), 0);
	region_writer_free(w);
	f = open_file(scratch_path("a.h5"));
	assert_int_equal(region_file_regions(f)->call_count, 0);
	assert_int_equal(region_file_regions(f)->part_count, 0);
	region_file_free(f);
	regions_release(&r);
}

static void what_is_no_regular_file_is_not_written_to(void **state)
{
	struct region_writer *w = NULL;
	struct error err;

	(void)state;
	need_plugin();
	assert_int_equal(region_writer_new("/dev/null", 0, &w, &err), -1);
	assert_string_equal(err.text, "/dev/null: a file of regions cannot be written to what is no regular file");
}

/* 262,144 are written and read, with the child's limits on memory; one more is refused when it is written. */
static void more_sums_than_can_be_read_are_not_written(void **state)
{
	const size_t limit = (size_t)1 << 18;
	struct region_writer *w = NULL;
	struct region_file *f;
	struct regions r;
	struct error err;

	(void)state;
	need_plugin();
	regions_init(&r);
	assert_int_equal(regions_name(&r, "solve", &err), 0);
	for (size_t i = 0; i < limit; i++) {
		struct region_part *part = regions_add_part(&r, (uint32_t)i, 0, &err);

		assert_int_equal(regions_add_rank(&r, (uint32_t)i, &err), 0);
		assert_non_null(part);
		part->summarised = true;
		part->calls = part->timed = i;
		part->ns_per_unit = 1;
		part->buckets = i % 64 == 63 ? calloc(REGION_BUCKET_COUNT, sizeof *part->buckets) : NULL;
		if (part->buckets)
			part->buckets[i % REGION_BUCKET_COUNT] = i;
	}
	assert_int_equal(region_writer_new(scratch_path("a.h5"), 0, &w, &err), 0);
	assert_int_equal(region_writer_commit(w, &r, &err), 0);
	region_writer_free(w);
	f = open_file(scratch_path("a.h5"));
	assert_int_equal(region_file_regions(f)->part_count, limit);
	assert_null(region_file_regions(f)->parts[limit - 2].buckets);
	assert_int_equal(region_file_regions(f)->parts[limit - 1].buckets[(limit - 1) % REGION_BUCKET_COUNT],
			 limit - 1);
	region_file_free(f);
	assert_non_null(regions_add_part(&r, 0, 0, &err));
	r.parts[limit].summarised = true;
	assert_int_equal(region_writer_new(scratch_path("b.h5"), 0, &w, &err), 0);
	assert_int_equal(region_writer_commit(w, &r, &err), -1);
	region_writer_free(w);
	assert_non_null(strstr(err.text, "b.h5: 262145 regions of ranks whose calls were only added up are more than "
					 "the 262144 that a file can hold"));
	assert_false(fs_exists(scratch_path("b.h5")));
	regions_release(&r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_written_is_what_is_read),
		TEST(what_is_known_beside_the_calls_comes_back),
		TEST(the_statistics_of_a_region_are_those_of_its_calls),
		TEST(a_scan_gives_every_wanted_call_once),
		TEST(the_last_digits_do_not_depend_on_the_threads),
		TEST(layout_1_holds_the_calls_and_says_what_it_lost),
		TEST(a_name_that_layout_1_cannot_hold_is_told),
		TEST(a_writer_that_ends_without_a_commit_leaves_the_old_file),
		TEST(a_full_disk_is_one_sentence_and_leaves_the_old_file),
		TEST(parts_that_do_not_cover_what_was_added_are_an_error),
		TEST(a_file_without_any_call_is_a_file),
		TEST(what_is_no_regular_file_is_not_written_to),
		TEST(more_sums_than_can_be_read_are_not_written),
	};
	return cmocka_run_group_tests(tests, find_plugin, NULL);
}
