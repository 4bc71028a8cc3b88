#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <assay.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "descriptors.h"

#define MIB (INT64_C(1) << 20)

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void spike(size_t mib)
{
	char *at = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	madvise(at, mib << 20, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < mib << 20; i += 4096)
		at[i] = 1;
	munmap(at, mib << 20);
}

/* Whether it is a spy that this host's library has started. Those that have ended have no arguments. */
static int is_spy_of(const char *pid, pid_t host)
{
	char path[300], text[512];
	const char *word = text;
	FILE *f;
	size_t length;

	snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	length = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[length] = '\0';
	if (strcmp(text, "assay-spy") != 0)
		return 0;
	for (int i = 0; i < 5 && word < text + length; i++)
		word += strlen(word) + 1;
	return atoi(word) == (int)host;
}

/* 0: there is none. */
static pid_t find_spy(pid_t host)
{
	DIR *dir = opendir("/proc");
	pid_t found = 0;

	assert_non_null(dir);
	for (struct dirent *entry; !found && (entry = readdir(dir));)
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && is_spy_of(entry->d_name, host))
			found = atoi(entry->d_name);
	closedir(dir);
	return found;
}

/* Hangs where it stays, which the tests' limit ends. */
static void await_no_spy(pid_t host)
{
	while (find_spy(host))
		sleep_ms(2);
}

static struct assay_spy *start(unsigned flags)
{
	struct assay_spy *spy = assay_spy_start(0, 0, flags);

	if (!spy)
		fail_msg("%s", assay_last_error());
	return spy;
}

static void a_program_watches_itself_and_misses_no_peak(void **state)
{
	struct assay_spy_result r;
	struct assay_spy *spy;

	(void)state;
	spike(1);
	spy = start(0);
	sleep_ms(50);
	spike(300);
	assert_int_equal(assay_spy_stop(spy, &r), 0);
	assert_true(r.peak - r.rss.begin > 294 * MIB);
#ifndef __SANITIZE_THREAD__ /* which keeps memory about memory */
	assert_true(r.peak - r.rss.begin < 306 * MIB);
#endif
	assert_int_equal(r.peak_exact, 1);
	assert_int_equal(r.peak, r.rss.peak > r.high_water_end ? r.rss.peak : r.high_water_end);
	assert_true(r.rss.n >= 3 && r.anon.n == r.rss.n && r.file.n == r.rss.n);
	assert_true(r.seconds >= 0.05 && r.rss.peak_at >= 0 && r.rss.peak_at <= r.seconds);
	assert_true(r.rss.average >= 1 && r.rss.average <= (double)r.rss.peak);
	assert_int_equal(r.pss.n, 0);
	assert_true(isnan(r.pss.average) && r.pss.peak == -1);
	assert_true(!r.gone && !r.partial && r.gpu_count == 0);
}

static void shares_are_read_where_they_are_asked_for(void **state)
{
	struct assay_spy_result r;

	(void)state;
	assert_int_equal(assay_spy_stop(start(ASSAY_SPY_PSS | ASSAY_SPY_TREE), &r), 0);
	assert_true(r.pss.n >= 1 && r.pss.peak > 0 && r.pss.peak <= r.rss.peak);
}

static void expect_refusal(int pid, double delay, unsigned flags, const char *sentence)
{
	assert_null(assay_spy_start(pid, delay, flags));
	assert_string_equal(assay_last_error(), sentence);
}

static void what_cannot_be_watched_is_named(void **state)
{
	(void)state;
	expect_refusal(2147483646, 0, 0, "assay_spy_start: there is no process 2147483646");
	expect_refusal(-1, 0, 0, "assay_spy_start: -1 is no process id");
	expect_refusal(0, 0.00001, 0, "assay_spy_start: a delay of 1e-05 s is outside 0.0001 to 86400 s");
	expect_refusal(0, NAN, 0, "assay_spy_start: a delay of nan s is outside 0.0001 to 86400 s");
	expect_refusal(0, 0, 64, "assay_spy_start: unknown flags 0x40");
	setenv("ASSAY_SPY_HELPER", "/nowhere/assay-spy", 1);
	expect_refusal(
		0, 0, 0,
		"assay_spy_start: /nowhere/assay-spy: No such file or directory; ASSAY_SPY_HELPER is to name the "
		"program assay-spy of this installation");
	setenv("ASSAY_SPY_HELPER", "/bin/true", 1);
	expect_refusal(0, 0, 0, "assay_spy_start: the spy ended at once; was it killed?");
	unsetenv("ASSAY_SPY_HELPER");
	assert_int_equal(assay_spy_stop(NULL, NULL), -1);
}

static void nothing_is_left_behind(void **state)
{
	size_t before = open_descriptors();

	(void)state;
	for (int i = 0; i < 20; i++) {
		errno = EXDEV;
		assert_int_equal(assay_spy_stop(start(0), NULL), 0);
		assert_int_equal(errno, EXDEV);
		assert_null(assay_spy_start(2147483646, 0, 0));
		assert_int_equal(errno, EXDEV);
	}
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(find_spy(getpid()), 0);
}

static void the_spy_is_nobodys_child(void **state)
{
	struct assay_spy *spy = start(0);

	(void)state;
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(assay_spy_stop(spy, NULL), 0);
}

static void a_killed_spy_leaves_its_figures(void **state)
{
	struct assay_spy_result r;
	struct assay_spy *spy = start(0);

	(void)state;
	sleep_ms(100);
	assert_int_equal(kill(find_spy(getpid()), SIGKILL), 0);
	assert_int_equal(assay_spy_stop(spy, &r), -1);
	assert_non_null(strstr(assay_last_error(), "was killed; the figures are those until then"));
	assert_int_equal(r.partial, 1);
	assert_true(r.rss.n >= 1 && r.rss.peak > 0);
	assert_true(!r.peak_exact && r.peak_above == -1);
}

static void a_spy_that_was_stopped_before_is_none(void **state)
{
	struct assay_spy_result r;
	struct assay_spy *volatile spy = start(0);

	(void)state;
	assert_int_equal(assay_spy_stop(spy, &r), 0);
	assert_int_equal(assay_spy_stop(spy, &r), -1);
	assert_string_equal(assay_last_error(),
			    "assay_spy_stop: there is no such spy: it has been stopped before");
	assert_true(r.rss.n == 0 && r.peak == -1);
}

static void a_limit_on_files_is_an_error_and_no_signal(void **state)
{
	struct rlimit before, small;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){100, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_null(assay_spy_start(0, 0, 0));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(strstr(assay_last_error(), "the limit on the size of files (ulimit -f) does not allow"));
}

static void a_spy_that_does_not_answer_is_killed(void **state)
{
	struct assay_spy_result r;
	struct assay_spy *spy = start(0);

	(void)state;
	assert_int_equal(kill(find_spy(getpid()), SIGSTOP), 0);
	assert_int_equal(assay_spy_stop(spy, &r), -1);
	assert_non_null(strstr(assay_last_error(), "did not answer and was killed"));
	assert_int_equal(r.partial, 1);
	await_no_spy(getpid());
}

static void the_end_of_another_process_is_told(void **state)
{
	struct assay_spy_result r;
	struct assay_spy *spy;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	spy = assay_spy_start(pid, 0.001, 0);
	assert_non_null(spy);
	sleep_ms(20);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	sleep_ms(20);
	assert_int_equal(assay_spy_stop(spy, &r), 0);
	assert_int_equal(r.gone, 1);
	assert_int_equal(r.peak_exact, 0);
	assert_true(r.rss.n >= 2);
}

static void *start_and_stop(void *trouble)
{
	for (int i = 0; i < 5; i++) {
		struct assay_spy *spy = assay_spy_start(0, 0.001, 0);
		struct assay_spy_result r;

		if (!spy || assay_spy_stop(spy, &r) != 0 || r.rss.n < 2)
			snprintf(trouble, 512, "%s", assay_last_error());
	}
	return NULL;
}

static void several_threads_watch_at_once(void **state)
{
	static char troubles[8][512];
	pthread_t threads[8];

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, start_and_stop, troubles[i]), 0);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_string_equal(troubles[i], "");
	}
}

/* Runs it in a child of its own; its status is what it returns. */
static int in_a_host(int (*body)(void))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	await_no_spy(pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int watch_and_stop(void)
{
	struct assay_spy_result r;
	struct assay_spy *spy = assay_spy_start(0, 0, 0);

	if (!spy)
		return 1;
	sleep_ms(20);
	return assay_spy_stop(spy, &r) == 0 && r.rss.n >= 2 && waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0
														 : 2;
}

static int without_sigchld(void)
{
	signal(SIGCHLD, SIG_IGN);
	return watch_and_stop();
}

/* Neither a zombie is left. */
static int without_descriptors_adopting(void)
{
	struct assay_spy *spy;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	spy = assay_spy_start(0, 0, 0);
	closefrom(3);
	if (!spy || assay_spy_stop(spy, NULL) == 0)
		return 1;
	return strstr(assay_last_error(), "has closed the spy's descriptor") && waitpid(-1, NULL, WNOHANG) < 0 &&
			       errno == ECHILD
		       ? 0
		       : 2;
}

static void reap_all(int signo)
{
	int saved = errno;

	(void)signo;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	errno = saved;
}

static int with_a_reaper(void)
{
	signal(SIGCHLD, reap_all);
	return watch_and_stop();
}

static int as_subreaper(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return watch_and_stop();
}

static int without_descriptors(void)
{
	for (int fd = 0; fd < 20; fd++)
		close(fd);
	return watch_and_stop();
}

static int with_signals_blocked(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGTERM, SIG_IGN);
	return watch_and_stop();
}

/* What it opens next gets the number that the spy's descriptor had. */
static int closing_all_descriptors(void)
{
	struct assay_spy *spy = assay_spy_start(0, 0, 0);
	int ends[2], stranger;
	char byte;

	for (int fd = 3; fd < 100; fd++)
		close(fd);
	for (int i = 0; i < 10; i++)
		if (pipe2(ends, O_NONBLOCK) < 0)
			return 1;
	stranger = ends[0];
	if (assay_spy_stop(spy, NULL) != -1 || !strstr(assay_last_error(), "closed the spy's descriptor"))
		return 2;
	return read(stranger, &byte, 1) < 0 && errno == EAGAIN ? 0 : 3;
}

static void hosts_of_all_kinds_can_watch(void **state)
{
	(void)state;
	assert_int_equal(in_a_host(watch_and_stop), 0);
	assert_int_equal(in_a_host(without_sigchld), 0);
	assert_int_equal(in_a_host(with_a_reaper), 0);
	assert_int_equal(in_a_host(as_subreaper), 0);
	assert_int_equal(in_a_host(without_descriptors), 0);
	assert_int_equal(in_a_host(with_signals_blocked), 0);
	assert_int_equal(in_a_host(closing_all_descriptors), 0);
	assert_int_equal(in_a_host(without_descriptors_adopting), 0);
}

static int die(void)
{
	if (assay_spy_start(0, 0, 0))
		raise(SIGKILL);
	return 1;
}

static int leave(void)
{
	return assay_spy_start(0, 0, 0) ? 0 : 1;
}

static int started[2], go_on[2];

/* A child of its own lives on, with what it has inherited. */
static int become_another_program(void)
{
	pid_t host = getpid();
	char byte;

	if (!assay_spy_start(0, 0, 0) || write(started[1], "", 1) != 1 || read(go_on[0], &byte, 1) != 1)
		return 1;
	if (fork() == 0) {
		while (getppid() == host)
			sleep_ms(20);
		_exit(0);
	}
	execl("/bin/sleep", "sleep", "3", (char *)NULL);
	return 2;
}

static void a_spy_ends_with_its_host(void **state)
{
	(void)state;
	/* in_a_host waits for that. */
	assert_int_equal(in_a_host(die), 128 + SIGKILL);
	assert_int_equal(in_a_host(leave), 0);
}

static void a_spy_ends_with_its_hosts_program(void **state)
{
	char byte;
	pid_t pid;
	int status;

	(void)state;
	assert_int_equal(pipe2(started, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go_on, O_CLOEXEC), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(become_another_program());
	assert_int_equal(read(started[0], &byte, 1), 1);
	assert_true(find_spy(pid) > 0);
	assert_int_equal(write(go_on[1], "", 1), 1);
	await_no_spy(pid);
	/* The program lives on: it was not the process's end that ended the spy. */
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_fork_does_not_stop_its_parents_spy(void **state)
{
	struct assay_spy *spy = start(0);
	struct assay_spy_result r;
	pid_t pid;
	int status;

	(void)state;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		int stopped = assay_spy_stop(spy, &r);

		_exit(stopped == -1 && r.rss.n == 0 && strstr(assay_last_error(), "this is a fork of it") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(assay_spy_stop(spy, &r), 0);
	assert_int_equal(r.partial, 0);
}

static void units_are_divided_and_unknown_stays_unknown(void **state)
{
	(void)state;
	assert_true(fabs(assay_spy_in(3 * MIB, 1024.0 * 1024) - 3) < 1e-12);
	assert_true(isnan(assay_spy_in(-1, 1024)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_watches_itself_and_misses_no_peak),
		cmocka_unit_test(shares_are_read_where_they_are_asked_for),
		cmocka_unit_test(what_cannot_be_watched_is_named),
		cmocka_unit_test(nothing_is_left_behind),
		cmocka_unit_test(the_spy_is_nobodys_child),
		cmocka_unit_test(a_killed_spy_leaves_its_figures),
		cmocka_unit_test(a_spy_that_does_not_answer_is_killed),
		cmocka_unit_test(a_spy_that_was_stopped_before_is_none),
		cmocka_unit_test(a_limit_on_files_is_an_error_and_no_signal),
		cmocka_unit_test(the_end_of_another_process_is_told),
		cmocka_unit_test(several_threads_watch_at_once),
		cmocka_unit_test(hosts_of_all_kinds_can_watch),
		cmocka_unit_test(a_spy_ends_with_its_host),
		cmocka_unit_test(a_spy_ends_with_its_hosts_program),
		cmocka_unit_test(a_fork_does_not_stop_its_parents_spy),
		cmocka_unit_test(units_are_divided_and_unknown_stays_unknown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
