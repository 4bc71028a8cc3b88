#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/timed.h"

#define SMALL_BYTES ((int64_t)24 << 20) /* more than /bin/true takes, and far less than what is planted */

static int null_fd;
static volatile int stop;

static int run(struct timed *t, char *const *argv, int64_t timeout_ns, struct timed_result *r, struct error *err)
{
	const struct timed_options o = {
		.argv = argv, .in = null_fd, .out = null_fd, .err = null_fd, .timeout_ns = timeout_ns};

	return timed_run(t, &o, &stop, r, err);
}

static int run_shell(struct timed *t, const char *line, int64_t timeout_ns, struct timed_result *r)
{
	char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)line, NULL};
	struct error err = {""};
	int got = run(t, argv, timeout_ns, r, &err);

	if (got < 0)
		print_error("%s\n", err.text);
	return got;
}

static struct timed *new_starter(void)
{
	struct error err = {""};
	struct timed *t = timed_new(&err);

	stop = 0;
	if (!t)
		fail_msg("%s", err.text);
	return t;
}

static void the_time_is_that_of_the_command(void **state)
{
	struct timed *t = new_starter();
	struct timed_result r;
	int64_t from = clock_mono_ns();

	(void)state;
	assert_int_equal(run_shell(t, "sleep 0.2", 0, &r), 0);
	assert_in_range(r.wall_ns, 200 * NS_PER_MS, clock_mono_ns() - from);
	assert_int_equal(r.status, 0);
	assert_false(r.timed_out);
	timed_free(t);
}

static void statuses_and_signals_are_the_commands_own(void **state)
{
	struct timed *t = new_starter();
	struct timed_result r;

	(void)state;
	assert_int_equal(run_shell(t, "exit 7", 0, &r), 0);
	assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 7);
	assert_int_equal(run_shell(t, "kill -SEGV $$", 0, &r), 0);
	assert_true(WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGSEGV);
	timed_free(t);
}

static void cpu_time_and_faults_are_counted(void **state)
{
	struct timed *t = new_starter();
	struct timed_result r;

	(void)state;
	assert_int_equal(run_shell(t, "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done", 0, &r), 0);
	assert_true(r.user_ns + r.system_ns > 10 * NS_PER_MS);
	assert_true(r.user_ns + r.system_ns < r.wall_ns + 20 * NS_PER_MS);
	assert_true(r.minor_faults > 0);
	timed_free(t);
}

static void the_peak_is_the_commands_and_not_that_of_a_big_parent(void **state)
{
	struct timed *t = new_starter();
	size_t size = (size_t)300 << 20;
	char *big = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *argv[] = {(char[]){"true"}, NULL};
	char planted[4096];
	struct timed_result r;
	struct error err;

	(void)state;
	assert_ptr_not_equal(big, MAP_FAILED);
	memset(big, 1, size);
	assert_int_equal(run(t, argv, 0, &r, &err), 0);
	assert_in_range(r.max_rss, 1, SMALL_BYTES);
	snprintf(planted, sizeof planted, "%s/target_touch_memory 100 0", getenv("ASSAY_TEST_TARGETS"));
	assert_int_equal(run_shell(t, planted, 0, &r), 0);
	assert_in_range(r.max_rss, (int64_t)100 << 20, (int64_t)100 * (1 << 20) + SMALL_BYTES);
	munmap(big, size);
	timed_free(t);
}

static void a_command_that_is_not_there_is_named(void **state)
{
	struct timed *t = new_starter();
	char *missing[] = {(char[]){"no-such-command-here"}, NULL}, *folder[] = {(char[]){"/"}, NULL};
	char *empty[] = {(char[]){""}, NULL};
	struct timed_result r;
	struct error err;

	(void)state;
	assert_int_equal(run(t, missing, 0, &r, &err), 127);
	assert_string_equal(err.text, "no-such-command-here: command not found");
	assert_int_equal(run(t, folder, 0, &r, &err), 126);
	assert_string_equal(err.text, "/: is a directory");
	assert_int_equal(run(t, empty, 0, &r, &err), 127);
	assert_int_equal(run_shell(t, "exit 0", 0, &r), 0);
	timed_free(t);
}

static void a_timeout_ends_the_whole_group(void **state)
{
	struct timed *t = new_starter();
	char line[256], path[] = "/tmp/test_timed_XXXXXX";
	int fd = mkstemp(path);
	struct timed_result r;
	int pid = 0;
	FILE *f;

	(void)state;
	assert_true(fd >= 0);
	snprintf(line, sizeof line, "trap '' TERM; sleep 600 & echo $! > %s; wait; wait; sleep 600", path);
	assert_int_equal(run_shell(t, line, 300 * NS_PER_MS, &r), 0);
	assert_true(r.timed_out);
	assert_true(WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGKILL);
	f = fdopen(fd, "r");
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	fclose(f);
	unlink(path);
	/* It may be a zombie for a moment, until its new parent reaps it; it must not be alive. */
	for (int i = 0; i < 5000 && kill(pid, 0) == 0; i++) {
		char name[64], state_letter = 0;

		snprintf(name, sizeof name, "/proc/%d/stat", pid);
		f = fopen(name, "re");
		if (!f)
			break;
		if (fscanf(f, "%*d %*s %c", &state_letter) != 1 || state_letter == 'Z') {
			fclose(f);
			break;
		}
		fclose(f);
		assert_int_not_equal(i, 4999);
		usleep(2000);
	}
	timed_free(t);
}

static void on_alarm(int signo)
{
	stop = signo;
}

static void a_signal_that_sets_stop_ends_the_command(void **state)
{
	struct timed *t = new_starter();
	struct sigaction catching = {.sa_handler = on_alarm};
	const struct itimerval soon = {.it_value.tv_usec = 200000};
	struct timed_result r;

	(void)state;
	sigaction(SIGALRM, &catching, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	assert_int_equal(run_shell(t, "sleep 600", 0, &r), 1);
	/* Once set, nothing more is started; and the starter is in order again afterwards. */
	assert_int_equal(run_shell(t, "exit 0", 0, &r), 1);
	stop = 0;
	assert_int_equal(run_shell(t, "exit 3", 0, &r), 0);
	assert_int_equal(WEXITSTATUS(r.status), 3);
	timed_free(t);
}

static void words_variables_and_descriptors_arrive(void **state)
{
	struct timed *t = new_starter();
	char *variables[] = {(char[]){"A=one two"}, (char[]){"PATH=/usr/bin:/bin"}, NULL};
	char *argv[] = {(char[]){"sh"},
			(char[]){"-c"},
			(char[]){"read x; printf '%s|%s|%s|%d' \"$A\" \"$1\" \"$x\" ${#2}"},
			(char[]){"sh"},
			(char[]){"a 'b' \xc3\xa4"},
			malloc(100001),
			NULL};
	struct timed_options o = {.argv = argv, .environment = variables};
	int in[2], out[2];
	struct timed_result r;
	struct error err;
	char text[128];
	ssize_t n;

	(void)state;
	assert_int_equal(pipe(in) | pipe(out), 0);
	memset(argv[5], 'x', 100000);
	argv[5][100000] = '\0';
	assert_int_equal(write(in[1], "line\n", 5), 5);
	o.in = in[0];
	o.out = o.err = out[1];
	assert_int_equal(timed_run(t, &o, NULL, &r, &err), 0);
	n = read(out[0], text, sizeof text - 1);
	assert_true(n > 0);
	text[n] = '\0';
	assert_string_equal(text, "one two|a 'b' \xc3\xa4|line|100000");
	for (int i = 0; i < 2; i++) {
		close(in[i]);
		close(out[i]);
	}
	free(argv[5]);
	timed_free(t);
}

static void commands_get_the_signal_mask_of_the_caller(void **state)
{
	char *argv[] = {(char[]){"grep"}, (char[]){"^SigBlk:.*0000000000000200$"}, (char[]){"/proc/self/status"}, NULL};
	struct timed *t;
	struct timed_result r;
	struct error err;
	sigset_t before, some;

	(void)state;
	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	sigprocmask(SIG_SETMASK, &some, &before);
	t = new_starter();
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(run(t, argv, 0, &r, &err), 0); /* not by a shell: some clear the mask themselves */
	assert_int_equal(r.status, 0);
	timed_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_time_is_that_of_the_command),
		cmocka_unit_test(statuses_and_signals_are_the_commands_own),
		cmocka_unit_test(cpu_time_and_faults_are_counted),
		cmocka_unit_test(the_peak_is_the_commands_and_not_that_of_a_big_parent),
		cmocka_unit_test(a_command_that_is_not_there_is_named),
		cmocka_unit_test(a_timeout_ends_the_whole_group),
		cmocka_unit_test(a_signal_that_sets_stop_ends_the_command),
		cmocka_unit_test(words_variables_and_descriptors_arrive),
		cmocka_unit_test(commands_get_the_signal_mask_of_the_caller),
	};

	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
