#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "sources.h"

#define SECOND INT64_C(1000000000)
#define SELF_STAT "4194305 (assay) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n"

/* Pids past the kernel's largest, so that no real process's clock is read. */
enum { A = 4194306, B = 4194307 };

static void make_stat(int pid, int parent, char mode, long user, long system, long children, int threads)
{
	char path[64], text[256];

	snprintf(path, sizeof path, "proc/%d/stat", pid);
	snprintf(text, sizeof text, "%d (x y) %c %d 0 0 0 -1 0 10 %ld 2 0 %ld %ld %ld 0 20 0 %d 0 77 0 0\n", pid, mode,
		 parent, children, user, system, children, threads);
	make_file(path, text);
}

static void make_statm(int pid, const char *text)
{
	char path[64];

	snprintf(path, sizeof path, "proc/%d/statm", pid);
	make_file(path, text);
}

static struct process *add(struct stage *s, int pid, int parent)
{
	struct process *p = process_add(&s->table, pid, parent, 77, 0);

	assert_non_null(p);
	return p;
}

static void start_cpu(struct stage *s)
{
	make_file("proc/self/stat", SELF_STAT);
	stage_init(s, A);
	stage_open(s, &source_cpu);
}

static void cpu_time_of_the_living_and_the_dead_adds_up(void **state)
{
	struct stage s;
	double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);

	(void)state;
	start_cpu(&s);
	make_stat(A, 1, 'R', 100, 10, 0, 3);
	make_stat(B, A, 'S', 20, 5, 0, 1);
	add(&s, A, 1);
	add(&s, B, A);
	stage_tick(&s, 1);
	assert_last("cpu.user", 120 * tick);
	assert_last("cpu.system", 15 * tick);
	assert_last("cpu.total", 135 * tick);
	assert_last("cpu.threads", 4);
	assert_last("cpu.processes", 2);
	assert_last("memory.faults.minor", 20);
	assert_last("memory.faults.major", 4);
	assert_string_equal(process_find(&s.table, A)->comm, "x y");
	assert_true(process_find(&s.table, A)->command_stale);
	/* A zombie tells its last times, and is gone. */
	make_stat(B, A, 'Z', 30, 5, 0, 1);
	stage_tick(&s, SECOND);
	assert_last("cpu.user", 130 * tick);
	assert_last("cpu.processes", 1);
	assert_null(process_find(&s.table, B));
	/* Its parent waits for it, and for one that nobody saw, which used 4. */
	make_stat(A, 1, 'R', 101, 10, 34, 3);
	stage_tick(&s, 2 * SECOND);
	stage_tick(&s, 3 * SECOND);
	assert_last("cpu.user", 101 * tick + 34 * tick);
	stage_release(&s);
}

static void a_process_of_another_start_time_is_not_the_one_that_was_known(void **state)
{
	struct stage s;

	(void)state;
	start_cpu(&s);
	make_stat(A, 1, 'R', 5, 0, 0, 1);
	assert_non_null(process_add(&s.table, A, 1, 78, 0));
	stage_tick(&s, 1);
	assert_int_equal(s.table.alive, 0);
	assert_last("cpu.user", 0);
	stage_release(&s);
}

static void damaged_stat_files_change_nothing(void **state)
{
	static const char *const texts[] = {"", "1", "4194306 (x", "4194306 (x y) R 1 0 0 0 -1 0 10 0 2 0 99",
					    "\xff\xfe\x80"};
	struct stage s;

	(void)state;
	start_cpu(&s);
	make_stat(A, 1, 'R', 50, 0, 0, 1);
	add(&s, A, 1);
	stage_tick(&s, 1);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		char path[64];

		/* The empty one reads like that of a process that is gone, so it comes first and last. */
		snprintf(path, sizeof path, "proc/%d/stat", A);
		make_file(path, texts[sizeof texts / sizeof *texts - 1 - i]);
		stage_tick(&s, (int64_t)(i + 1) * SECOND);
		assert_last("cpu.user", 50.0 / (double)sysconf(_SC_CLK_TCK));
	}
	assert_int_equal(s.table.alive, 0);
	stage_release(&s);
}

/* Threads of a process that has used no CPU time are not looked at. */
static void use_cpu_and_read(struct stage *s, int round)
{
	make_stat(A, 1, 'R', round, 0, 0, 3);
	stage_tick(s, round * 100 * SECOND);
	stage_slow(s, round * 100 * SECOND);
}

static void run_queue_wait_is_summed_over_threads(void **state)
{
	struct stage s;
	char path[64];

	(void)state;
	make_file("proc/self/schedstat", "1 2 3\n");
	start_cpu(&s);
	make_stat(A, 1, 'R', 1, 0, 0, 3);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "proc/%d/task/%d/schedstat", A, A + 100 + i);
		make_file(path, "900 2000000000 7\n");
	}
	add(&s, A, 1);
	stage_tick(&s, 1);
	stage_slow(&s, SECOND);
	assert_last("cpu.runqueue_wait", 6);
	assert_last("cpu.switches", 21);
	/* One goes on, and its id is then used by another thread with less behind it. */
	snprintf(path, sizeof path, "proc/%d/task/%d/schedstat", A, A + 100);
	make_file(path, "900 2500000000 8\n");
	use_cpu_and_read(&s, 2);
	assert_last("cpu.runqueue_wait", 6.5);
	assert_last("cpu.switches", 22);
	make_file(path, "1 1000000000 1\n");
	use_cpu_and_read(&s, 3);
	assert_last("cpu.runqueue_wait", 7.5);
	assert_last("cpu.switches", 23);
	make_file(path, "binary\xff");
	use_cpu_and_read(&s, 4);
	assert_last("cpu.switches", 23);
	stage_release(&s);
}

static void a_thousand_threads_are_read_in_turns_and_all_in_the_end(void **state)
{
	struct stage s;

	(void)state;
	make_file("proc/self/schedstat", "1 2 3\n");
	start_cpu(&s);
	make_stat(A, 1, 'R', 1, 0, 0, 1000);
	for (int i = 0; i < 1000; i++) {
		char path[64];

		snprintf(path, sizeof path, "proc/%d/task/%d/schedstat", A, A + 100 + i);
		make_file(path, "900 1000000 1\n");
	}
	add(&s, A, 1);
	stage_tick(&s, 1);
	stage_slow(&s, 1000 * SECOND);
	assert_true(last_of("cpu.switches") < 1000);
	for (int call = 2; call < 12; call++)
		stage_slow(&s, call * 1000 * SECOND);
	assert_last("cpu.switches", 1000);
	assert_last("cpu.runqueue_wait", 1);
	stage_release(&s);
}

static void start_memory(struct stage *s)
{
	make_file("proc/self/stat", SELF_STAT);
	make_file("proc/self/statm", "1 1 1 1 0 1 0\n");
	stage_init(s, A);
	stage_open(s, &source_memory);
}

static void memory_is_summed_over_the_tree_in_pages_of_this_machine(void **state)
{
	struct stage s;
	double page = (double)sysconf(_SC_PAGESIZE);

	(void)state;
	start_memory(&s);
	make_statm(A, "9000 1000 300 1 0 500 0\n");
	make_statm(B, "9000 50 60 1 0 500 0\n");
	add(&s, A, 1);
	add(&s, B, A);
	stage_tick(&s, 1);
	assert_last("memory.rss", 1050 * page);
	/* More shared than resident pages is a passing state of the kernel's counters: nothing anonymous then. */
	assert_last("memory.anon", 700 * page);
	assert_last("memory.file", 350 * page);
	assert_int_equal(process_find(&s.table, A)->rss_peak, 1000 * sysconf(_SC_PAGESIZE));
	make_statm(A, "9000 400 300 1 0 500 0\n");
	stage_tick(&s, SECOND);
	assert_last("memory.rss", 450 * page);
	assert_int_equal(process_find(&s.table, A)->rss_peak, 1000 * sysconf(_SC_PAGESIZE));
	assert_int_equal(process_find(&s.table, A)->anon_peak, 700 * sysconf(_SC_PAGESIZE));
	stage_release(&s);
}

static void a_zombies_zeros_are_no_reading(void **state)
{
	struct stage s;

	(void)state;
	make_file("proc/self/statm", "1 1 1 1 0 1 0\n");
	start_cpu(&s);
	stage_open(&s, &source_memory);
	make_statm(A, "9000 1000 300 1 0 500 0\n");
	make_stat(A, 1, 'R', 0, 0, 0, 1);
	make_statm(B, "9000 1000 300 1 0 500 0\n");
	make_stat(B, A, 'R', 0, 0, 0, 1);
	add(&s, A, 1);
	add(&s, B, A);
	stage_tick(&s, 1);
	/* Within the time in which its stat would not be read otherwise. */
	make_statm(B, "0 0 0 0 0 0 0\n");
	make_stat(B, A, 'Z', 0, 0, 0, 1);
	stage_tick(&s, 2);
	assert_last("memory.rss", 1000 * (double)sysconf(_SC_PAGESIZE));
	stage_tick(&s, 3);
	assert_last("memory.rss", 1000 * (double)sysconf(_SC_PAGESIZE));
	assert_int_equal(s.table.alive, 1);
	/* One that is still ending is left out, but lives. */
	make_statm(A, "0 0 0 0 0 0 0\n");
	make_stat(A, 1, 'R', 0, 0, 0, 1);
	stage_tick(&s, SECOND);
	assert_int_equal(s.table.alive, 1);
	assert_last("memory.rss", 1000 * (double)sysconf(_SC_PAGESIZE));
	stage_release(&s);
}

static void memory_is_seen_through_a_thread_when_the_first_one_has_ended(void **state)
{
	struct stage s;
	char path[64];

	(void)state;
	start_memory(&s);
	make_statm(A, "0 0 0 0 0 0 0\n");
	make_stat(A, 1, 'Z', 0, 0, 0, 2);
	snprintf(path, sizeof path, "proc/%d/task/%d/statm", A, A);
	make_file(path, "0 0 0 0 0 0 0\n");
	snprintf(path, sizeof path, "proc/%d/task/%d/statm", A, A + 1);
	make_file(path, "900 70 0 0 0 0 0\n");
	add(&s, A, 1)->threads = 2;
	stage_tick(&s, 1);
	stage_tick(&s, SECOND);
	assert_last("memory.rss", 70 * (double)sysconf(_SC_PAGESIZE));
	assert_int_equal(s.table.alive, 1);
	stage_release(&s);
}

static void damaged_statm_files_change_nothing(void **state)
{
	static const char *const texts[] = {
		"x",       "9", "9 1000", "9 1000 3", "9 99999999999999999999 1 1\n", "9 18446744073709551615 1 1\n",
		"\xff\xff"};
	struct stage s;

	(void)state;
	start_memory(&s);
	make_statm(A, "9000 1000 300 1 0 500 0\n");
	make_stat(A, 1, 'R', 0, 0, 0, 1);
	add(&s, A, 1);
	stage_tick(&s, 1);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		make_statm(A, texts[i]);
		stage_tick(&s, (int64_t)(i + 1) * SECOND);
		assert_last("memory.rss", 1000 * (double)sysconf(_SC_PAGESIZE));
	}
	stage_release(&s);
}

static void proportional_memory_is_read_at_new_maxima_only(void **state)
{
	struct stage s;
	char path[64];

	(void)state;
	start_memory(&s);
	make_statm(A, "9000 1000 300 1 0 500 0\n");
	snprintf(path, sizeof path, "proc/%d/smaps_rollup", A);
	make_file(path, "0-1 ---p 0 00:00 0 [rollup]\nRss: 4000 kB\nPss: 3000 kB\nPss_Anon: 1 kB\n");
	add(&s, A, 1);
	stage_tick(&s, 1);
	stage_slow(&s, 1);
	assert_last("memory.pss", 3000 * 1024);
	make_file(path, "0-1 ---p 0 00:00 0 [rollup]\nPss: 9000 kB\n");
	make_statm(A, "9000 1100 300 1 0 500 0\n");
	stage_tick(&s, 10 * SECOND);
	stage_slow(&s, 10 * SECOND);
	assert_last("memory.pss", 3000 * 1024);
	make_statm(A, "9000 1300 300 1 0 500 0\n");
	stage_tick(&s, 20 * SECOND);
	stage_slow(&s, 20 * SECOND);
	assert_last("memory.pss", 9000 * 1024);
	stage_release(&s);
}

static void proportional_memory_that_would_take_long_is_not_read(void **state)
{
	struct stage s;
	char path[64];

	(void)state;
	start_memory(&s);
	make_statm(A, "90000000 80000000 300 1 0 500 0\n");
	snprintf(path, sizeof path, "proc/%d/smaps_rollup", A);
	make_file(path, "Pss: 3000 kB\n");
	add(&s, A, 1);
	stage_tick(&s, 1);
	for (int i = 1; i < 5; i++)
		stage_slow(&s, i * SECOND);
	assert_true(isnan(last_of("memory.pss")));
	assert_int_equal(s.warnings.count, 1);
	assert_non_null(strstr(s.warnings.texts[0], "memory.pss was not read"));
	stage_release(&s);
}

static void swap_is_read_where_there_is_some(void **state)
{
	struct stage s;
	char path[64];

	(void)state;
	make_file("proc/meminfo", "MemTotal: 1000 kB\nSwapTotal: 500 kB\n");
	start_memory(&s);
	make_statm(A, "9000 1000 300 1 0 500 0\n");
	snprintf(path, sizeof path, "proc/%d/status", A);
	make_file(path, "Name:\tx\nVmSwap:\t  12 kB\n");
	add(&s, A, 1);
	stage_tick(&s, 1);
	stage_slow(&s, 1);
	assert_last("memory.swap", 12 * 1024);
	stage_release(&s);
	/* A machine without swap has no such series. */
	make_file("proc/meminfo", "MemTotal: 1000 kB\nSwapTotal: 0 kB\n");
	start_memory(&s);
	assert_null(series_of("memory.swap"));
	stage_release(&s);
}

static void processes_of_their_own_series_have_lived_for_a_second(void **state)
{
	struct stage s;
	char name[64];

	(void)state;
	make_file("proc/self/statm", "1 1 1 1 0 1 0\n");
	start_cpu(&s);
	stage_open(&s, &source_memory);
	for (int i = 0; i < 70; i++) {
		make_stat(A + i, 1, 'R', i, 0, 0, 1);
		make_statm(A + i, "9 3 1 1 0 5 0\n");
		add(&s, A + i, 1);
	}
	stage_tick(&s, SECOND - 1);
	snprintf(name, sizeof name, "process.%d.cpu", A + 63);
	assert_null(series_of(name));
	stage_tick(&s, SECOND);
	assert_last(name, 63.0 / (double)sysconf(_SC_CLK_TCK));
	snprintf(name, sizeof name, "process.%d.rss", A + 63);
	assert_last(name, 3 * (double)sysconf(_SC_PAGESIZE));
	snprintf(name, sizeof name, "process %d", A + 63);
	assert_string_equal(shown[shown_count - 1].scope, name);
	snprintf(name, sizeof name, "process.%d.cpu", A + 64);
	assert_null(series_of(name));
	stage_release(&s);
}

static void input_and_output_are_summed(void **state)
{
	static const char text[] = "rchar: 100\nwchar: 200\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\n"
				   "cancelled_write_bytes: 5\n";
	struct stage s;
	char path[64];

	(void)state;
	make_file("proc/self/io", text);
	start_cpu(&s);
	stage_open(&s, &source_io);
	for (int pid = A; pid <= B; pid++) {
		make_stat(pid, 1, 'R', 1, 0, 0, 1);
		snprintf(path, sizeof path, "proc/%d/io", pid);
		make_file(path, text);
		add(&s, pid, 1);
	}
	for (int i = 0; i < 3; i++) {
		stage_tick(&s, i * SECOND + 1);
		stage_slow(&s, i * SECOND + 1);
	}
	assert_last("io.read_bytes", 2 * 4096);
	assert_last("io.write_bytes", 2 * 8192);
	assert_last("io.read_chars", 200);
	assert_last("io.write_chars", 400);
	assert_last("io.read_calls", 6);
	assert_last("io.write_calls", 8);
	stage_release(&s);
}

static void a_source_says_why_it_is_not_here(void **state)
{
	struct stage s;
	struct error why;
	void *unused;

	(void)state;
	stage_init(&s, A);
	for (size_t i = 0; i < source_count; i++) {
		why.text[0] = '\0';
		assert_true(sources[i]->open(&s.context, &unused, &why) < 0);
		if (strlen(why.text) < 20)
			fail_msg("%s only says \"%s\"", sources[i]->name, why.text);
	}
	assert_int_equal(shown_count, 0);
	stage_release(&s);
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, fake_roots, real_roots)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE(cpu_time_of_the_living_and_the_dead_adds_up),
		FAKE(a_process_of_another_start_time_is_not_the_one_that_was_known),
		FAKE(damaged_stat_files_change_nothing),
		FAKE(run_queue_wait_is_summed_over_threads),
		FAKE(a_thousand_threads_are_read_in_turns_and_all_in_the_end),
		FAKE(memory_is_summed_over_the_tree_in_pages_of_this_machine),
		FAKE(a_zombies_zeros_are_no_reading),
		FAKE(memory_is_seen_through_a_thread_when_the_first_one_has_ended),
		FAKE(damaged_statm_files_change_nothing),
		FAKE(proportional_memory_is_read_at_new_maxima_only),
		FAKE(proportional_memory_that_would_take_long_is_not_read),
		FAKE(swap_is_read_where_there_is_some),
		FAKE(processes_of_their_own_series_have_lived_for_a_second),
		FAKE(input_and_output_are_summed),
		FAKE(a_source_says_why_it_is_not_here),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
