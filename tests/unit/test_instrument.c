/* Calls the hooks as a compiler would have them called: what they count, and what they do when calls end otherwise. The
 * recordings are read as they lie in the folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <assay.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/graph_recording.h"
#include "wire/graph.h"

#include "need.h"

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

static char folder[64];
static char code[4096]; /* places in it stand for functions */

/* The library looks into the environment once: each case is a process of its own. */
static void in_child(void (*work)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		work();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/assay-test-XXXXXX");
	return !mkdtemp(folder) || setenv(CALLS_FOLDER_VARIABLE, folder, 1) != 0;
}

static int tear_down(void **state)
{
	(void)state;
	return calls_recording_remove(folder, NULL) < 0 || rmdir(folder) < 0;
}

static void enter(int function)
{
	__cyg_profile_func_enter(code + function, code);
}

static void leave(int function)
{
	__cyg_profile_func_exit(code + function, code);
}

static struct calls_sum find(const struct calls_process *p, int caller, int callee)
{
	uint64_t from = caller ? (uint64_t)(uintptr_t)(code + caller) : 0;

	for (size_t i = 0; i < p->sum_count; i++)
		if (p->sums[i].caller == from && p->sums[i].callee == (uint64_t)(uintptr_t)(code + callee))
			return p->sums[i];
	return (struct calls_sum){0};
}

/* The one process that has calls. */
static struct calls_process *read_one(struct calls_recording *r)
{
	struct calls_process *found = NULL;
	struct warnings notes;

	calls_recording_init(r);
	warnings_init(&notes);
	assert_int_equal(calls_recording_read(folder, r, &notes, NULL), 0);
	assert_int_equal(notes.count, 0);
	for (size_t i = 0; i < r->count; i++)
		if (r->processes[i].sum_count) {
			assert_null(found);
			found = &r->processes[i];
		}
	assert_non_null(found);
	warnings_release(&notes);
	return found;
}

static void simple(void)
{
	enter(1);
	for (int i = 0; i < 5; i++) {
		enter(2);
		enter(3);
		leave(3);
		leave(2);
	}
	enter(3);
	leave(3);
	leave(1);
}

static void calls_are_counted_per_caller_and_callee(void **state)
{
	struct calls_recording r;
	struct calls_process *p;

	(void)state;
	in_child(simple);
	p = read_one(&r);
	assert_int_equal(find(p, 0, 1).calls, 1);
	assert_int_equal(find(p, 1, 2).calls, 5);
	assert_int_equal(find(p, 2, 3).calls, 5);
	assert_int_equal(find(p, 1, 3).calls, 1);
	assert_int_equal(p->sum_count, 4);
	assert_true(find(p, 0, 1).total_ns >= find(p, 1, 2).total_ns + find(p, 1, 3).total_ns);
	assert_int_equal(p->lost + p->dropped + p->beyond + p->open, 0);
	calls_recording_release(&r);
}

/* In frames of their own, as functions are. */
static __attribute__((noinline)) void nest(uint32_t times, int first, int second)
{
	volatile char own = 0;

	enter(first);
	if (times > 1)
		nest(times - 1, second, first);
	leave(first);
	own++;
}

static void recursive(void)
{
	nest(10, 1, 2);
}

static void recursion_is_counted_once_in_totals(void **state)
{
	struct calls_recording r;
	struct calls_process *p;

	(void)state;
	in_child(recursive);
	p = read_one(&r);
	assert_int_equal(find(p, 1, 2).calls, 5);
	assert_int_equal(find(p, 1, 2).primitive, 1);
	assert_int_equal(find(p, 2, 1).calls, 4);
	assert_int_equal(find(p, 2, 1).primitive, 0);
	assert_true(find(p, 2, 1).total_ns < 1);
	assert_true(find(p, 0, 1).total_ns >= find(p, 1, 2).total_ns);
	calls_recording_release(&r);
}

static void killed(void)
{
	enter(1);
	enter(2);
	leave(2);
	enter(3);
	usleep(20000);
	enter(4);
	raise(SIGKILL);
}

static void a_killed_program_leaves_its_calls_and_those_that_were_open(void **state)
{
	struct calls_recording r;
	struct calls_process *p;

	(void)state;
	in_child(killed);
	p = read_one(&r);
	assert_false(p->ended);
	assert_int_equal(p->open, 3);
	assert_int_equal(find(p, 1, 2).calls, 1);
	assert_int_equal(find(p, 3, 4).calls, 1);
	assert_true(find(p, 1, 3).total_ns >= 20e6);
	assert_true(find(p, 0, 1).total_ns >= find(p, 1, 3).total_ns);
	calls_recording_release(&r);
}

static void many_pairs(void)
{
	/* Callers and callees of all kinds: more pairs than a thread may have. */
	for (uintptr_t caller = 1; caller <= 1100; caller++) {
		__cyg_profile_func_enter((void *)(caller * 4096), code);
		for (uintptr_t callee = 1; callee <= 1100; callee++) {
			__cyg_profile_func_enter((void *)(callee * 4096), code);
			__cyg_profile_func_exit((void *)(callee * 4096), code);
		}
		__cyg_profile_func_exit((void *)(caller * 4096), code);
	}
}

static void what_finds_no_room_is_counted(void **state)
{
	struct calls_recording r;
	struct calls_process *p;
	uint64_t calls = 0;

	(void)state;
	in_child(many_pairs);
	p = read_one(&r);
	for (size_t i = 0; i < p->sum_count; i++)
		calls += p->sums[i].calls;
	assert_true(p->dropped > 0);
	assert_int_equal(calls + p->dropped, 1100 + 1100 * 1100);
	assert_true(p->sum_count > 1000000);
	calls_recording_release(&r);
}

static void without_exits(void)
{
	enter(1);
	enter(2);
	enter(3); /* 2 and 3 never end: what longjmp does */
	leave(1);
	enter(4);
	leave(4);
	leave(9); /* of a call that began before */
}

static void missing_exits_end_with_their_caller(void **state)
{
	struct calls_recording r;
	struct calls_process *p;

	(void)state;
	in_child(without_exits);
	p = read_one(&r);
	assert_int_equal(p->lost, 2);
	assert_int_equal(p->open, 0);
	assert_int_equal(find(p, 0, 4).calls, 1);
	assert_int_equal(find(p, 0, 9).calls, 0);
	calls_recording_release(&r);
}

static void *deep_thread(void *unused)
{
	nest(CALLS_FRAMES_MAX + 1000, 1, 1);
	enter(2);
	leave(2);
	return unused;
}

static void deep(void)
{
	pthread_attr_t large;
	pthread_t it;

	if (pthread_attr_init(&large) != 0 || pthread_attr_setstacksize(&large, (size_t)1 << 30) != 0 ||
	    pthread_create(&it, &large, deep_thread, NULL) != 0 || pthread_join(it, NULL) != 0)
		_exit(1);
}

static void what_is_too_deep_is_counted_and_the_rest_goes_on(void **state)
{
	struct calls_recording r;
	struct calls_process *p;

	(void)state;
#ifdef __SANITIZE_THREAD__
	need("plain-build", false, "ThreadSanitizer ends where 65,535 calls are open");
#endif
	in_child(deep);
	p = read_one(&r);
	assert_int_equal(find(p, 0, 1).calls + find(p, 1, 1).calls + p->beyond, CALLS_FRAMES_MAX + 1000);
	assert_int_equal(find(p, 0, 2).calls, 1);
	assert_int_equal(p->open, 0);
	calls_recording_release(&r);
}

static void *thread(void *unused)
{
	(void)unused;
	for (int i = 0; i < 1000; i++)
		simple();
	return NULL;
}

static void threads(void)
{
	pthread_t all[8];

	for (int i = 0; i < 8; i++)
		pthread_create(&all[i], NULL, thread, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(all[i], NULL);
}

static void all_threads_are_added_up(void **state)
{
	struct calls_recording r;
	struct calls_process *p;

	(void)state;
	in_child(threads);
	p = read_one(&r);
	assert_int_equal(find(p, 1, 2).calls, 8 * 5000);
	assert_int_equal(find(p, 0, 1).calls, 8 * 1000);
	assert_in_range(p->threads, 1, 8);
	calls_recording_release(&r);
}

static void on_signal(int signo)
{
	(void)signo;
	enter(7);
	leave(7);
}

static void interrupted(void)
{
	for (int i = 0; i < 1000; i++) {
		enter(1);
		raise(SIGUSR1);
		leave(1);
	}
}

static void with_handler(void)
{
	signal(SIGUSR1, on_signal);
	interrupted();
}

static void calls_of_signal_handlers_are_recorded_below_what_they_interrupt(void **state)
{
	struct calls_recording r;
	struct calls_process *p;

	(void)state;
	in_child(with_handler);
	p = read_one(&r);
	assert_int_equal(find(p, 1, 7).calls, 1000);
	calls_recording_release(&r);
}

static void forking(void)
{
	pid_t child;

	enter(1);
	child = fork();
	if (child == 0) {
		enter(2);
		leave(2);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	leave(1);
}

static void a_forks_child_has_a_recording_of_its_own(void **state)
{
	struct calls_recording r;
	struct warnings notes;
	uint64_t first = 0, second = 0;

	(void)state;
	in_child(forking);
	calls_recording_init(&r);
	warnings_init(&notes);
	assert_int_equal(calls_recording_read(folder, &r, &notes, NULL), 0);
	for (size_t i = 0; i < r.count; i++) {
		first += find(&r.processes[i], 0, 1).calls;
		second += find(&r.processes[i], 0, 2).calls;
		assert_false(find(&r.processes[i], 0, 1).calls && find(&r.processes[i], 0, 2).calls);
	}
	assert_int_equal(first, 1);
	assert_int_equal(second, 1);
	calls_recording_release(&r);
	warnings_release(&notes);
}

static void call(void *context)
{
	struct assay_graph *graph = NULL;

	*(int *)context = assay_profile(call, context, &graph);
	assert_null(graph);
}

static void profile_while_recording(void)
{
	struct assay_graph *graph = NULL;
	int called = 7;

	enter(1);
	leave(1);
	if (assay_profile(call, &called, &graph) != -1 || called != 7 || !strstr(assay_last_error(), "already"))
		_exit(1);
}

static void assay_profile_refuses_while_calls_are_recorded(void **state)
{
	struct calls_recording r;

	(void)state;
	in_child(profile_while_recording);
	read_one(&r);
	calls_recording_release(&r);
}

static void a_graph_that_cannot_be_read_is_an_error(void **state)
{
	struct assay_graph *graph = NULL;
	struct assay_graph_node node;

	(void)state;
	assert_int_equal(assay_graph_read("/nonexistent/x.graph", &graph), -1);
	assert_non_null(strstr(assay_last_error(), "/nonexistent/x.graph"));
	assert_null(graph);
	assert_int_equal(assay_graph_node_at(NULL, 0, &node), -1);
	assert_true(assay_graph_root(NULL) == (size_t)-1);
	assay_graph_free(NULL);
}

static void notes_of_a_graph_can_be_asked_for(void **state)
{
	static const char text[] = "assay-graph 1\nunit\ts\t1\nestimated\t0\nnotes\t1\n"
				   "note\tsome are missing\nnodes\t0\nedges\t0\nways\t0\nend\n";
	char path[] = "/tmp/assay-test-XXXXXX";
	struct assay_graph *graph = NULL;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(assay_graph_read(path, &graph), 0);
	assert_string_equal(assay_graph_note(graph, 0), "some are missing");
	assert_null(assay_graph_note(graph, 1));
	assert_null(assay_graph_note(NULL, 0));
	assay_graph_free(graph);
	unlink(path);
}

#define RECORDED(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORDED(calls_are_counted_per_caller_and_callee),
		RECORDED(recursion_is_counted_once_in_totals),
		RECORDED(a_killed_program_leaves_its_calls_and_those_that_were_open),
		RECORDED(what_finds_no_room_is_counted),
		RECORDED(missing_exits_end_with_their_caller),
		RECORDED(what_is_too_deep_is_counted_and_the_rest_goes_on),
		RECORDED(all_threads_are_added_up),
		RECORDED(calls_of_signal_handlers_are_recorded_below_what_they_interrupt),
		RECORDED(a_forks_child_has_a_recording_of_its_own),
		RECORDED(assay_profile_refuses_while_calls_are_recorded),
		cmocka_unit_test(a_graph_that_cannot_be_read_is_an_error),
		cmocka_unit_test(notes_of_a_graph_can_be_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
