#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "base/clock.h"
#include "fake_proc.h"
#include "need.h"
#include "record/spy.h"
#include "spied.h"

#define MIB SPIED_MIB

static struct spy *spy;
static struct spied child;

static void watch(bool tree, bool pss)
{
	struct spy_options o = {.tree = tree, .pss = pss, .delay_ns = 10 * NS_PER_MS};
	struct error err;

	child = spied_start();
	o.pid = child.pid;
	if (spy_new(&o, &spy, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(spy_tick(spy, clock_mono_ns()));
}

static struct spy_result finish(void)
{
	struct spy_result r;

	spy_figures(spy, true, &r);
	spy_free(spy);
	return r;
}

static void expect_about(int64_t value, int64_t expected)
{
	if (llabs(value - expected) > expected / 50 + 2 * MIB)
		fail_msg("%lld is not within 2%% of %lld", (long long)value, (long long)expected);
}

static void readings_give_begin_end_peak_and_what_it_is_made_of(void **state)
{
	struct spy_result r;
	int64_t before;

	(void)state;
	watch(false, false);
	spied_do(&child, SPIED_GROW, 100);
	assert_true(spy_tick(spy, clock_mono_ns()));
	spied_do(&child, SPIED_DROP, 0);
	r = finish();
	before = r.resources[SPY_RSS].begin;
	expect_about(r.resources[SPY_RSS].peak - before, 100 * MIB);
	expect_about(r.resources[SPY_ANON].peak, 100 * MIB);
	expect_about(r.resources[SPY_RSS].end, before);
	assert_int_equal(r.resources[SPY_FILE].end, r.resources[SPY_RSS].end - r.resources[SPY_ANON].end);
	assert_int_equal(r.resources[SPY_RSS].n, 3);
	assert_int_equal(r.how, SPY_STOPPED);
	assert_true(r.peak_exact && !r.tree_bound);
	assert_int_equal(r.peak_above, -1);
	assert_true(r.high_water_end >= r.resources[SPY_RSS].peak - MIB);
	assert_int_equal(r.resources[SPY_PSS].n, 0);
	spy_result_release(&r);
	spied_reap(&child);
}

static void a_peak_between_two_readings_is_told_by_the_mark(void **state)
{
	struct spy_result r;

	(void)state;
	watch(false, false);
	spied_do(&child, SPIED_SPIKE, 200);
	r = finish();
	expect_about(r.peak - r.resources[SPY_RSS].begin, 200 * MIB);
	assert_true(r.resources[SPY_RSS].peak < 100 * MIB);
	assert_true(r.peak_from_mark && r.peak_exact);
	spy_result_release(&r);
	spied_reap(&child);
}

static void an_old_mark_is_a_bound_from_above_only(void **state)
{
	struct spy_options o = {.delay_ns = 10 * NS_PER_MS};
	struct spy_result r;

	(void)state;
	child = spied_start();
	spied_do(&child, SPIED_SPIKE, 200);
	o.pid = child.pid;
	assert_int_equal(spy_new(&o, &spy, NULL), 0);
	assert_true(spy_tick(spy, clock_mono_ns()));
	r = finish();
	assert_true(r.peak < 100 * MIB);
	assert_false(r.peak_exact);
	assert_true(r.peak_above > 200 * MIB);
	spy_result_release(&r);
	spied_reap(&child);
}

static void a_process_that_ended_unwatched_leaves_a_bound_until_its_parent_knows(void **state)
{
	struct spy_result r;
	int64_t maxrss;

	(void)state;
	watch(false, false);
	spied_do(&child, SPIED_SPIKE, 200);
	spied_end(&child);
	assert_false(spy_tick(spy, clock_mono_ns()));
	r = finish();
	assert_int_equal(r.how, SPY_GONE);
	assert_false(r.peak_exact);
	assert_int_equal(r.peak_above, -1);
	assert_int_equal(r.ticks, 1);
	maxrss = spied_reap(&child);
	spy_result_maxrss(&r, maxrss);
	assert_int_equal(r.peak, maxrss);
	assert_true(r.peak_exact && r.peak_from_mark);
	spy_result_release(&r);
}

static void a_program_replaced_by_exec_is_not_called_exact(void **state)
{
	struct spy_result r;

	(void)state;
	watch(false, false);
	spied_do(&child, SPIED_EXEC, 0);
	assert_true(spy_tick(spy, clock_mono_ns()));
	r = finish();
	assert_int_equal(r.how, SPY_STOPPED);
	assert_false(r.peak_exact);
	assert_int_equal(r.peak_above, -1);
	spy_result_release(&r);
	spied_reap(&child);
}

static void threads_go_on_after_the_first(void **state)
{
	struct spy_result r;
	int64_t before;

	(void)state;
	watch(false, false);
	spied_do(&child, SPIED_THREAD, 0);
	assert_true(spy_tick(spy, clock_mono_ns()));
	spy_figures(spy, false, &r);
	before = r.resources[SPY_ANON].end;
	spy_result_release(&r);
	spied_do(&child, SPIED_GROW, 50);
	r = finish();
	expect_about(r.resources[SPY_ANON].end - before, 50 * MIB);
	spy_result_release(&r);
	spied_reap(&child);
}

static void forks_that_share_memory_are_summed_in_rss_and_shared_in_pss(void **state)
{
	struct spy_result r;

	(void)state;
	watch(true, true);
	spied_do(&child, SPIED_GROW, 100);
	spied_do(&child, SPIED_FORK, 10);
	/* The children read their memory in their own time. */
	for (int i = 0; i < 200; i++) {
		struct spy_result now;
		bool enough;

		spy_tick(spy, clock_mono_ns());
		spy_figures(spy, false, &now);
		enough = now.resources[SPY_RSS].end > 1100 * MIB && now.processes == 11;
		spy_result_release(&now);
		if (enough)
			break;
		clock_sleep_ns(20 * NS_PER_MS);
	}
	r = finish();
	assert_int_equal(r.processes, 11);
	assert_true(r.resources[SPY_RSS].end > 1100 * MIB);
	need("smaps_rollup", r.resources[SPY_PSS].n > 0, "PSS could not be read");
	assert_true(r.resources[SPY_PSS].end > 100 * MIB && r.resources[SPY_PSS].end < 160 * MIB);
	assert_true(r.tree_bound);
	spy_result_release(&r);
	spied_reap(&child);
}

static void children_that_were_there_before_are_found(void **state)
{
	struct spy_options o = {.tree = true, .delay_ns = 10 * NS_PER_MS};
	struct spy_result r;

	(void)state;
	child = spied_start();
	spied_do(&child, SPIED_GROW, 20);
	spied_do(&child, SPIED_FORK, 100);
	o.pid = child.pid;
	assert_int_equal(spy_new(&o, &spy, NULL), 0);
	assert_true(spy_tick(spy, clock_mono_ns()));
	r = finish();
	assert_int_equal(r.processes, 101);
	spy_result_release(&r);
	spied_reap(&child);
}

static void what_ends_before_it_is_read_is_counted_or_said(void **state)
{
	struct spy_result r;

	(void)state;
	watch(true, false);
	spied_do(&child, SPIED_SHORT, 40);
	r = finish();
	assert_true(r.unseen == 40 || r.warnings.count > 0);
	assert_true(r.processes == 41 || r.warnings.count > 0);
	assert_false(r.peak_exact && r.unseen > 0);
	spy_result_release(&r);
	spied_reap(&child);
}

static void count_ticks(void *context, const struct spy_sample *s)
{
	unsigned *ticks = context;

	assert_true(s->bytes[SPY_RSS] > 0);
	assert_int_equal(s->processes, 1);
	(*ticks)++;
}

static void a_watch_ends_with_the_process_however_long_its_delay(void **state)
{
	unsigned ticks = 0;
	struct spy_options o = {.delay_ns = 3600 * NS_PER_S, .sample = count_ticks, .context = &ticks};
	struct spy_result r;

	(void)state;
	child = spied_start();
	o.pid = child.pid;
	assert_int_equal(spy_new(&o, &spy, NULL), 0);
	assert_true(spy_tick(spy, clock_mono_ns()));
	spied_end(&child);
	spy_watch(spy, -1, 0);
	r = finish();
	assert_int_equal(r.how, SPY_GONE);
	assert_int_equal(ticks, 1);
	spy_result_release(&r);
	spied_reap(&child);
}

static void a_watch_ends_by_its_descriptor_and_by_the_clock(void **state)
{
	int ends[2];
	struct spy_result r;

	(void)state;
	watch(false, false);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	spy_watch(spy, -1, clock_mono_ns() + 50 * NS_PER_MS);
	close(ends[1]);
	spy_watch(spy, ends[0], 0);
	close(ends[0]);
	r = finish();
	assert_int_equal(r.how, SPY_STOPPED);
	assert_true(r.ticks >= 5);
	assert_true(r.end - r.begin >= 50 * NS_PER_MS);
	spy_result_release(&r);
	spied_reap(&child);
}

static void expect_refusal(pid_t pid, const char *sentence)
{
	struct spy_options o = {.pid = pid, .delay_ns = 10 * NS_PER_MS};
	struct error err = {""};

	assert_int_equal(spy_new(&o, &spy, &err), -1);
	assert_string_equal(err.text, sentence);
}

static void what_cannot_be_watched_is_named(void **state)
{
	char text[200];

	(void)state;
	expect_refusal(0, "0 is no process id");
	expect_refusal(2147483646, "there is no process 2147483646");
	child = spied_start();
	spied_end(&child);
	snprintf(text, sizeof text, "process %d has ended already; its parent has not yet asked for its status",
		 (int)child.pid);
	expect_refusal(child.pid, text);
	spied_reap(&child);
}

static void *end_thread(void *tid)
{
	*(pid_t *)tid = gettid();
	pause();
	return NULL;
}

static void a_thread_is_no_process(void **state)
{
	volatile pid_t tid = 0;
	char text[200];
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, end_thread, (void *)(uintptr_t)&tid), 0);
	while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		clock_sleep_ns(NS_PER_MS);
	snprintf(text, sizeof text, "%d is a thread of process %d; watch that", (int)tid, (int)getpid());
	expect_refusal(tid, text);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
}

/* Process 1, which is there for kill(2), as far as this /proc shows it. */
static void make_up(const char *flags, const char *start, const char *statm, const char *status)
{
	char text[300];

	snprintf(text, sizeof text, "1 (made up) S 0 1 1 0 -1 %s 0 0 0 0 0 0 0 0 20 0 1 0 %s 0 0\n", flags, start);
	make_file("proc/1/stat", text);
	make_file("proc/1/statm", statm);
	make_file("proc/1/status", status);
}

/* As which process this /proc shows us. */
static void link_self(int pid)
{
	char path[600], text[24];

	snprintf(path, sizeof path, "%s/self", procfs_root());
	snprintf(text, sizeof text, "%d", pid);
	assert_int_equal(symlink(text, path), 0);
}

static void a_kernel_thread_and_a_hidden_process_are_named(void **state)
{
	char text[700];

	(void)state;
	make_up("2129984", "5", "0 0 0 0 0 0 0\n", "Tgid:\t1\n");
	expect_refusal(1, "process 1 is a thread of the kernel, which has no memory of its own");
	snprintf(text, sizeof text, "%s shows no processes: it has to be mounted for process %d to be watched",
		 procfs_root(), (int)getpid());
	expect_refusal(getpid(), text);
	link_self(getpid());
	snprintf(text, sizeof text,
		 "process %d is hidden: %s shows each user only his own; watch it as its user or as root",
		 (int)getpid(), procfs_root());
	expect_refusal(getpid(), text);
}

static void a_proc_of_another_pid_namespace_is_refused(void **state)
{
	char text[700];

	(void)state;
	make_up("0", "5", "100 50 20 0 0 0 0\n", "Tgid:\t1\n");
	link_self(getpid() + 1);
	snprintf(text, sizeof text,
		 "%s is that of another pid namespace, where the pid is another process's; mount one for this "
		 "namespace (unshare --mount-proc)",
		 procfs_root());
	expect_refusal(1, text);
}

static void a_pid_that_is_used_again_ends_the_watch(void **state)
{
	struct spy_options o = {.pid = 1, .delay_ns = 10 * NS_PER_MS};
	struct spy_result r;

	(void)state;
	make_up("0", "5", "100 50 20 0 0 0 0\n", "Tgid:\t1\nVmHWM:\t300 kB\nVmSwap:\t7 kB\n");
	assert_int_equal(spy_new(&o, &spy, NULL), 0);
	assert_true(spy_tick(spy, NS_PER_S));
	make_up("0", "6", "0 0 0 0 0 0 0\n", "Tgid:\t1\n");
	assert_false(spy_tick(spy, 2 * NS_PER_S));
	r = finish();
	assert_int_equal(r.how, SPY_GONE);
	assert_int_equal(r.end, 2 * NS_PER_S);
	assert_int_equal(r.resources[SPY_ANON].peak, 30 * sysconf(_SC_PAGESIZE));
	assert_int_equal(r.resources[SPY_SWAP].peak, 7 * 1024);
	assert_int_equal(r.high_water_end, 300 * 1024);
	spy_result_release(&r);
}

static void without_a_mark_that_is_said_and_nothing_is_exact(void **state)
{
	struct spy_options o = {.pid = 1, .delay_ns = 10 * NS_PER_MS};
	struct spy_result r;

	(void)state;
	make_up("0", "5", "100 50 20 0 0 0 0\n", "Tgid:\t1\n");
	assert_int_equal(spy_new(&o, &spy, NULL), 0);
	assert_true(spy_tick(spy, NS_PER_S));
	r = finish();
	assert_int_equal(r.high_water_end, -1);
	assert_false(r.peak_exact);
	assert_int_equal(r.resources[SPY_SWAP].n, 0);
	assert_int_equal(r.warnings.count, 1);
	spy_result_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readings_give_begin_end_peak_and_what_it_is_made_of),
		cmocka_unit_test(a_peak_between_two_readings_is_told_by_the_mark),
		cmocka_unit_test(an_old_mark_is_a_bound_from_above_only),
		cmocka_unit_test(a_process_that_ended_unwatched_leaves_a_bound_until_its_parent_knows),
		cmocka_unit_test(a_program_replaced_by_exec_is_not_called_exact),
		cmocka_unit_test(threads_go_on_after_the_first),
		cmocka_unit_test(forks_that_share_memory_are_summed_in_rss_and_shared_in_pss),
		cmocka_unit_test(children_that_were_there_before_are_found),
		cmocka_unit_test(what_ends_before_it_is_read_is_counted_or_said),
		cmocka_unit_test(a_watch_ends_with_the_process_however_long_its_delay),
		cmocka_unit_test(a_watch_ends_by_its_descriptor_and_by_the_clock),
		cmocka_unit_test(what_cannot_be_watched_is_named),
		cmocka_unit_test(a_thread_is_no_process),
		cmocka_unit_test_setup_teardown(a_kernel_thread_and_a_hidden_process_are_named, fake_roots, real_roots),
		cmocka_unit_test_setup_teardown(a_proc_of_another_pid_namespace_is_refused, fake_roots, real_roots),
		cmocka_unit_test_setup_teardown(a_pid_that_is_used_again_ends_the_watch, fake_roots, real_roots),
		cmocka_unit_test_setup_teardown(without_a_mark_that_is_said_and_nothing_is_exact, fake_roots,
						real_roots),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
