#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "need.h"
#include "scratch.h"
#include "launching.h"
#include "base/clock.h"

#define ORPHANS 3000

static const char *make_file(const char *name, const char *text, mode_t mode)
{
	const char *path = scratch_path(name);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
	return path;
}

static void expect_refused(const char *command, int status, const char *sentence)
{
	struct start s = {.argv = {command}};
	struct result r;
	struct buf segment;

	launch(&s, &r);
	assert_int_equal(r.told.prepared, 0);
	assert_int_equal(r.told.went, status);
	assert_string_equal(r.told.err.text, sentence);
	assert_int_equal(r.out.length + r.err.length, 0);
	launching_file("output.seg", &segment);
	assert_int_equal(launching_records(&segment, WIRE_START, NULL, NULL), 0);
	assert_int_equal(launching_records(&segment, WIRE_EXIT, NULL, NULL), 0);
	buf_release(&segment);
	unlink(scratch_path("output.seg"));
	launching_release(&r);
}

static void a_command_that_cannot_be_run_is_named_with_the_reason(void **state)
{
	char sentence[1024];
	const char *path;

	(void)state;
	expect_refused("no-such-command", 127, "no-such-command: command not found");
	expect_refused("/nonexistent/x", 127, "/nonexistent/x: command not found");
	expect_refused("", 127, ": command not found");
	expect_refused("/tmp", 126, "/tmp: is a directory");
	expect_refused("/etc/passwd/x", 126, "/etc/passwd/x: Not a directory");

	path = make_file("plain", "hello\n", 0644);
	snprintf(sentence, sizeof sentence, "%s: permission denied", path);
	expect_refused(path, 126, sentence);

	path = make_file("script", "#! /nonexistent/interpreter -x\n", 0755);
	snprintf(sentence, sizeof sentence, "%s: bad interpreter: /nonexistent/interpreter: No such file or directory",
		 path);
	expect_refused(path, 126, sentence);
}

static void a_script_without_a_first_line_is_run_by_the_shell(void **state)
{
	struct start s = {.argv = {make_file("script", "echo hello\n", 0755)}};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_int_equal(r.told.went, 0);
	assert_string_equal(r.out.text, "hello\n");
	launching_release(&r);
}

static void the_path_of_the_new_environment_finds_the_command(void **state)
{
	char path[600], *environment[] = {path, NULL};
	struct start s = {.argv = {"only-here"}, .environment = environment};
	struct result r;

	(void)state;
	snprintf(path, sizeof path, "PATH=/nonexistent:%s", scratch_dir);
	make_file("only-here", "#!/bin/sh\necho found\n", 0755);
	launch(&s, &r);
	assert_int_equal(r.told.went, 0);
	assert_string_equal(r.out.text, "found\n");
	launching_release(&r);
}

static void the_status_is_that_of_wait(void **state)
{
	struct start exits = {.argv = {"sh", "-c", "exit 7"}}, dies = {.argv = {"sh", "-c", "kill -9 $$"}};
	struct result r;

	(void)state;
	launch(&exits, &r);
	assert_int_equal(r.told.status, 7 << 8);
	assert_true(r.told.childless);
	launching_release(&r);
	unlink(scratch_path("output.seg"));
	launch(&dies, &r);
	assert_int_equal(r.told.status, SIGKILL);
	launching_release(&r);
}

static void leave_the_socket_alone_for_a_while(struct launch *l, pid_t command)
{
	(void)l, (void)command;
	clock_sleep_ns(NS_PER_S);
}

static void count_orphan(void *context, const void *payload)
{
	struct wire_exit e;

	memcpy(&e, payload, sizeof e);
	*(int *)context += !e.is_command && e.status == 0;
}

static void thousands_of_orphans_are_all_reaped_though_assay_does_not_listen(void **state)
{
	char path[600], count[16];
	struct start s = {.argv = {path, count}, .started = leave_the_socket_alone_for_a_while};
	struct buf segment;
	struct result r;
	int orphans = 0;

	(void)state;
	snprintf(path, sizeof path, "%s/target_orphans", getenv("ASSAY_TEST_TARGETS"));
	snprintf(count, sizeof count, "%d", ORPHANS);
	launch(&s, &r);
	assert_string_equal(r.err.text, "");
	assert_int_equal(r.told.status, 0);
	launching_file("output.seg", &segment);
	launching_records(&segment, WIRE_EXIT, count_orphan, &orphans);
	assert_int_equal(orphans, ORPHANS);
	buf_release(&segment);
	launching_release(&r);
}

static void a_descendant_that_holds_stdout_keeps_it_open_and_assay_may_leave(void **state)
{
	struct start s = {.argv = {"sh", "-c", "(sleep 0.5; echo late) & echo early"}, .no_wait_for_close = true};
	struct buf segment;
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_true(r.told.drained);
	assert_false(r.told.closed);
	assert_string_equal(r.out.text, "early\nlate\n"); /* read to the end of the file */
	launching_file("stdout.log", &segment);
	assert_int_equal(segment.length, 11);
	buf_release(&segment);
	launching_release(&r);
}

static bool kill_helper_when_drained(struct launch *l, const struct launch_event *e)
{
	/* The flood would go on for ever. */
	if (e->type == LAUNCH_DRAINED)
		kill(launch_helper_pid(l), SIGKILL);
	return false;
}

static void a_descendant_that_never_rests_does_not_keep_the_command_from_being_drained(void **state)
{
	struct start s = {
		.argv = {"sh", "-c", "yes & sleep 0.2"}, .each = kill_helper_when_drained, .no_wait_for_close = true};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_true(r.told.drained);
	launching_release(&r);
}

static void stop_command(struct launch *l, pid_t command)
{
	(void)l;
	kill(command, SIGSTOP);
}

static bool stop_as_the_command(struct launch *l, const struct launch_event *e)
{
	(void)l;
	if (e->type == LAUNCH_STOPPED)
		launch_stop_self(e->signo);
	return false;
}

/* The command is woken by a child of its own, so that assay can know of it through the helper only. */
static void assay_stops_and_wakes_with_the_command(void **state)
{
	struct start s = {
		.argv = {"sh", "-c",
			 "while sleep 0.2; do kill -CONT $$ || exit; done 2>/dev/null & "
			 "for i in 1 2 3 4 5 6 7 8; do kill -STOP $$; sleep 0.05; done; kill $!; exit 3"},
		.each = stop_as_the_command};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_int_equal(r.told.status, 3 << 8);
	assert_true(r.told.stops >= 1); /* one that is over before assay looks is not told */
	launching_release(&r);
}

static void kill_stopped_command(struct launch *l, pid_t command)
{
	stop_command(l, command);
	if (fork() == 0) {
		clock_sleep_ns(NS_PER_S / 10);
		kill(command, SIGKILL);
		_exit(0);
	}
}

static void assay_wakes_when_the_stopped_command_is_killed(void **state)
{
	struct start s = {.argv = {"sleep", "60"}, .started = kill_stopped_command, .each = stop_as_the_command};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_int_equal(r.told.status, SIGKILL);
	launching_release(&r);
}

#define TIMEOUT_NS (NS_PER_S / 2)

static void wait_until_stopped(pid_t pid)
{
	char path[64], text[256] = "";

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	for (;;) {
		FILE *f = fopen(path, "re");
		const char *state = f && fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;

		if (f)
			fclose(f);
		if (!state || state[2] == 'T')
			break;
		clock_sleep_ns(NS_PER_MS);
	}
	clock_sleep_ns(NS_PER_S / 20); /* for the helper to hear of it */
}

/* Stops once as the command does, which only the helper can end, and wakes the command twice. */
static void outlast_two_stops(struct launch *l, pid_t command)
{
	int64_t end = clock_mono_ns() + TIMEOUT_NS;
	struct launch_event e;

	make_file("go", "", 0644);
	wait_until_stopped(command);
	while (clock_mono_ns() < end)
		if (launch_next(l, &e, NULL) > 0 && e.type == LAUNCH_STOPPED)
			launch_stop_self(e.signo);
	kill(command, SIGCONT);
	wait_until_stopped(command);
	kill(command, SIGCONT);
}

static void assay_is_woken_at_the_timeout_and_not_stopped_again(void **state)
{
	struct start s = {.argv = {"sh", "-c",
				   "until [ -e \"$1\" ]; do sleep 0.01; done; kill -STOP $$; kill -STOP $$; exit 3",
				   "sh", scratch_path("go")},
			  .timeout_ns = TIMEOUT_NS,
			  .started = outlast_two_stops};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_int_equal(r.told.status, 3 << 8);
	assert_int_equal(r.told.stops, 0);
	launching_release(&r);
}

static void stop_before_exec(pid_t command)
{
	kill(command, SIGSTOP);
}

/* It comes through between the time that the command's process tells and its exec. */
static void stop_just_before_exec(pid_t command)
{
	kill(command, SIGTSTP);
}

static void lead_a_group(void)
{
	setpgid(0, 0); /* whose leader has its parent in the session: it can be stopped as by a terminal */
}

static void wake_command(struct launch *l, pid_t command)
{
	(void)l;
	kill(command, SIGCONT);
}

static void at_the_timeout_a_command_that_is_stopped_before_its_exec_counts_as_started(void **state)
{
	static const struct {
		void (*prepared)(pid_t command);
		const char *command;
		int status;
	} cases[] = {{stop_before_exec, "false", 1},
		     {stop_just_before_exec, "false", 1},
		     {stop_before_exec, "no-such-command", 127}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct start s = {.argv = {cases[i].command},
				  .timeout_ns = NS_PER_S / 10,
				  .before = lead_a_group,
				  .prepared = cases[i].prepared,
				  .started = wake_command};
		struct buf segment;
		struct result r;

		launch(&s, &r);
		assert_int_equal(r.told.went, 0);
		assert_int_equal(r.told.status, cases[i].status << 8);
		launching_file("output.seg", &segment);
		assert_int_equal(launching_records(&segment, WIRE_START, NULL, NULL), 1);
		assert_int_equal(launching_records(&segment, WIRE_EXIT, NULL, NULL), 1);
		buf_release(&segment);
		launching_release(&r);
		unlink(scratch_path("output.seg"));
	}
}

static void kill_helper(struct launch *l, pid_t command)
{
	kill(launch_helper_pid(l), SIGKILL);
	kill(command, SIGKILL);
}

static void the_death_of_the_helper_is_told(void **state)
{
	struct start s = {.argv = {"sleep", "60"}, .started = kill_helper};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_true(r.told.gone);
	assert_false(r.told.ended);
	launching_release(&r);
}

static void every_signal_to_the_helper(struct launch *l, pid_t command)
{
	(void)command;
	for (int signo = 1; signo <= SIGRTMAX; signo++)
		if (signo != SIGKILL && signo != SIGSTOP && signo != 32 && signo != 33)
			kill(launch_helper_pid(l), signo);
}

static void no_signal_but_kill_ends_the_helper(void **state)
{
	struct start s = {.argv = {"sh", "-c", "sleep 0.3; echo hello"}, .started = every_signal_to_the_helper};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_false(r.told.gone);
	assert_int_equal(r.told.status, 0);
	assert_string_equal(r.out.text, "hello\n");
	launching_release(&r);
}

static void ignore_children(void)
{
	signal(SIGCHLD, SIG_IGN);
}

static void a_caller_that_ignores_sigchld_gets_the_status_and_the_command_ignores_it_too(void **state)
{
	struct start s = {.argv = {"grep", "SigIgn", "/proc/self/status"}, .before = ignore_children};
	unsigned long long mask = 0;
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_true(r.told.ended);
	assert_int_equal(r.told.status, 0);
	assert_int_equal(sscanf(r.out.text, "SigIgn: %llx", &mask), 1);
	assert_true(mask & 1ull << (SIGCHLD - 1));
	assert_false(mask & 1ull << (SIGPIPE - 1));
	launching_release(&r);
}

static void die(struct launch *l, pid_t command)
{
	(void)l, (void)command;
	kill(getpid(), SIGKILL);
}

static void the_command_lives_on_when_assay_is_killed(void **state)
{
	struct start s = {.argv = {"sh", "-c", "sleep 0.3; echo late; exit 1"}, .started = die};
	int out[2], tell[2], status;
	struct buf got, segment;
	pid_t pid;

	(void)state;
	launching_pipe(out);
	launching_pipe(tell);
	pid = fork();
	if (pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		launching_act(&s, tell[1]);
	}
	close(out[1]), close(tell[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, SIGKILL);
	buf_init(&got);
	while (launching_read(out[0], &got))
		;
	buf_puts(&got, "");
	assert_string_equal(got.text, "late\n");
	/* The helper ends its segment after it has closed stdout. */
	for (bool closed = false; !closed;) {
		launching_file("output.seg", &segment);
		closed = ((const struct segment_header *)segment.text)->closed;
		if (closed)
			assert_int_equal(launching_records(&segment, WIRE_EXIT, NULL, NULL), 1);
		buf_release(&segment);
		clock_sleep_ns(NS_PER_MS);
	}
	launching_expect_file("stdout.log", &got);
	buf_release(&got);
	close(out[0]), close(tell[0]);
}

static void start_one_before(void)
{
	char *argv[] = {(char[]){"head"}, (char[]){"-c"}, (char[]){"4"}, NULL};
	struct launch_options o = {.argv = argv, .environment = environ, .more_to_come = true};
	struct start s = {.each = NULL};
	struct told t = {.prepared = -1};
	struct launch *l;
	int64_t begun;
	int input = open(scratch_path("input"), O_RDONLY | O_CLOEXEC);

	dup2(input, STDIN_FILENO);
	if (launch_block_signals(&t.err) >= 0 && launch_prepare(&o, &l, &t.command, &t.err) == 0 &&
	    launch_go(l, &begun, &t.err) == 0) {
		launching_follow(&s, l, &t);
		launch_free(l);
	}
	/* Its helper had nothing left to do, and is not left behind as a zombie. */
	if (waitpid(-1, NULL, WNOHANG) != -1)
		_exit(1);
}

static void a_later_command_finds_the_callers_stdin(void **state)
{
	struct start s = {.argv = {"cat"}, .before = start_one_before};
	struct result r;

	(void)state;
	make_file("input", "one\ntwo\n", 0644);
	launch(&s, &r);
	assert_int_equal(r.told.status, 0);
	assert_string_equal(r.out.text, "one\ntwo\n");
	launching_release(&r);
}

/* What reading it costs is counted too, and so is what a shell and the loader do. */
#define IO_SLACK 8192

static void expect_written(struct start *s, int64_t bytes)
{
	struct result r;

	launch(s, &r);
	assert_int_equal(r.told.status, 0);
	assert_in_range(r.told.exit.all_write_chars, bytes, bytes + IO_SLACK);
	assert_true(r.told.exit.all_read_chars >= bytes);
	assert_true(r.told.exit.all_write_calls > 0 && r.told.exit.all_read_calls > 0);
	launching_release(&r);
	unlink(scratch_path("output.seg"));
}

static void what_the_command_and_its_children_wrote_is_told_without_what_the_pumps_wrote(void **state)
{
	const char *to_file = "exec dd if=/dev/zero of=\"$1\" bs=65536 count=48 status=none";
	struct start children = {.argv = {"sh", "-c", "dd if=/dev/zero bs=65536 count=48 status=none | cat >\"$1\"",
					  "sh", scratch_path("children")}};
	struct start file = {.argv = {"sh", "-c", to_file, "sh", scratch_path("file")}};
	struct start pumped = {.argv = {"dd", "if=/dev/zero", "bs=65536", "count=800", "status=none"}};
	struct start both = {.argv = {"sh", "-c",
				      "dd if=/dev/zero bs=65536 count=400 status=none >&2 &"
				      "dd if=/dev/zero bs=65536 count=400 status=none; wait"}};

	(void)state;
	expect_written(&file, 48 * 65536);
	expect_written(&children, 2 * 48 * 65536);
	expect_written(&pumped, 800 * 65536);
	expect_written(&both, 800 * 65536);
}

/* As of somebody who is not root and has started assay by exec. */
static void become_nobody(void)
{
	if (chmod(scratch_dir, 0777) < 0 || setgid(65534) < 0 || setuid(65534) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
		_exit(1);
}

static void it_is_told_to_those_who_are_not_root_too(void **state)
{
	struct start s = {.argv = {"dd", "if=/dev/zero", "bs=65536", "count=800", "status=none"},
			  .before = become_nobody};

	(void)state;
	need("root", geteuid() == 0, "only root can become somebody else");
	expect_written(&s, 800 * 65536);
}

static void free_before_go(void)
{
	char *argv[] = {(char[]){"touch"}, (char[]){"started"}, NULL};
	char segment[512];
	struct launch_options o = {.argv = argv, .environment = environ, .output_seg = segment, .more_to_come = true};
	struct launch *l;
	struct error err;
	pid_t command;

	snprintf(segment, sizeof segment, "%s/never.seg", scratch_dir);
	if (chdir(scratch_dir) < 0 || launch_prepare(&o, &l, &command, &err) < 0)
		_exit(1);
	launch_free(l);
}

static void a_command_that_is_never_let_go_does_not_start(void **state)
{
	struct start s = {.argv = {"echo", "the next one"}, .before = free_before_go};
	struct buf segment;
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_string_equal(r.out.text, "the next one\n"); /* to the end of the file: nobody holds it any more */
	assert_int_not_equal(access(scratch_path("started"), F_OK), 0);
	launching_file("never.seg", &segment);
	assert_int_equal(launching_records(&segment, WIRE_START, NULL, NULL), 0);
	assert_int_equal(launching_records(&segment, WIRE_EXIT, NULL, NULL), 0);
	buf_release(&segment);
	launching_release(&r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_command_that_cannot_be_run_is_named_with_the_reason),
		TEST(a_script_without_a_first_line_is_run_by_the_shell),
		TEST(the_path_of_the_new_environment_finds_the_command),
		TEST(the_status_is_that_of_wait),
		TEST(thousands_of_orphans_are_all_reaped_though_assay_does_not_listen),
		TEST(a_descendant_that_holds_stdout_keeps_it_open_and_assay_may_leave),
		TEST(a_descendant_that_never_rests_does_not_keep_the_command_from_being_drained),
		TEST(assay_stops_and_wakes_with_the_command),
		TEST(assay_wakes_when_the_stopped_command_is_killed),
		TEST(assay_is_woken_at_the_timeout_and_not_stopped_again),
		TEST(at_the_timeout_a_command_that_is_stopped_before_its_exec_counts_as_started),
		TEST(the_death_of_the_helper_is_told),
		TEST(no_signal_but_kill_ends_the_helper),
		TEST(a_caller_that_ignores_sigchld_gets_the_status_and_the_command_ignores_it_too),
		TEST(the_command_lives_on_when_assay_is_killed),
		TEST(a_later_command_finds_the_callers_stdin),
		TEST(what_the_command_and_its_children_wrote_is_told_without_what_the_pumps_wrote),
		TEST(it_is_told_to_those_who_are_not_root_too),
		TEST(a_command_that_is_never_let_go_does_not_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
