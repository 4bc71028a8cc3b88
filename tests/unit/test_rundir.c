#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/fs.h"
#include "need.h"
#include "scratch.h"
#include "store/rundir.h"

/* 2026-11-29T17:15:41 UTC */
#define WALL_NS (INT64_C(1795972541) * 1000000000 + 999999999)

static int enter_scratch(void **state)
{
	setenv("TZ", "UTC", 1);
	tzset();
	return scratch_make(state) == 0 ? chdir(scratch_dir) : -1;
}

static int leave_scratch(void **state)
{
	return chdir("/") == 0 ? scratch_remove(state) : -1;
}

static void assert_ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	if (length < tail || strcmp(text + length - tail, end) != 0)
		fail_msg("\"%s\" does not end with \"%s\"", text, end);
}

static void write_file(const char *path)
{
	struct error err;

	assert_int_equal(fs_write_file(path, "{}", 2, &err), 0);
}

static void the_default_name_is_the_local_time_and_the_label(void **state)
{
	struct rundir d;
	struct error err;

	(void)state;
	assert_int_equal(rundir_create(&d, NULL, "my test/1", WALL_NS, &err), RUNDIR_OK);
	assert_ends_with(d.path, "/assay-runs/2026-11-29T17-15-41-my_test_1");
	assert_int_equal(d.path[0], '/');
	assert_true(fs_is_dir(d.path));
	rundir_release(&d);
	setenv("TZ", "UTC-05:30", 1);
	tzset();
	assert_int_equal(rundir_create(&d, NULL, NULL, WALL_NS, &err), RUNDIR_OK);
	assert_ends_with(d.path, "/assay-runs/2026-11-29T22-45-41");
	rundir_release(&d);
}

static void every_file_lies_below_the_folder(void **state)
{
	struct rundir d;
	struct error err;

	(void)state;
	assert_int_equal(rundir_create(&d, "here", NULL, WALL_NS, &err), RUNDIR_OK);
	assert_ends_with(d.path, "/here");
	assert_ends_with(d.run_json, "/here/run.json");
	assert_ends_with(d.begin_json, "/here/begin.json");
	assert_ends_with(d.timeline_h5, "/here/timeline.h5");
	assert_ends_with(d.stdout_log, "/here/stdout.log");
	assert_ends_with(d.stderr_log, "/here/stderr.log");
	assert_ends_with(d.terminal_log, "/here/terminal.log");
	assert_ends_with(d.markers_log, "/here/markers.log");
	assert_ends_with(d.monitor_seg, "/here/segments/monitor.seg");
	assert_ends_with(d.output_seg, "/here/segments/output.seg");
	assert_true(fs_is_dir(d.segments));
	rundir_release(&d);
	rundir_release(&d);
}

static void runs_of_the_same_second_get_numbers(void **state)
{
	static const char *const ends[] = {"-x", "-x-2", "-x-3"};
	struct error err;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct rundir d;

		assert_int_equal(rundir_create(&d, NULL, "x", WALL_NS, &err), RUNDIR_OK);
		assert_ends_with(d.path, ends[i]);
		rundir_release(&d);
	}
}

static void *create_many(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++) {
		struct rundir d;
		struct error err;

		if (rundir_create(&d, NULL, "x", WALL_NS, &err) != RUNDIR_OK)
			return (void *)"a folder could not be made";
		/* Whoever finds this file here shares the folder with another run. */
		if (fs_exists(d.run_json) || fs_write_file(d.run_json, "{}", 2, &err) < 0)
			return (void *)"two runs got one folder";
		rundir_release(&d);
	}
	return NULL;
}

static void runs_that_start_together_never_share_a_folder(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, create_many, NULL), 0);
	for (size_t i = 0; i < 4; i++) {
		void *trouble;

		assert_int_equal(pthread_join(threads[i], &trouble), 0);
		if (trouble)
			fail_msg("%s", (const char *)trouble);
	}
	assert_true(fs_is_dir("assay-runs/2026-11-29T17-15-41-x-80"));
	assert_false(fs_exists("assay-runs/2026-11-29T17-15-41-x-81"));
}

static void an_empty_folder_is_taken_and_a_full_one_never(void **state)
{
	struct rundir d = {0};
	struct error err;

	(void)state;
	assert_int_equal(mkdir("there", 0777), 0);
	assert_int_equal(rundir_create(&d, "there", NULL, WALL_NS, &err), RUNDIR_OK);
	rundir_release(&d);
	assert_int_equal(rundir_create(&d, "there", NULL, WALL_NS, &err), RUNDIR_IN_USE);
	assert_string_equal(err.text, "there: exists and is not empty; a run directory is never overwritten");
	assert_null(d.path);
	write_file("file");
	assert_int_equal(rundir_create(&d, "file", NULL, WALL_NS, &err), RUNDIR_IN_USE);
	assert_string_equal(err.text, "file: exists and is not a folder; a run directory is never written over it");
	assert_int_equal(rundir_create(&d, "", NULL, WALL_NS, &err), RUNDIR_IN_USE);
	assert_int_equal(rundir_create(&d, "a/b//c/", NULL, WALL_NS, &err), RUNDIR_OK);
	assert_true(fs_is_dir("a/b/c/segments"));
	rundir_release(&d);
}

static void a_place_that_cannot_be_used_is_named_and_is_not_the_users_error(void **state)
{
	struct rundir d = {0};
	struct error err;
	char longest[400];

	(void)state;
	write_file("file");
	assert_int_equal(rundir_create(&d, "file/x", NULL, WALL_NS, &err), RUNDIR_UNUSABLE);
	assert_non_null(strstr(err.text, "file"));
	memset(longest, 'n', sizeof longest);
	longest[sizeof longest - 1] = '\0';
	assert_int_equal(rundir_create(&d, longest, NULL, WALL_NS, &err), RUNDIR_UNUSABLE);
	assert_non_null(strstr(err.text, strerror(ENAMETOOLONG)));
	assert_int_equal(rundir_create(&d, "/proc/x", NULL, WALL_NS, &err), RUNDIR_UNUSABLE);
	write_file("assay-runs");
	assert_int_equal(rundir_create(&d, NULL, "x", WALL_NS, &err), RUNDIR_UNUSABLE);
	assert_non_null(strstr(err.text, "assay-runs"));
	assert_null(d.path);
}

static int create_as_nobody(const char *out)
{
	struct rundir d = {0};
	struct error err;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(99);
		_exit(-rundir_create(&d, out, NULL, WALL_NS, &err));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void a_folder_of_somebody_else_is_unusable(void **state)
{
	(void)state;
	assert_int_equal(chmod(".", 0755), 0);
	assert_int_equal(mkdir("closed", 0555), 0);
	assert_int_equal(chmod("closed", 0555), 0);
	assert_int_equal(create_as_nobody("closed"), RUNDIR_UNUSABLE);
	assert_int_equal(create_as_nobody("closed/x"), RUNDIR_UNUSABLE);
	assert_false(fs_exists("closed/x"));
}

#define CANNOT_MOUNT 77

/* Fills a tmpfs to its last inode: "one" still fits, what is below it does not. */
static int create_on_a_full_disk(void)
{
	struct rundir d = {0};
	struct error err;
	int problem;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "disk", "tmpfs", 0, "size=1m,nr_inodes=3") < 0 || chdir("disk") < 0)
		return CANNOT_MOUNT;
	problem = rundir_create(&d, NULL, "x", WALL_NS, &err);
	if (problem != RUNDIR_UNUSABLE || !strstr(err.text, strerror(ENOSPC)))
		return 1;
	return fs_dir_is_empty("assay-runs", &err) == 1 ? 0 : 2;
}

static void a_full_disk_is_unusable_and_nothing_is_left_there(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(mkdir("disk", 0777), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(create_on_a_full_disk());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	need("mount", status != CANNOT_MOUNT << 8, "a small tmpfs cannot be mounted by this user");
	assert_int_equal(status, 0);
}

static void a_folder_or_its_run_json_opens(void **state)
{
	static const char *const names[] = {"there", "there/", "there/run.json", "./there/run.json"};
	struct rundir d;
	struct error err;

	(void)state;
	assert_int_equal(rundir_create(&d, "there", NULL, WALL_NS, &err), RUNDIR_OK);
	write_file(d.run_json);
	rundir_release(&d);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		assert_int_equal(rundir_open(&d, names[i], &err), 0);
		assert_true(fs_exists(d.run_json));
		assert_ends_with(d.run_json, "/there/run.json");
		rundir_release(&d);
	}
	assert_int_equal(chdir("there"), 0);
	assert_int_equal(rundir_open(&d, "run.json", &err), 0);
	assert_true(fs_exists(d.run_json));
	rundir_release(&d);
}

static void what_is_no_run_directory_does_not_open(void **state)
{
	struct rundir d = {0};
	struct error err;

	(void)state;
	assert_int_equal(rundir_open(&d, "none", &err), -1);
	assert_string_equal(err.text, "none: No such file or directory");
	write_file("other.json");
	assert_int_equal(rundir_open(&d, "other.json", &err), -1);
	assert_string_equal(err.text, "other.json: neither a run directory nor its run.json");
	assert_null(d.path);
}

static void a_tag_is_a_harmless_file_name(void **state)
{
	static const struct {
		const char *label, *tag;
	} cases[] = {
		{"", ""},
		{"plain-1.2_x", "plain-1.2_x"},
		{"two  blanks", "two_blanks"},
		{"../../etc", ".._.._etc"},
		{"\xc3\xa4\xff\n", "_"},
		{"a/\tb", "a_b"},
		{"1234567890123456789012345678901234567890123456789012345678901234567890",
		 "123456789012345678901234567890123456789012345678901234567890"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *tag = rundir_tag(cases[i].label);

		assert_string_equal(tag, cases[i].tag);
		free(tag);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
	const struct CMUnitTest tests[] = {
		TEST(the_default_name_is_the_local_time_and_the_label),
		TEST(every_file_lies_below_the_folder),
		TEST(runs_of_the_same_second_get_numbers),
		TEST(runs_that_start_together_never_share_a_folder),
		TEST(an_empty_folder_is_taken_and_a_full_one_never),
		TEST(a_place_that_cannot_be_used_is_named_and_is_not_the_users_error),
		TEST(a_folder_of_somebody_else_is_unusable),
		TEST(a_full_disk_is_unusable_and_nothing_is_left_there),
		TEST(a_folder_or_its_run_json_opens),
		TEST(what_is_no_run_directory_does_not_open),
		TEST(a_tag_is_a_harmless_file_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
