#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/touch.h"
#include "fake_proc.h"
#include "need.h"

#define MIB (1024.0 * 1024.0)
#define BUFFER ((size_t)64 << 20)

static void need_page_monitor(void)
{
	need("page-monitor", access("/proc/self/clear_refs", F_OK) == 0,
	     "the kernel is built without CONFIG_PROC_PAGE_MONITOR");
}

/* A child with a large buffer that goes through all of it, three times, for each byte that it gets. */
struct walker {
	pid_t pid;
	int ask, answer;
};

static void walk(int ask, int answer)
{
	volatile char *buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char c;

	if (buffer == MAP_FAILED)
		_exit(1);
	/* Of huge pages, a few bytes read would count as all. */
	(void)madvise((void *)(uintptr_t)buffer, BUFFER, MADV_NOHUGEPAGE);
	for (;;) {
		for (int pass = 0; pass < 3; pass++)
			for (size_t at = 0; at < BUFFER; at += 1024)
				buffer[at]++;
		if (write(answer, "x", 1) != 1 || read(ask, &c, 1) != 1)
			_exit(0);
	}
}

static struct walker walker_start(void)
{
	int ask[2], answer[2];
	struct walker w;
	char c;

	assert_int_equal(pipe(ask), 0);
	assert_int_equal(pipe(answer), 0);
	w.pid = fork();
	assert_true(w.pid >= 0);
	if (w.pid == 0) {
		close(ask[1]);
		close(answer[0]);
		walk(ask[0], answer[1]);
	}
	close(ask[0]);
	close(answer[1]);
	w.ask = ask[1];
	w.answer = answer[0];
	assert_int_equal(read(w.answer, &c, 1), 1);
	return w;
}

static void walker_walk(const struct walker *w)
{
	char c;

	assert_int_equal(write(w->ask, "x", 1), 1);
	assert_int_equal(read(w->answer, &c, 1), 1);
}

static void walker_end(const struct walker *w)
{
	close(w->ask);
	close(w->answer);
	assert_int_equal(waitpid(w->pid, NULL, 0), w->pid);
}

static void what_is_gone_through_is_seen_and_what_lies_is_not(void **state)
{
	struct walker w;
	struct touch t;
	struct error err;

	(void)state;
	need_page_monitor();
	w = walker_start();
	assert_int_equal(touch_clear(w.pid, &t, &err), 0);
	assert_int_equal(touch_read(w.pid, &t, &err), 0);
	assert_true(t.resident >= (double)BUFFER);
	assert_true(t.touched < 16 * MIB);
	assert_true(t.seen_at > t.cleared_at);
	assert_true(t.cost_ns > 0);
	assert_int_equal(touch_clear(w.pid, &t, &err), 0);
	walker_walk(&w);
	assert_int_equal(touch_read(w.pid, &t, &err), 0);
	/* Not all of it, since the processor need not look at the bits of what it has translated lately. */
	assert_true(t.touched >= 16 * MIB);
	assert_true(t.touched <= t.resident);
	walker_end(&w);
}

static void a_process_that_is_gone_is_told_from_other_trouble(void **state)
{
	struct walker w;
	struct touch t;
	struct error err = {""};
	char expected[64];

	(void)state;
	need_page_monitor();
	w = walker_start();
	walker_end(&w);
	snprintf(expected, sizeof expected, "/proc/%d/clear_refs: the process has ended", w.pid);
	assert_int_equal(touch_clear(w.pid, &t, &err), -ESRCH);
	assert_string_equal(err.text, expected);
	assert_int_equal(touch_read(w.pid, &t, &err), -ESRCH);
}

static void the_process_of_another_user_is_refused(void **state)
{
	struct touch t;
	struct error err = {""};
	int status;
	pid_t pid;

	(void)state;
	need_page_monitor();
	need("root", geteuid() == 0, "another user can only be taken on by root");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(setresuid(65534, 65534, 65534) == 0 && touch_clear(getppid(), &t, &err) == -EACCES &&
				      touch_read(getppid(), &t, &err) == -EACCES &&
				      strstr(err.text, "Permission denied")
			      ? 0
			      : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void damaged_files_are_refused(void **state)
{
	static const char *const texts[] = {"", "Rss: 4 kB\n", "Referenced: 4 kB\n", "Rss: x\nReferenced: 4 kB\n",
					    "Rss: 4 kB\nReferenced: 4", "\xff\xfe"};
	struct touch t = {0};
	struct error err;

	(void)state;
	make_file("proc/77/clear_refs", "");
	assert_int_equal(touch_clear(77, &t, &err), 0);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		make_file("proc/77/smaps_rollup", texts[i]);
		err.text[0] = '\0';
		assert_true(touch_read(77, &t, &err) < 0);
		assert_non_null(strstr(err.text, "/77/smaps_rollup"));
	}
	make_file("proc/77/smaps_rollup", "0-1 ---p 0 00:00 0 [rollup]\nRss: 40 kB\nPss: 7 kB\nReferenced: 12 kB\n");
	assert_int_equal(touch_read(77, &t, &err), 0);
	assert_true(t.resident == 40 * 1024 && t.touched == 12 * 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_gone_through_is_seen_and_what_lies_is_not),
		cmocka_unit_test(a_process_that_is_gone_is_told_from_other_trouble),
		cmocka_unit_test(the_process_of_another_user_is_refused),
		cmocka_unit_test_setup_teardown(damaged_files_are_refused, fake_roots, real_roots),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
