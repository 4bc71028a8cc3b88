/* The process tree and the sources together, on real targets whose figures are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>

#include "exec/tree.h"
#include "held.h"
#include "sources.h"

#define MIB ((double)(1 << 20))

struct watched {
	struct held held;
	struct stage stage;
	struct tree *tree;
};

static void gone(void *context, struct process *p, int64_t now)
{
	struct watched *w = context;

	tree_process_gone(w->tree, p, now);
}

static void watch(struct watched *w, const char *const argv[])
{
	struct error err;

	w->held = held_start(argv);
	stage_init(&w->stage, w->held.pid);
	w->stage.context.process_gone = gone;
	w->stage.context.gone_context = w;
	if (tree_new(w->held.pid, getpid(), &w->stage.table, &w->tree, &err) < 0)
		fail_msg("%s", err.text);
	stage_open(&w->stage, &source_cpu);
	stage_open(&w->stage, &source_memory);
	stage_open(&w->stage, &source_io);
	held_release(&w->held);
}

static void look(struct watched *w)
{
	int64_t now = clock_mono_ns();

	tree_update(w->tree, now);
	stage_tick(&w->stage, now);
	stage_slow(&w->stage, now);
	process_table_reap(&w->stage.table, NULL, NULL);
	clock_sleep_ns(2 * NS_PER_MS);
}

/* Until it is a zombie, which is then looked at three times: so long may news of children take. */
static void watch_to_end(struct watched *w)
{
	siginfo_t info = {0};

	while (waitid(P_PID, (id_t)w->held.pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
		look(w);
	for (int i = 0; i < 3; i++)
		look(w);
}

static void unwatch(struct watched *w)
{
	tree_signal(w->tree, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	tree_free(w->tree);
	stage_release(&w->stage);
	held_close(&w->held);
}

static void memory_that_is_held_is_seen_in_full(void **state)
{
	struct watched w;

	(void)state;
	watch(&w, (const char *const[]){held_target("touch_memory"), "400", "60000", NULL});
	while (!(last_of("memory.anon") >= 400 * MIB))
		look(&w);
	assert_true(series_of("memory.anon")->highest <= 408 * MIB);
	assert_true(series_of("memory.rss")->highest <= 408 * MIB);
	assert_true(last_of("memory.file") > 0);
	assert_true(last_of("memory.faults.minor") > 100);
	unwatch(&w);
}

static void memory_of_30_ms_is_never_overstated(void **state)
{
	struct watched w;

	(void)state;
	watch(&w, (const char *const[]){held_target("touch_memory"), "400", "30", NULL});
	watch_to_end(&w);
	assert_true(series_of("memory.rss")->highest <= 408 * MIB);
	/* A zombie's zeros are no reading. */
	assert_true(series_of("memory.rss")->lowest > 0);
	unwatch(&w);
}

static void cpu_time_of_threads_is_counted_in_full(void **state)
{
	struct watched w;

	(void)state;
	watch(&w, (const char *const[]){held_target("threads_clone"), "4", "100", NULL});
	watch_to_end(&w);
	assert_true(last_of("cpu.total") >= 0.4);
	assert_true(last_of("cpu.total") < 0.6);
	/* In units of 10 ms. */
	assert_true(last_of("cpu.user") + last_of("cpu.system") >= 0.38);
	assert_true(series_of("cpu.threads")->highest >= 2);
	unwatch(&w);
}

static void a_process_whose_first_thread_has_ended_goes_on(void **state)
{
	struct watched w;
	struct proc_stat stat = {0};
	struct process *p;
	size_t points;

	(void)state;
	watch(&w, (const char *const[]){held_target("threads_clone"), "2", "60000", "leave", NULL});
	while (stat.state != 'Z') {
		char text[512];
		ssize_t length = procfs_read_file(text, sizeof text, "%d/stat", (int)w.held.pid);

		assert_true(length > 0 && proc_stat_scan(text, (size_t)length, &stat));
		look(&w);
	}
	look(&w);
	points = series_of("memory.rss")->points;
	for (int64_t end = clock_mono_ns() + 1500 * NS_PER_MS; clock_mono_ns() < end;)
		look(&w);
	p = process_find(&w.stage.table, w.held.pid);
	assert_non_null(p);
	assert_true(p->rss > 0);
	/* A value is kept once a second even where it does not change. */
	assert_true(series_of("memory.rss")->points > points);
	unwatch(&w);
}

static void cpu_time_of_children_is_counted_once(void **state)
{
	struct watched w;
	char command[1200];

	(void)state;
	/* Four that are seen, and forty that may end between two looks. */
	snprintf(command, sizeof command,
		 "for i in 1 2 3 4; do '%s' 1 100; done; i=0; while [ $i -lt 40 ]; do '%s' 1 5; i=$((i+1)); done",
		 held_target("threads_clone"), held_target("threads_clone"));
	watch(&w, (const char *const[]){"sh", "-c", command, NULL});
	watch_to_end(&w);
	/* Times are inherited in units of 10 ms of their sum. */
	assert_true(last_of("cpu.total") >= 0.6 - 0.02);
	assert_true(last_of("cpu.total") < 0.9);
	assert_true(last_of("cpu.user") + last_of("cpu.system") >= 0.6 - 0.04);
	assert_true(last_of("cpu.user") + last_of("cpu.system") < 0.9);
	unwatch(&w);
}

static void output_of_a_child_is_counted_once(void **state)
{
	struct watched w;

	(void)state;
	watch(&w, (const char *const[]){"sh", "-c",
					"dd if=/dev/zero of=/dev/null bs=65536 count=128 2>/dev/null; exec sleep 60",
					NULL});
	while (!(last_of("io.write_chars") >= 8 * MIB))
		look(&w);
	for (int i = 0; i < 50; i++)
		look(&w);
	assert_true(last_of("io.write_chars") < 8.2 * MIB);
	assert_true(last_of("io.read_chars") >= 8 * MIB && last_of("io.read_chars") < 8.5 * MIB);
	assert_true(last_of("io.write_calls") >= 128 && last_of("io.write_calls") < 200);
	unwatch(&w);
}

static void waiting_for_a_cpu_shows_in_the_run_queue(void **state)
{
	struct watched w;
	cpu_set_t one;

	(void)state;
	watch(&w, (const char *const[]){held_target("threads_clone"), "8", "60000", NULL});
	assert_int_equal(sched_getaffinity(0, sizeof one, &one), 0);
	/* Eight threads on the CPU that the test runs on now. */
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(w.held.pid, sizeof one, &one), 0);
	while (!(last_of("cpu.runqueue_wait") > 0.05))
		look(&w);
	assert_true(last_of("cpu.switches") > 0);
	unwatch(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_that_is_held_is_seen_in_full),
		cmocka_unit_test(memory_of_30_ms_is_never_overstated),
		cmocka_unit_test(cpu_time_of_threads_is_counted_in_full),
		cmocka_unit_test(a_process_whose_first_thread_has_ended_goes_on),
		cmocka_unit_test(cpu_time_of_children_is_counted_once),
		cmocka_unit_test(output_of_a_child_is_counted_once),
		cmocka_unit_test(waiting_for_a_cpu_shows_in_the_run_queue),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
