#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

#include "base/clock.h"
#include "sources.h"

#define MIB (INT64_C(1) << 20)
#define MS NS_PER_MS

/* Pids past the kernel's largest. */
enum { A = 4194306, B = 4194307 };

static void make_smaps(int pid, int rss_mib, int touched_mib)
{
	char path[64], text[128];

	snprintf(path, sizeof path, "proc/%d/clear_refs", pid);
	make_file(path, "");
	snprintf(path, sizeof path, "proc/%d/smaps_rollup", pid);
	snprintf(text, sizeof text, "Rss: %d kB\nReferenced: %d kB\n", 1024 * rss_mib, 1024 * touched_mib);
	make_file(path, text);
}

static struct process *add(struct stage *s, int pid, int64_t rss)
{
	struct process *p = process_add(&s->table, pid, 1, 77, 0);

	assert_non_null(p);
	p->rss = rss;
	p->clock_ns = 0;
	make_smaps(pid, (int)(rss / MIB), (int)(rss / MIB / 4));
	return p;
}

static void start(struct stage *s)
{
	make_file("proc/self/clear_refs", "");
	make_file("proc/self/smaps_rollup", "");
	make_file("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n");
	stage_init(s, A);
	s->context.probe = true;
	stage_open(s, &source_touched);
}

static size_t looks(void)
{
	const struct shown *s = series_of("memory.touched_share");

	return s ? s->points : 0;
}

/* A slow tick every 100 ms from `from` to `to` (both in ms); each process uses its share of a core in between. */
static void run(struct stage *s, int64_t from, int64_t to, double share_a, double share_b)
{
	for (int64_t ms = from; ms <= to; ms += 100) {
		struct process *a = process_find(&s->table, A), *b = process_find(&s->table, B);

		if (a)
			a->clock_ns += (int64_t)(share_a * 100.0 * (double)MS);
		if (b)
			b->clock_ns += (int64_t)(share_b * 100.0 * (double)MS);
		timeline_keep_all(&s->timeline);
		stage_slow(s, ms * MS);
	}
}

static void a_busy_process_is_looked_at_from_half_a_second_on(void **state)
{
	struct stage s;

	(void)state;
	start(&s);
	add(&s, A, 400 * MIB);
	run(&s, 1000, 1400, 1, 0);
	assert_int_equal(looks(), 0);
	run(&s, 1500, 2000, 1, 0);
	assert_true(looks() >= 1);
	assert_last("memory.touched_share", 0.25);
	assert_string_equal(series_of("memory.touched")->unit, "bytes/s");
	/* The time between two reads of small files is well below a second. */
	assert_true(last_of("memory.touched") > 100.0 * (double)MIB);
	stage_release(&s);
}

static void the_busier_of_two_is_looked_at(void **state)
{
	struct stage s;

	(void)state;
	start(&s);
	add(&s, A, 400 * MIB);
	add(&s, B, 400 * MIB);
	make_smaps(B, 400, 300);
	run(&s, 1000, 2000, 0.7, 0.9);
	assert_last("memory.touched_share", 0.75);
	stage_release(&s);
}

static void a_pause_follows_as_long_as_the_target_loses_a_hundredth(void **state)
{
	struct stage s;
	size_t first;

	(void)state;
	start(&s);
	add(&s, A, 1000 * MIB);
	/* 26 ms are a fiftieth of 1.3 s. */
	run(&s, 1000, 2200, 1, 0);
	assert_int_equal(looks(), 0);
	run(&s, 2300, 2700, 1, 0);
	first = looks();
	assert_true(first >= 1);
	/* 256,000 pages of 0.4 us each, a hundred times. */
	run(&s, 2800, 12300, 1, 0);
	assert_int_equal(looks(), first);
	make_smaps(A, 1000, 500);
	run(&s, 12800, 14500, 1, 0);
	assert_last("memory.touched_share", 0.5);
	stage_release(&s);
}

static void nothing_is_looked_at_where_the_answer_cannot_matter(void **state)
{
	struct stage s;

	(void)state;
	/* Asleep for the most part. */
	start(&s);
	add(&s, A, 400 * MIB);
	run(&s, 1000, 5000, 0.4, 0);
	/* Small. */
	process_find(&s.table, A)->rss = 255 * MIB;
	run(&s, 5100, 9000, 1, 0);
	assert_int_equal(looks(), 0);
	stage_release(&s);
	/* No looks are asked for. */
	start(&s);
	s.context.probe = false;
	add(&s, A, 400 * MIB);
	run(&s, 1000, 5000, 1, 0);
	assert_null(series_of("memory.touched"));
	stage_release(&s);
}

static void memory_that_grows_is_not_looked_at(void **state)
{
	struct stage s;

	(void)state;
	start(&s);
	add(&s, A, 400 * MIB);
	for (int64_t ms = 1000; ms < 3000; ms += 100) {
		process_find(&s.table, A)->rss += process_find(&s.table, A)->rss / 20;
		run(&s, ms, ms, 1, 0);
	}
	assert_int_equal(looks(), 0);
	run(&s, 3000, 6000, 1, 0);
	assert_true(looks() >= 1);
	stage_release(&s);
}

static void nothing_is_looked_at_while_memory_is_short(void **state)
{
	static const char *const texts[] = {"MemTotal: 1000 kB\nMemAvailable: 99 kB\n", "MemTotal: 1000 kB\n", ""};
	struct stage s;

	(void)state;
	start(&s);
	add(&s, A, 400 * MIB);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		make_file("proc/meminfo", texts[i]);
		run(&s, 1000 + 1000 * (int64_t)i, 1900 + 1000 * (int64_t)i, 1, 0);
	}
	assert_int_equal(looks(), 0);
	make_file("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 101 kB\n");
	run(&s, 4000, 5000, 1, 0);
	assert_true(looks() >= 1);
	stage_release(&s);
}

static void memory_in_huge_pages_is_not_looked_at_and_that_is_said(void **state)
{
	struct stage s;

	(void)state;
	start(&s);
	add(&s, A, 400 * MIB);
	make_file("proc/4194306/smaps_rollup", "Rss: 409600 kB\nReferenced: 1000 kB\nAnonHugePages: 204800 kB\n");
	run(&s, 1000, 4000, 1, 0);
	assert_int_equal(looks(), 0);
	assert_int_equal(s.warnings.count, 1);
	assert_non_null(strstr(s.warnings.texts[0], "huge pages"));
	stage_release(&s);
}

static void a_look_that_would_cost_much_is_not_taken_and_that_is_said_once(void **state)
{
	struct stage s;

	(void)state;
	start(&s);
	add(&s, A, 8000 * MIB);
	run(&s, 1000, 3000, 1, 0);
	assert_int_equal(looks(), 0);
	assert_int_equal(s.warnings.count, 1);
	assert_non_null(strstr(s.warnings.texts[0], "memory.touched was not read of a process with 7.81 GiB resident"));
	stage_release(&s);
}

static void a_process_that_has_just_ended_is_no_trouble(void **state)
{
	struct stage s;

	(void)state;
	start(&s);
	add(&s, A, 400 * MIB);
	assert_int_equal(unlink(scratch_path("proc/4194306/clear_refs")), 0);
	run(&s, 1000, 2000, 1, 0);
	assert_int_equal(looks(), 0);
	assert_int_equal(s.warnings.count, 0);
	add(&s, B, 400 * MIB);
	run(&s, 2100, 3000, 0, 1);
	assert_true(looks() >= 1);
	stage_release(&s);
}

static void what_cannot_be_looked_at_is_said_once_and_given_up(void **state)
{
	struct stage s;

	(void)state;
	start(&s);
	add(&s, A, 400 * MIB);
	make_file("proc/4194306/smaps_rollup", "Rss: 1 kB\n");
	run(&s, 1000, 2000, 1, 0);
	assert_int_equal(s.warnings.count, 1);
	assert_non_null(strstr(s.warnings.texts[0], "memory.touched is not known: "));
	make_smaps(A, 400, 100);
	run(&s, 2100, 4000, 1, 0);
	assert_int_equal(looks(), 0);
	assert_int_equal(s.warnings.count, 1);
	stage_release(&s);
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, fake_roots, real_roots)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE(a_busy_process_is_looked_at_from_half_a_second_on),
		FAKE(the_busier_of_two_is_looked_at),
		FAKE(a_pause_follows_as_long_as_the_target_loses_a_hundredth),
		FAKE(nothing_is_looked_at_where_the_answer_cannot_matter),
		FAKE(memory_that_grows_is_not_looked_at),
		FAKE(nothing_is_looked_at_while_memory_is_short),
		FAKE(memory_in_huge_pages_is_not_looked_at_and_that_is_said),
		FAKE(a_look_that_would_cost_much_is_not_taken_and_that_is_said_once),
		FAKE(a_process_that_has_just_ended_is_no_trouble),
		FAKE(what_cannot_be_looked_at_is_said_once_and_given_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
