#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "scratch.h"
#include "launching.h"

#define RANDOM_BYTES (3u << 20)

/* Writes a file of bytes of every kind. */
static const char *make_noise(const char *name, uint64_t seed)
{
	const char *path = scratch_path(name);
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	for (unsigned i = 0; i < RANDOM_BYTES / 8; i++) {
		seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
		assert_int_equal(fwrite(&seed, sizeof seed, 1, f), 1);
	}
	assert_int_equal(fclose(f), 0);
	return path;
}

struct coverage {
	uint64_t end[3];
	int64_t t[3];
	int64_t begun;
	size_t count;
	bool whole;
};

static void check_chunk(void *context, const void *payload)
{
	struct coverage *c = context;
	struct wire_chunk chunk;

	memcpy(&chunk, payload, sizeof chunk);
	c->whole = c->whole && chunk.offset == c->end[chunk.stream] && chunk.t_first >= c->t[chunk.stream] &&
		   chunk.t_last >= chunk.t_first;
	c->end[chunk.stream] += chunk.length;
	c->t[chunk.stream] = chunk.t_last;
	if (!c->begun)
		c->begun = chunk.t_first;
	c->count++;
}

static void both_streams_pass_unchanged_and_are_kept_with_their_times(void **state)
{
	struct start s = {.argv = {"sh", "-c", "cat \"$1\" & cat \"$2\" >&2; wait", "sh", make_noise("a", 1),
				   make_noise("b", 2)}};
	struct coverage c = {.whole = true};
	struct buf segment;
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_int_equal(r.told.went, 0);
	assert_int_equal(r.told.status, 0);
	assert_int_equal(r.out.length, RANDOM_BYTES);
	launching_expect_file("a", &r.out);
	launching_expect_file("b", &r.err);
	launching_expect_file("stdout.log", &r.out);
	launching_expect_file("stderr.log", &r.err);
	launching_file("output.seg", &segment);
	launching_records(&segment, WIRE_CHUNK, check_chunk, &c);
	assert_true(c.whole);
	assert_int_equal(c.end[WIRE_STDOUT], RANDOM_BYTES);
	assert_int_equal(c.end[WIRE_STDERR], RANDOM_BYTES);
	assert_int_equal(launching_records(&segment, WIRE_START, NULL, NULL), 1);
	assert_int_equal(launching_records(&segment, WIRE_END, NULL, NULL), 1);
	assert_int_equal(((const struct segment_header *)segment.text)->closed, 1);
	buf_release(&segment);
	launching_release(&r);
}

static void a_flood_of_single_bytes_makes_few_records(void **state)
{
	struct start s = {.argv = {"dd", "if=/dev/zero", "bs=1", "count=300000", "status=none"}};
	struct coverage c = {.whole = true};
	struct buf segment;
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_int_equal(r.out.length, 300000);
	launching_file("output.seg", &segment);
	launching_records(&segment, WIRE_CHUNK, check_chunk, &c);
	assert_true(c.whole);
	assert_int_equal(c.end[WIRE_STDOUT], 300000);
	/* At most two each millisecond; and a few at the end, where nothing waits any more. */
	assert_true(c.count <= (size_t)(2 * (c.t[WIRE_STDOUT] - c.begun) / 1000000) + 300);
	buf_release(&segment);
	launching_release(&r);
}

static void stderr_flows_while_nobody_reads_stdout(void **state)
{
	struct start s = {
		.argv = {"sh", "-c", "cat \"$1\" & cat \"$2\" >&2; wait", "sh", make_noise("a", 3), make_noise("b", 4)},
		.stderr_first = RANDOM_BYTES};
	struct result r;

	(void)state;
	launch(&s, &r);
	launching_expect_file("a", &r.out);
	launching_expect_file("b", &r.err);
	launching_release(&r);
}

static void a_command_whose_reader_left_gets_sigpipe(void **state)
{
	struct start s = {.argv = {"yes"}, .stdout_not_read = true};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_true(WIFSIGNALED(r.told.status));
	assert_int_equal(WTERMSIG(r.told.status), SIGPIPE);
	assert_int_equal(r.told.trouble_count, 0);
	launching_release(&r);
}

static void the_first_write_after_the_reader_left_already_fails(void **state)
{
	/* It sleeps first, so that the helper is idle when the reader leaves: nothing of ours takes in the only line.
	 */
	struct start s = {.argv = {"sh", "-c", "trap '' PIPE; sleep 0.3; echo x 2>/dev/null || exit 9"},
			  .stdout_not_read = true};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_true(WIFEXITED(r.told.status));
	assert_int_equal(WEXITSTATUS(r.told.status), 9);
	launching_release(&r);
}

static void a_full_log_is_given_up_and_the_output_goes_on(void **state)
{
	struct start s = {.argv = {"sh", "-c", "cat \"$1\"; exit 5", "sh", make_noise("a", 5)},
			  .stdout_log = "/dev/full"};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_int_equal(WEXITSTATUS(r.told.status), 5);
	launching_expect_file("a", &r.out);
	assert_int_equal(r.told.trouble_count, 2);
	assert_string_equal(r.told.troubles[0], "full: stdout from byte 0 on is not kept: No space left on device.");
	assert_string_equal(r.told.troubles[1], "full: 3145728 bytes of stdout are missing.");
	launching_release(&r);
}

static void a_log_that_cannot_be_made_is_told_and_the_command_runs(void **state)
{
	struct start s = {.argv = {"echo", "hello"}, .stdout_log = "/nonexistent/stdout.log"};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_int_equal(r.told.status, 0);
	assert_string_equal(r.out.text, "hello\n");
	assert_string_equal(r.told.troubles[0], "stdout.log: stdout is not kept: No such file or directory.");
	launching_release(&r);
}

static void limit_files(void)
{
	struct rlimit limit = {.rlim_cur = 300000, .rlim_max = 300000};

	setrlimit(RLIMIT_FSIZE, &limit);
}

static void a_limit_on_file_sizes_costs_the_log_only(void **state)
{
	struct start s = {.argv = {"cat", make_noise("a", 6)}, .before = limit_files};
	struct result r;
	struct stat st;

	(void)state;
	launch(&s, &r);
	assert_int_equal(r.told.status, 0);
	assert_false(r.told.gone);
	launching_expect_file("a", &r.out);
	assert_int_equal(stat(scratch_path("stdout.log"), &st), 0);
	assert_int_equal(st.st_size, 300000);
	assert_non_null(
		strstr(r.told.troubles[0], "stdout.log: stdout from byte 300000 on is not kept: File too large."));
	launching_release(&r);
}

static void fill_both(void)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	dup2(fd, STDOUT_FILENO);
	close(fd);
	fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	dup2(fd, STDERR_FILENO);
	close(fd);
}

static void a_full_disk_at_the_callers_stdout_is_told_and_does_not_end_the_command(void **state)
{
	struct start s = {.argv = {"sh", "-c", "echo hello; sleep 0.1; echo hello; exit 4"},
			  .stdout_path = "/dev/full"};
	struct buf expected;
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_int_equal(WEXITSTATUS(r.told.status), 4);
	assert_string_equal(r.told.troubles[0],
			    "Some of the command's stdout did not reach the caller: No space left on device.");
	assert_string_equal(r.told.troubles[1], "12 bytes of the command's stdout did not reach the caller.");
	assert_int_equal(r.told.undelivered, 12);
	buf_init(&expected);
	buf_puts(&expected, "hello\nhello\n");
	launching_expect_file("stdout.log", &expected);
	buf_release(&expected);
	launching_release(&r);
}

static void what_all_streams_could_not_deliver_is_added_up(void **state)
{
	struct start s = {
		.argv = {"sh", "-c", "echo hello; echo err >&2"}, .before = fill_both, .stdout_not_read = true};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_int_equal(r.told.status, 0);
	assert_int_equal(r.told.undelivered, 10);
	launching_release(&r);
}

static void a_reader_that_left_is_nothing_undelivered(void **state)
{
	struct start s = {.argv = {"yes"}, .stdout_not_read = true};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_int_equal(r.told.undelivered, 0);
	launching_release(&r);
}

static void one_way_out(void)
{
	dup2(STDOUT_FILENO, STDERR_FILENO);
}

/* As in containers that do not let it through. */
static void one_way_out_without_kcmp(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof steps / sizeof *steps, .filter = steps};

	one_way_out();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		fprintf(stderr, "kcmp could not be forbidden\n");
}

static void one_file_for_both_streams_keeps_their_order(void **state)
{
	static const struct {
		void (*before)(void);
		const char *path; /* NULL: a pipe */
	} cases[] = {{one_way_out, NULL},
		     {one_way_out, "log"},
		     {one_way_out_without_kcmp, NULL},
		     {one_way_out_without_kcmp, "log"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *path = cases[i].path ? scratch_path(cases[i].path) : NULL;
		struct start s = {.argv = {"sh", "-c", "for i in 1 2 3; do echo o$i; echo e$i >&2; done; printf e >&2"},
				  .before = cases[i].before,
				  .stdout_path = path};
		struct coverage c = {.whole = true};
		struct buf expected, segment;
		struct result r;

		launch(&s, &r);
		buf_init(&expected);
		buf_puts(&expected, "o1\ne1\no2\ne2\no3\ne3\ne");
		launching_expect_file("terminal.log", &expected);
		if (path)
			launching_expect_file("log", &expected);
		else
			assert_string_equal(r.out.text, expected.text);
		assert_int_equal(access(scratch_path("stdout.log"), F_OK), -1);
		assert_false(r.told.line_start);
		launching_file("output.seg", &segment);
		launching_records(&segment, WIRE_CHUNK, check_chunk, &c);
		assert_true(c.whole);
		assert_int_equal(c.end[WIRE_TERMINAL], expected.length);
		buf_release(&segment);
		buf_release(&expected);
		launching_release(&r);
		unlink(scratch_path("output.seg"));
		unlink(scratch_path("log"));
	}
}

static void with_summary_only_one_file_for_both_gets_stderr_alone(void **state)
{
	struct start s = {.argv = {"sh", "-c", "echo out; echo err >&2"}, .before = one_way_out, .summary_only = true};
	struct buf expected;
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_string_equal(r.out.text, "err\n");
	buf_init(&expected);
	buf_puts(&expected, "out\n");
	launching_expect_file("stdout.log", &expected);
	buf_release(&expected);
	launching_release(&r);
}

static void a_file_at_the_callers_stdout_is_appended_to(void **state)
{
	const char *path = scratch_path("file");
	struct start s = {.argv = {"echo", "second"}, .stdout_path = path};
	struct buf expected;
	struct result r;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	(void)state;
	assert_int_equal(write(fd, "first\n", 6), 6);
	close(fd);
	launch(&s, &r);
	buf_init(&expected);
	buf_puts(&expected, "first\nsecond\n");
	launching_expect_file("file", &expected);
	buf_release(&expected);
	launching_release(&r);
}

static void with_summary_only_stdout_goes_to_its_log_only(void **state)
{
	struct start s = {.argv = {"sh", "-c", "echo out; echo err >&2"}, .summary_only = true};
	struct buf expected;
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_int_equal(r.out.length, 0);
	assert_string_equal(r.err.text, "err\n");
	assert_true(r.told.line_start);
	buf_init(&expected);
	buf_puts(&expected, "out\n");
	launching_expect_file("stdout.log", &expected);
	buf_release(&expected);
	launching_release(&r);
}

static void the_end_of_the_last_line_is_told(void **state)
{
	static const struct {
		const char *script;
		bool line_start;
	} cases[] = {{"printf 'a\\n'", true}, {"printf a", false}, {":", true}, {"printf 'a\\n'; printf b >&2", true}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct start s = {.argv = {"sh", "-c", cases[i].script}};
		struct result r;

		launch(&s, &r);
		assert_true(r.told.drained);
		assert_false(r.told.drained_before_exit);
		assert_int_equal(r.told.line_start, cases[i].line_start);
		launching_release(&r);
		unlink(scratch_path("output.seg"));
	}
}

static void arguments_pass_whatever_they_hold(void **state)
{
	struct start s = {.argv = {"sh", "-c", "for a; do printf '<%s>' \"$a\"; done", "sh", "", "two words",
				   "line\nbreak", "*", "\xff\xfe", "'\""}};
	struct result r;

	(void)state;
	launch(&s, &r);
	assert_string_equal(r.out.text, "<><two words><line\nbreak><*><\xff\xfe><'\">");
	launching_release(&r);
}

static void many_readable_bytes_are_drained_before_assay_is_told(void **state)
{
	struct start s = {.argv = {"sh", "-c", "head -c 200000 /dev/zero"}, .no_wait_for_close = true};
	struct result r;
	struct stat st;

	(void)state;
	launch(&s, &r);
	assert_true(r.told.drained);
	assert_int_equal(stat(scratch_path("stdout.log"), &st), 0);
	assert_int_equal(st.st_size, 200000);
	launching_release(&r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_streams_pass_unchanged_and_are_kept_with_their_times),
		TEST(a_flood_of_single_bytes_makes_few_records),
		TEST(stderr_flows_while_nobody_reads_stdout),
		TEST(a_command_whose_reader_left_gets_sigpipe),
		TEST(the_first_write_after_the_reader_left_already_fails),
		TEST(a_full_log_is_given_up_and_the_output_goes_on),
		TEST(a_log_that_cannot_be_made_is_told_and_the_command_runs),
		TEST(a_limit_on_file_sizes_costs_the_log_only),
		TEST(a_full_disk_at_the_callers_stdout_is_told_and_does_not_end_the_command),
		TEST(what_all_streams_could_not_deliver_is_added_up),
		TEST(a_reader_that_left_is_nothing_undelivered),
		TEST(one_file_for_both_streams_keeps_their_order),
		TEST(with_summary_only_one_file_for_both_gets_stderr_alone),
		TEST(a_file_at_the_callers_stdout_is_appended_to),
		TEST(with_summary_only_stdout_goes_to_its_log_only),
		TEST(the_end_of_the_last_line_is_told),
		TEST(arguments_pass_whatever_they_hold),
		TEST(many_readable_bytes_are_drained_before_assay_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
