#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <assay.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "descriptors.h"
#include "scratch.h"

static char text[1 << 20];

static int make_markers(void **state)
{
	int fd;

	if (scratch_make(state) != 0)
		return -1;
	fd = open(scratch_path("markers.log"), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	return fd >= 0 && close(fd) == 0 ? setenv("ASSAY_MARKERS", scratch_path("markers.log"), 1) : -1;
}

static const char *markers(void)
{
	FILE *f = fopen(scratch_path("markers.log"), "re");
	size_t length;

	assert_non_null(f);
	length = fread(text, 1, sizeof text - 1, f);
	text[length] = '\0';
	fclose(f);
	return text;
}

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int status_in_child(int (*test)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(test());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(WIFSIGNALED(status));
	return WEXITSTATUS(status);
}

static void a_mark_is_one_line_with_the_time_of_the_call(void **state)
{
	int64_t before = now(), ns;
	char name[64];

	(void)state;
	assert_int_equal(assay_mark("prefill"), 0);
	assert_int_equal(sscanf(markers(), "%" SCNd64 " %63[^\n]\n", &ns, name), 2);
	assert_string_equal(name, "prefill");
	assert_true(before <= ns && ns <= now());
	assert_int_equal(assay_mark("two words"), 0);
	assert_non_null(strstr(markers(), " prefill\n"));
	assert_non_null(strstr(text, " two words\n"));
}

static void outside_a_run_it_does_nothing_and_says_so(void **state)
{
	(void)state;
	unsetenv("ASSAY_MARKERS");
	assert_int_equal(assay_mark("load"), -1);
	assert_string_equal(assay_last_error(), "nothing is being recorded: ASSAY_MARKERS is not set");
	setenv("ASSAY_MARKERS", "", 1);
	assert_int_equal(assay_mark("load"), -1);
	assert_string_equal(markers(), "");
}

static void a_mark_needs_a_name(void **state)
{
	(void)state;
	assert_int_equal(assay_mark(NULL), -1);
	assert_string_equal(assay_last_error(), "a mark needs a name");
	assert_int_equal(assay_mark(""), -1);
	assert_string_equal(markers(), "");
}

static void a_name_stays_on_one_line_of_bounded_length(void **state)
{
	char name[10000], *line;

	(void)state;
	assert_int_equal(assay_mark("a\nb\r\nc"), 0);
	assert_non_null(strstr(markers(), " a b  c\n"));
	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = '\0';
	memcpy(name + 3999, "\xc3\xa4", 2);
	assert_int_equal(assay_mark(name), 0);
	line = strchr(strchr(markers(), '\n') + 1, ' ') + 1;
	assert_int_equal(strlen(line), 3999 + 1);
	assert_int_equal(line[3998], 'x');
}

static void a_folder_that_was_removed_does_not_come_back(void **state)
{
	(void)state;
	assert_int_equal(unlink(scratch_path("markers.log")), 0);
	assert_int_equal(assay_mark("load"), -1);
	assert_non_null(strstr(assay_last_error(), "/markers.log: No such file or directory"));
	assert_int_equal(access(scratch_path("markers.log"), F_OK), -1);
}

static void a_pipe_is_refused_without_waiting_or_signals(void **state)
{
	int reader;

	(void)state;
	assert_int_equal(mkfifo(scratch_path("fifo"), 0666), 0);
	setenv("ASSAY_MARKERS", scratch_path("fifo"), 1);
	assert_int_equal(assay_mark("load"), -1);
	reader = open(scratch_path("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	assert_int_equal(assay_mark("load"), -1);
	assert_non_null(strstr(assay_last_error(), "/fifo: ASSAY_MARKERS names something that is not a file"));
	close(reader);
}

static int mark_a_limited_file(void)
{
	struct rlimit limit = {.rlim_cur = 100, .rlim_max = RLIM_INFINITY};
	int marks = 0;

	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 99;
	while (assay_mark("twenty bytes of name") == 0)
		marks++;
	return marks;
}

static void a_limit_on_file_sizes_kills_nobody(void **state)
{
	int marks;

	(void)state;
	marks = status_in_child(mark_a_limited_file);
	assert_in_range(marks, 2, 4);
	assert_non_null(strstr(markers(), " twenty bytes of name\n"));
}

static int mark_without_descriptors(void)
{
	struct rlimit none = {0, 0};

	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	if (assay_mark("daemon") != 0)
		return 1;
	if (setrlimit(RLIMIT_NOFILE, &none) < 0)
		return 2;
	errno = EXDEV;
	if (assay_mark("no descriptor left") != -1 || !strstr(assay_last_error(), strerror(EMFILE)))
		return 3;
	return errno == EXDEV ? 0 : 4;
}

static void a_child_without_any_descriptor_marks_as_well(void **state)
{
	(void)state;
	assert_int_equal(assay_mark("before"), 0);
	assert_int_equal(status_in_child(mark_without_descriptors), 0);
	assert_int_equal(assay_mark("after"), 0);
	assert_non_null(strstr(markers(), " before\n"));
	assert_non_null(strstr(text, " daemon\n"));
	assert_non_null(strstr(text, " after\n"));
}

static void errno_and_descriptors_are_as_before(void **state)
{
	size_t before = open_descriptors();

	(void)state;
	errno = EXDEV;
	assert_int_equal(assay_mark("load"), 0);
	assert_int_equal(errno, EXDEV);
	setenv("ASSAY_MARKERS", "/nowhere/markers.log", 1);
	assert_int_equal(assay_mark("load"), -1);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(open_descriptors(), before);
}

#define THREADS 4
#define MARKS_EACH 500

static void *mark_many(void *name)
{
	for (int i = 0; i < MARKS_EACH; i++)
		if (assay_mark(name) != 0)
			return (void *)"a mark failed";
	/* Another thread's errors are not seen here. */
	return *assay_last_error() ? (void *)"an error of another thread is seen" : NULL;
}

static void marks_of_many_threads_never_mix(void **state)
{
	static char names[THREADS][24] = {"one", "twotwotwo", "three three three", "4"};
	pthread_t threads[THREADS];
	size_t counts[THREADS] = {0}, lines = 0;

	(void)state;
	assert_int_equal(assay_mark(NULL), -1);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, mark_many, names[i]), 0);
	for (size_t i = 0; i < THREADS; i++) {
		void *trouble;

		assert_int_equal(pthread_join(threads[i], &trouble), 0);
		if (trouble)
			fail_msg("%s", (const char *)trouble);
	}
	markers();
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++)
		for (size_t i = 0; i < THREADS; i++)
			counts[i] += strcmp(line + strspn(line, "0123456789") + 1, names[i]) == 0;
	assert_int_equal(lines, THREADS * MARKS_EACH);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(counts[i], MARKS_EACH);
}

static void the_version_is_that_of_the_header(void **state)
{
	char expected[32];

	(void)state;
	snprintf(expected, sizeof expected, "%d.%d.", ASSAY_VERSION_MAJOR, ASSAY_VERSION_MINOR);
	assert_memory_equal(assay_version(), expected, strlen(expected));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_markers, scratch_remove)
	const struct CMUnitTest tests[] = {
		TEST(a_mark_is_one_line_with_the_time_of_the_call),
		TEST(outside_a_run_it_does_nothing_and_says_so),
		TEST(a_mark_needs_a_name),
		TEST(a_name_stays_on_one_line_of_bounded_length),
		TEST(a_folder_that_was_removed_does_not_come_back),
		TEST(a_pipe_is_refused_without_waiting_or_signals),
		TEST(a_limit_on_file_sizes_kills_nobody),
		TEST(a_child_without_any_descriptor_marks_as_well),
		TEST(errno_and_descriptors_are_as_before),
		TEST(marks_of_many_threads_never_mix),
		TEST(the_version_is_that_of_the_header),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
