#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "need.h"
#include "sources.h"

#define LOOK (100 * NS_PER_MS) /* from one look to the next */
#define SELF_STAT "4194305 (assay) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n"

/* Pids past the kernel's largest, so that no real process's clock is read; the threads' ids follow at a distance. */
enum { A = 4194306, B = 4194307, THREAD = A + 100 };
/* Clock ticks since boot: before any look of these tests, and after all. */
enum { OLD = 1, YOUNG = 1000000000000 };

static void make_stat(int pid, int64_t start_ticks, long user, int threads)
{
	char path[64], text[256];

	snprintf(path, sizeof path, "proc/%d/stat", pid);
	snprintf(text, sizeof text, "%d (x) R 1 0 0 0 -1 0 10 0 2 0 %ld 0 0 0 20 0 %d 0 %lld 0 0\n", pid, user, threads,
		 (long long)start_ticks);
	make_file(path, text);
}

static void make_thread(int pid, int tid, int64_t cpu_ms, int slices)
{
	char path[64], text[64];

	snprintf(path, sizeof path, "proc/%d/task/%d/schedstat", pid, tid);
	snprintf(text, sizeof text, "%lld 0 %d\n", (long long)cpu_ms * 1000000, slices);
	make_file(path, text);
	snprintf(path, sizeof path, "proc/%d/task/%d/comm", pid, tid);
	make_file(path, "worker\n");
}

static void remove_thread(int pid, int tid)
{
	static const char *const names[] = {"schedstat", "comm", ""};
	char path[512];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/proc/%d/task/%d/%s", scratch_dir, pid, tid, names[i]);
		assert_int_equal(remove(path), 0);
	}
}

/* A command that began long ago, of that many threads; its threads' files are the test's business. */
static void start(struct stage *s, int threads)
{
	make_file("proc/self/stat", SELF_STAT);
	make_file("proc/self/schedstat", "1 2 3\n");
	stage_init(s, A);
	stage_open(s, &source_cpu);
	s->context.exact = true;
	make_stat(A, OLD, 1, threads);
	assert_non_null(process_add(&s->table, A, 1, OLD, 0));
}

/* Threads of a process that has used no CPU time are not looked at, so each time it has used some. */
static void look(struct stage *s, int number, int threads)
{
	make_stat(A, OLD, number + 2, threads);
	stage_tick(s, number * LOOK + 1);
	stage_slow(s, number * LOOK + 1);
}

static void the_busiest_is_whichever_used_most_since_the_look_before(void **state)
{
	static const int64_t used_ms[][3] = {{10, 5, 0}, {100, 35, 0}, {110, 115, 5}, {110, 115, 65}};
	static const double sum[] = {0.010, 0.100, 0.180, 0.240};
	struct stage s;

	(void)state;
	start(&s, 3);
	for (int i = 0; i < 4; i++) {
		for (int k = 0; k < 3; k++)
			make_thread(A, THREAD + k, used_ms[i][k], i + 1);
		look(&s, i, 3);
		assert_last("cpu.busiest_thread", sum[i]);
	}
	assert_string_equal(series_of("cpu.busiest_thread")->scope, "tree");
	assert_string_equal(series_of("cpu.busiest_thread")->unit, "s");
	stage_release(&s);
}

static void two_that_are_always_busy_are_one_cpu(void **state)
{
	struct stage s;

	(void)state;
	start(&s, 2);
	for (int i = 0; i <= 10; i++) {
		make_thread(A, THREAD, 100 * i, i);
		make_thread(A, THREAD + 1, 100 * i, i);
		look(&s, i, 2);
	}
	assert_last("cpu.busiest_thread", 1.0);
	stage_release(&s);
}

static void maxima_of_figures_that_come_early_and_late_do_not_add_up_to_more_than_the_time(void **state)
{
	struct stage s;

	(void)state;
	start(&s, 2);
	for (int i = 0; i <= 100; i++) {
		make_thread(A, THREAD, 100 * i + 10 * (i % 2), i);
		make_thread(A, THREAD + 1, 100 * i + 10 * ((i + 1) % 2), i);
		look(&s, i, 2);
	}
	assert_true(last_of("cpu.busiest_thread") >= 10);
	assert_true(last_of("cpu.busiest_thread") <= 10 + 0.1 + 0.010001);
	stage_release(&s);
}

static double after_a_second_that_comes_at_once(int late_looks)
{
	struct stage s;
	double sum;

	start(&s, 2);
	for (int i = 0; i <= late_looks; i++) {
		make_thread(A, THREAD, i < late_looks ? 0 : 100 * late_looks, 1);
		make_thread(A, THREAD + 1, 0, 1);
		look(&s, i, 2);
	}
	sum = last_of("cpu.busiest_thread");
	stage_release(&s);
	return sum;
}

static void figures_that_come_a_little_late_are_not_lost(void **state)
{
	(void)state;
	assert_true(fabs(after_a_second_that_comes_at_once(2) - 0.2) < 1e-9);
	/* Nobody knows when this was used; not faster than time passes. */
	assert_true(fabs(after_a_second_that_comes_at_once(10) - 0.2) < 1e-9);
	make_file("sys/devices/system/cpu/nohz_full", "(null)\n");
	assert_true(fabs(after_a_second_that_comes_at_once(10) - 0.2) < 1e-9);
	/* With CPUs whose tick is stopped a second is usual. */
	make_file("sys/devices/system/cpu/nohz_full", "1-3\n");
	assert_true(fabs(after_a_second_that_comes_at_once(10) - 1.0) < 1e-9);
}

static void a_thread_id_that_is_used_again_is_another_thread(void **state)
{
	char name[64];
	struct stage s;

	(void)state;
	start(&s, 2);
	snprintf(name, sizeof name, "thread.%d.cpu", THREAD);
	make_thread(A, THREAD, 60, 9);
	make_thread(A, THREAD + 1, 0, 9);
	look(&s, 0, 2);
	assert_last(name, 0.060);
	/* Less CPU time behind it, and more of it than what the first one had used meanwhile would be. */
	make_thread(A, THREAD, 55, 10);
	look(&s, 1, 2);
	assert_last("cpu.busiest_thread", 0.115);
	/* Fewer times on a CPU. */
	make_thread(A, THREAD, 75, 2);
	look(&s, 2, 2);
	assert_last("cpu.busiest_thread", 0.190);
	make_thread(A, THREAD, 80, 3);
	look(&s, 30, 2);
	assert_last("cpu.busiest_thread", 0.195);
	/* The series was the first one's, and has no point of the others. */
	assert_last(name, 0.060);
	assert_int_equal(series_of(name)->points, 1);
	stage_release(&s);
}

static void a_look_at_many_threads_takes_several_calls(void **state)
{
	enum { THREADS = 600 };
	struct stage s;
	size_t points;

	(void)state;
	start(&s, THREADS);
	for (int i = 0; i < THREADS; i++)
		make_thread(A, THREAD + i, 1, 1);
	look(&s, 0, THREADS);
	assert_true(isnan(last_of("cpu.busiest_thread")));
	look(&s, 1, THREADS);
	assert_true(isnan(last_of("cpu.busiest_thread")));
	look(&s, 2, THREADS);
	assert_last("cpu.busiest_thread", 0.001);
	points = series_of("cpu.busiest_thread")->points;
	/* Each of them has grown, and one has most: it counts once a look, wherever in the list it is. */
	for (int i = 0; i < THREADS; i++)
		make_thread(A, THREAD + i, i == 300 ? 250 : 101, 2);
	for (int call = 3; call < 6; call++) {
		assert_int_equal(series_of("cpu.busiest_thread")->points, points);
		look(&s, call, THREADS);
	}
	assert_last("cpu.busiest_thread", 0.250);
	/* What it used during that look is seen by another one. Then it is passed over, and a look takes one call. */
	for (int call = 6; call < 9; call++)
		stage_slow(&s, call * LOOK);
	for (int call = 9; call < 12; call++) {
		points = series_of("cpu.busiest_thread")->points;
		stage_slow(&s, call * 20 * LOOK);
		assert_int_equal(series_of("cpu.busiest_thread")->points, points + 1);
	}
	assert_last("cpu.busiest_thread", 0.250);
	stage_release(&s);
}

static void a_process_that_ends_during_a_look_does_not_hide_the_next_ones_threads(void **state)
{
	struct stage s;
	char name[64];

	(void)state;
	start(&s, 300);
	for (int i = 0; i < 300; i++)
		make_thread(A, THREAD + i, 1, 1);
	make_stat(B, OLD, 1, 2);
	make_thread(B, THREAD + 1000, 70, 1);
	make_thread(B, THREAD + 1001, 80, 1);
	assert_non_null(process_add(&s.table, B, 1, OLD, 0));
	look(&s, 0, 300);
	process_died(&s.table, process_find(&s.table, A), LOOK);
	process_table_reap(&s.table, NULL, NULL);
	stage_slow(&s, LOOK);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "thread.%d.cpu", THREAD + 1000 + i);
		assert_last(name, 0.070 + 0.010 * i);
	}
	stage_release(&s);
}

static void what_was_used_before_the_look_before_is_not_counted(void **state)
{
	struct stage s;

	(void)state;
	start(&s, 2);
	make_thread(A, THREAD, 10, 1);
	make_thread(A, THREAD + 1, 0, 1);
	look(&s, 0, 2);
	look(&s, 1, 2);
	/* A process that was found late, */
	make_stat(B, OLD, 1, 2);
	make_thread(B, THREAD + 1000, 90, 1);
	make_thread(B, THREAD + 1001, 90, 1);
	assert_non_null(process_add(&s.table, B, A, OLD, 2 * LOOK));
	look(&s, 2, 2);
	assert_last("cpu.busiest_thread", 0.010);
	/* of which more is known then; a thread of it that is new; */
	make_stat(B, OLD, 2, 3);
	make_thread(B, THREAD + 1000, 95, 2);
	make_thread(B, THREAD + 1002, 50, 2);
	look(&s, 3, 2);
	assert_last("cpu.busiest_thread", 0.060);
	/* and a process that is new. */
	make_stat(B + 1, YOUNG, 1, 2);
	make_thread(B + 1, THREAD + 2000, 80, 1);
	assert_non_null(process_add(&s.table, B + 1, A, YOUNG, 4 * LOOK));
	look(&s, 4, 2);
	assert_last("cpu.busiest_thread", 0.140);
	stage_release(&s);
}

static void only_threads_that_have_used_some_time_have_series_and_not_too_many(void **state)
{
	struct stage s;
	char name[64], scope[64];
	size_t owned = 0;

	(void)state;
	start(&s, 70);
	for (int i = 0; i < 70; i++)
		make_thread(A, THREAD + i, 49, 1);
	look(&s, 0, 70);
	for (size_t i = 0; i < shown_count; i++)
		owned += strncmp(shown[i].name, "thread.", 7) == 0;
	assert_int_equal(owned, 0);
	for (int i = 0; i < 70; i++)
		make_thread(A, THREAD + i, 51, 2);
	snprintf(name, sizeof name, "proc/%d/task/%d/comm", A, THREAD);
	make_file(name, "a b\x01\xff\n");
	look(&s, 1, 70);
	for (size_t i = 0; i < shown_count; i++)
		if (strncmp(shown[i].name, "thread.", 7) == 0) {
			owned++;
			assert_true(fabs(shown[i].value - 0.051) < 1e-9);
			assert_string_equal(shown[i].unit, "s");
			assert_int_equal(shown[i].kind, SERIES_COUNTER);
		}
	assert_int_equal(owned, 64);
	stage_release(&s);
	/* The name is made fit to be shown. */
	start(&s, 2);
	look(&s, 0, 2);
	snprintf(name, sizeof name, "thread.%d.cpu", THREAD);
	snprintf(scope, sizeof scope, "thread %d of %d a b?\xef\xbf\xbd", THREAD, A);
	assert_non_null(series_of(name));
	assert_string_equal(series_of(name)->scope, scope);
	stage_release(&s);
}

static void a_series_holds_while_its_process_sleeps_and_ends_with_its_thread(void **state)
{
	struct stage s;
	char name[64];
	size_t points;

	(void)state;
	start(&s, 2);
	snprintf(name, sizeof name, "thread.%d.cpu", THREAD);
	make_thread(A, THREAD, 60, 1);
	make_thread(A, THREAD + 1, 1, 1);
	look(&s, 0, 2);
	points = series_of(name)->points;
	/* Without a point a line would be drawn to the next one, through the time in which nothing was used. */
	stage_slow(&s, 20 * LOOK);
	assert_int_equal(series_of(name)->points, points + 1);
	remove_thread(A, THREAD);
	/* One look that does not find it might have missed it. */
	for (int i = 21; i < 24; i++)
		look(&s, 20 * i, 2);
	points = series_of(name)->points;
	look(&s, 1000, 2);
	assert_int_equal(series_of(name)->points, points);
	stage_release(&s);
}

static void damaged_files_change_nothing(void **state)
{
	static const char *const texts[] = {"", "x", "5", "5 5", "5 5 x", "-5 5 5", "99999999999999999999 1 1",
					    "9223372036854775807 1 9", "\xff\xfe"};
	struct stage s;
	char path[64];

	(void)state;
	start(&s, 2);
	make_thread(A, THREAD, 20, 1);
	look(&s, 0, 2);
	snprintf(path, sizeof path, "proc/%d/task/%d/schedstat", A, THREAD);
	for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
		make_file(path, texts[i]);
		look(&s, i + 1, 2);
		assert_last("cpu.busiest_thread", 0.020);
		assert_last("cpu.switches", 1);
	}
	stage_release(&s);
}

static void a_kernel_without_such_files_has_no_such_series(void **state)
{
	struct stage s;

	(void)state;
	make_file("proc/self/stat", SELF_STAT);
	stage_init(&s, A);
	stage_open(&s, &source_cpu);
	make_stat(A, OLD, 1, 1);
	assert_non_null(process_add(&s.table, A, 1, OLD, 0));
	look(&s, 0, 1);
	assert_null(series_of("cpu.busiest_thread"));
	assert_null(series_of("cpu.runqueue_wait"));
	stage_release(&s);
}

/* A thread of this process that uses as much CPU time as it is told to. */
struct worker {
	pthread_t thread;
	pid_t tid;
	const char *name;
	sem_t begin, done;
	bool stop;
	int64_t turn_ns, used_ns; /* what the next turn is to take; used by all turns so far, which end when asked to */
	int64_t grown_ns;	  /* in the last turn */
};

static int64_t thread_clock_ns(void)
{
	struct timespec used;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
	return (int64_t)used.tv_sec * NS_PER_S + used.tv_nsec;
}

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) < 0)
		assert_int_equal(errno, EINTR);
}

static void *work(void *context)
{
	struct worker *w = context;

	w->tid = gettid();
	(void)pthread_setname_np(pthread_self(), w->name);
	sem_post(&w->done);
	for (;;) {
		wait_for(&w->begin);
		if (w->stop)
			return NULL;
		for (int64_t until = w->used_ns + w->turn_ns; thread_clock_ns() < until;)
			;
		w->grown_ns = thread_clock_ns() - w->used_ns;
		w->used_ns += w->grown_ns;
		sem_post(&w->done);
	}
}

static void begin_worker(struct worker *w, const char *name)
{
	*w = (struct worker){.name = name};
	assert_int_equal(sem_init(&w->begin, 0, 0), 0);
	assert_int_equal(sem_init(&w->done, 0, 0), 0);
	assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
	wait_for(&w->done);
}

static void end_worker(struct worker *w)
{
	w->stop = true;
	sem_post(&w->begin);
	assert_int_equal(pthread_join(w->thread, NULL), 0);
	sem_destroy(&w->begin);
	sem_destroy(&w->done);
}

static void look_at_this_process(struct stage *s, int64_t *ret_now)
{
	*ret_now = clock_mono_ns();
	stage_tick(s, *ret_now);
	stage_slow(s, *ret_now);
}

static void add_this_process(struct stage *s)
{
	char text[512];
	struct proc_stat stat;
	ssize_t length = procfs_read_file(text, sizeof text, "self/stat");

	assert_true(length > 0 && proc_stat_scan(text, (size_t)length, &stat));
	assert_non_null(process_add(&s->table, getpid(), getppid(), (int64_t)stat.start_ticks, clock_mono_ns()));
}

enum { TURNS = 10, TURN_MS = 20, WORKERS = 2 };

/* In each turn those workers of `turns[turn]` (bits) use TURN_MS of CPU time. Between turns all sleep, so that the
 * kernel's figures are exact, however busy the machine is. */
static void take_turns(struct worker workers[WORKERS], const unsigned turns[TURNS], double *ret_expected,
		       double *ret_grown, double *ret_wall)
{
	struct stage s;
	int64_t first, last;
	double before;

	*ret_expected = 0;
	stage_init(&s, getpid());
	stage_open(&s, &source_cpu);
	s.context.exact = true;
	add_this_process(&s);
	look_at_this_process(&s, &first);
	before = last_of("cpu.busiest_thread");
	for (int turn = 0; turn < TURNS; turn++) {
		int64_t most = 0;

		for (int i = 0; i < WORKERS; i++) {
			workers[i].turn_ns = TURN_MS * NS_PER_MS;
			if (turns[turn] >> i & 1)
				sem_post(&workers[i].begin);
		}
		for (int i = 0; i < WORKERS; i++)
			if (turns[turn] >> i & 1) {
				wait_for(&workers[i].done);
				most = workers[i].grown_ns > most ? workers[i].grown_ns : most;
			}
		look_at_this_process(&s, &last);
		*ret_expected += (double)most / NS_PER_S;
	}
	*ret_grown = last_of("cpu.busiest_thread") - before;
	*ret_wall = (double)(last - first) / NS_PER_S;
	stage_release(&s);
}

static bool schedstat_is_here(void)
{
	char text[128];

	return procfs_read_file(text, sizeof text, "self/schedstat") > 0;
}

static void real_threads_count_as_much_as_the_one_that_runs(void **state)
{
	static const unsigned one[TURNS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, both[TURNS] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3},
			      by_turns[TURNS] = {1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
	const unsigned *const plans[] = {one, both, by_turns};
	struct worker workers[WORKERS];
	char name[64], scope[64];

	(void)state;
	need("schedstat", schedstat_is_here(), "this kernel keeps no times of waiting (CONFIG_SCHED_INFO)");
	begin_worker(&workers[0], "spinner one");
	begin_worker(&workers[1], "spinner two");
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		double expected, grown, wall;

		take_turns(workers, plans[i], &expected, &grown, &wall);
		/* Going to sleep and this thread's own turns may add a little, and so may the moment between "done" and
		 * sleep if the look falls into it. */
		if (!(grown >= 0.8 * expected && grown <= 1.2 * expected && grown <= wall + 0.1))
			fail_msg("plan %zu: %g s instead of %g s in %g s", i, grown, expected, wall);
	}
	for (int i = 0; i < WORKERS; i++) {
		snprintf(name, sizeof name, "thread.%d.cpu", workers[i].tid);
		snprintf(scope, sizeof scope, "thread %d of %d spinner %s", workers[i].tid, getpid(),
			 i ? "two" : "one");
		assert_non_null(series_of(name));
		assert_string_equal(series_of(name)->scope, scope);
		assert_true(fabs(last_of(name) - (double)workers[i].used_ns / NS_PER_S) < 0.2 * last_of(name));
		end_worker(&workers[i]);
	}
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, fake_roots, real_roots)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE(the_busiest_is_whichever_used_most_since_the_look_before),
		FAKE(two_that_are_always_busy_are_one_cpu),
		FAKE(maxima_of_figures_that_come_early_and_late_do_not_add_up_to_more_than_the_time),
		FAKE(figures_that_come_a_little_late_are_not_lost),
		FAKE(a_thread_id_that_is_used_again_is_another_thread),
		FAKE(a_look_at_many_threads_takes_several_calls),
		FAKE(a_process_that_ends_during_a_look_does_not_hide_the_next_ones_threads),
		FAKE(what_was_used_before_the_look_before_is_not_counted),
		FAKE(only_threads_that_have_used_some_time_have_series_and_not_too_many),
		FAKE(a_series_holds_while_its_process_sleeps_and_ends_with_its_thread),
		FAKE(damaged_files_change_nothing),
		FAKE(a_kernel_without_such_files_has_no_such_series),
		cmocka_unit_test(real_threads_count_as_much_as_the_one_that_runs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
