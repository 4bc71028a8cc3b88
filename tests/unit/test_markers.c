#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/markers.h"

struct taken {
	size_t count;
	int64_t t[8];
	char name[8][32];
	size_t length[8];
	bool has_time[8];
};

static void take(void *context, int64_t t, bool has_time, const char *name, size_t length, uint64_t end)
{
	struct taken *k = context;

	assert_true(end > 0);
	assert_true(k->count < 8);
	k->t[k->count] = t;
	k->length[k->count] = length;
	k->has_time[k->count] = has_time;
	snprintf(k->name[k->count++], sizeof *k->name, "%.*s", (int)(length < 31 ? length : 31), name);
}

static char path[64];

static void append(const char *bytes, size_t length, int flags)
{
	int fd = open(path, O_WRONLY | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	close(fd);
}

static void write_line(const char *line, int flags)
{
	append(line, strlen(line), flags);
}

static int set_up(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/assay-markers-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static void a_line_names_a_phase_and_perhaps_its_time(void **state)
{
	struct taken k = {0};
	struct markers_watch m;

	(void)state;
	assert_int_equal(markers_open(&m, path, take, &k, NULL), 0);
	append("load\n12345 work hard \n\n  42\nhal", 31, O_APPEND);
	markers_read(&m, 7);
	assert_int_equal(k.count, 3);
	assert_string_equal(k.name[0], "load");
	assert_int_equal(k.t[0], 7);
	assert_string_equal(k.name[1], "work hard");
	assert_int_equal(k.t[1], 12345);
	assert_false(k.has_time[0]);
	assert_true(k.has_time[1]);
	assert_string_equal(k.name[2], "42"); /* a number alone is a name */
	append("f\nlast", 6, O_APPEND);
	markers_read(&m, 8);
	assert_int_equal(k.count, 4);
	assert_string_equal(k.name[3], "half");
	markers_close(&m, 9);
	assert_int_equal(k.count, 5);
	assert_string_equal(k.name[4], "last");
	assert_int_equal(k.t[4], 9);
}

static void a_line_without_end_is_cut_and_counted(void **state)
{
	static char much[1 << 20];
	struct taken k = {0};
	struct markers_watch m;

	(void)state;
	memset(much, 'x', sizeof much);
	much[sizeof much - 1] = '\n';
	assert_int_equal(markers_open(&m, path, take, &k, NULL), 0);
	append(much, sizeof much, O_APPEND);
	append("next\n", 5, O_APPEND);
	markers_close(&m, 1);
	assert_int_equal(k.count, 2);
	assert_int_equal(k.length[0], 4096);
	assert_string_equal(k.name[1], "next");
	assert_int_equal(m.cut, 1);
}

static void a_file_that_is_written_over_is_read_from_its_start_again(void **state)
{
	struct taken k = {0};
	struct markers_watch m;

	(void)state;
	assert_int_equal(markers_open(&m, path, take, &k, NULL), 0);
	append("a long name\n", 12, O_APPEND);
	markers_read(&m, 1);
	append("b\n", 2, O_TRUNC);
	markers_close(&m, 2);
	assert_int_equal(k.count, 2);
	assert_string_equal(k.name[1], "b");
	assert_true(m.truncated);
}

/* Names are joined by '|'. */
static void assert_names(const struct taken *k, const char *wanted)
{
	char names[8 * 33] = "";

	for (size_t i = 0; i < k->count; i++)
		snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? "|" : "", k->name[i]);
	assert_string_equal(names, wanted);
}

static void what_is_written_over_with_as_much_or_more_is_noticed(void **state)
{
	struct taken k = {0};
	struct markers_watch m;

	(void)state;
	assert_int_equal(markers_open(&m, path, take, &k, NULL), 0);
	write_line("load\n", O_TRUNC);
	markers_read(&m, 1);
	assert_false(m.truncated);
	write_line("work-hard\n", O_TRUNC);
	markers_read(&m, 2);
	assert_true(m.truncated);
	write_line("rest-well\n", O_TRUNC);
	markers_read(&m, 3);
	write_line("cut off", O_TRUNC);
	markers_read(&m, 4);
	write_line("end\n", O_TRUNC);
	markers_close(&m, 5);
	assert_names(&k, "load|work-hard|rest-well|cut off|end");
	assert_int_equal(k.t[2], 3);
	assert_false(m.replaced);
}

static void a_long_file_is_compared_by_its_last_bytes(void **state)
{
	char line[101] = "", text[202];
	struct taken k = {0};
	struct markers_watch m;

	(void)state;
	memset(line, 'a', 99);
	line[99] = '\n';
	snprintf(text, sizeof text, "%s%s", line, line);
	assert_int_equal(markers_open(&m, path, take, &k, NULL), 0);
	write_line(text, O_APPEND);
	markers_read(&m, 1);
	write_line("b\n", O_APPEND);
	markers_read(&m, 2);
	assert_int_equal(k.count, 3);
	text[150] = 'c';
	write_line(text, O_TRUNC);
	write_line("d\n", O_APPEND);
	markers_close(&m, 3);
	assert_int_equal(k.count, 6);
	assert_string_equal(k.name[5], "d");
	assert_true(m.truncated);
}

static void the_same_bytes_written_over_are_a_mark_again(void **state)
{
	static const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct taken k = {0};
	struct markers_watch m;

	(void)state;
	assert_int_equal(markers_open(&m, path, take, &k, NULL), 0);
	assert_true(m.notify >= 0);
	write_line("a\n", O_TRUNC);
	assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
	markers_read(&m, 1);
	markers_read(&m, 2); /* nothing has happened */
	assert_names(&k, "a");
	write_line("a\n", O_TRUNC);
	markers_read(&m, 3);
	assert_names(&k, "a|a");
	assert_int_equal(k.t[1], 3);
	assert_true(m.truncated);
	markers_close(&m, 4);
	assert_names(&k, "a|a");
}

static void count_in_order(void *context, int64_t t, bool has_time, const char *name, size_t length, uint64_t end)
{
	int *count = context;

	(void)t, (void)has_time, (void)end;
	assert_true(length > 0 && atoi(name) == *count);
	(*count)++;
}

/* News of a write that was read already, while the next one is going on, is none of a file written over. */
static void marks_that_come_thick_are_taken_once(void **state)
{
	enum { MARKS = 50000 };
	struct markers_watch m;
	int count = 0, status;
	pid_t child;

	(void)state;
	assert_int_equal(markers_open(&m, path, count_in_order, &count, NULL), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

		for (int i = 0; i < MARKS; i++)
			if (dprintf(fd, "%d\n", i) < 0)
				_exit(1);
		_exit(0);
	}
	while (waitpid(child, &status, WNOHANG) == 0)
		markers_read(&m, 1);
	assert_int_equal(status, 0);
	markers_close(&m, 2);
	assert_int_equal(count, MARKS);
	assert_false(m.truncated);
}

static void a_touched_file_is_not_read_again(void **state)
{
	static const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct taken k = {0};
	struct markers_watch m;

	(void)state;
	assert_int_equal(markers_open(&m, path, take, &k, NULL), 0);
	write_line("a\n", O_APPEND);
	markers_read(&m, 1);
	assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
	assert_int_equal(chmod(path, 0640), 0);
	markers_read(&m, 2);
	markers_close(&m, 3);
	assert_names(&k, "a");
	assert_false(m.truncated || m.replaced);
}

static void a_file_that_takes_its_place_is_read_from_its_start(void **state)
{
	struct taken k = {0};
	struct markers_watch m;

	(void)state;
	assert_int_equal(markers_open(&m, path, take, &k, NULL), 0);
	write_line("one\n", O_APPEND);
	markers_read(&m, 1);
	write_line("one and a half\n", O_APPEND);
	assert_int_equal(unlink(path), 0);
	markers_read(&m, 2);
	assert_false(m.replaced);
	write_line("two\n", O_CREAT);
	markers_read(&m, 3);
	assert_true(m.replaced);
	write_line("three\n", O_APPEND); /* the new one is watched, too */
	markers_read(&m, 4);
	assert_names(&k, "one|one and a half|two|three");
	assert_int_equal(k.t[3], 4);
	unlink(path);
	write_line("four\n", O_CREAT);
	markers_close(&m, 5);
	assert_names(&k, "one|one and a half|two|three|four");
	assert_false(m.truncated);
}

static void the_descriptor_tells_of_what_happens_to_the_new_file(void **state)
{
	struct taken k = {0};
	struct markers_watch m;

	(void)state;
	assert_int_equal(markers_open(&m, path, take, &k, NULL), 0);
	unlink(path);
	write_line("two\n", O_CREAT);
	markers_read(&m, 1);
	markers_read(&m, 1);
	assert_int_equal(poll(&(struct pollfd){.fd = m.notify, .events = POLLIN}, 1, 0), 0);
	write_line("three\n", O_APPEND);
	assert_int_equal(poll(&(struct pollfd){.fd = m.notify, .events = POLLIN}, 1, -1), 1);
	markers_close(&m, 2);
	assert_names(&k, "two|three");
}

/* As sed -i does. */
static void a_copy_that_goes_on_as_the_file_did_is_not_read_twice(void **state)
{
	char file[sizeof path], copy[sizeof path + 8];
	struct taken k = {0};
	struct markers_watch m;

	(void)state;
	strcpy(file, path);
	snprintf(copy, sizeof copy, "%s.copy", path);
	assert_int_equal(markers_open(&m, file, take, &k, NULL), 0);
	write_line("one\ntw", O_APPEND);
	markers_read(&m, 1);
	snprintf(path, sizeof path, "%s", copy);
	write_line("one\ntwo\nthree\n", O_CREAT);
	strcpy(path, file);
	assert_int_equal(rename(copy, file), 0);
	markers_close(&m, 2);
	assert_names(&k, "one|two|three");
	assert_true(m.replaced);
}

static void what_is_no_file_is_never_waited_for(void **state)
{
	struct taken k = {0};
	struct markers_watch m;
	struct error err;

	(void)state;
	assert_int_equal(markers_open(&m, path, take, &k, NULL), 0);
	write_line("one\n", O_APPEND);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	markers_read(&m, 1);
	assert_true(m.replaced);
	markers_close(&m, 2);
	assert_names(&k, "one");
	assert_int_equal(markers_open(&m, path, take, &k, &err), -1);
	assert_non_null(strstr(err.text, ": not a regular file"));
	markers_close(&m, 2);
}

static void a_time_to_come_is_the_moment_it_was_seen(void **state)
{
	struct taken k = {0};
	struct markers_watch m;
	int64_t now;
	char line[64];

	(void)state;
	assert_int_equal(markers_open(&m, path, take, &k, NULL), 0);
	write_line("9000000000000000000 typo\n", O_APPEND);
	markers_read(&m, 7);
	assert_int_equal(k.t[0], 7);
	assert_false(k.has_time[0]);
	assert_int_equal(m.future, 1);
	/* Written between the look at the clock and the reading. */
	now = clock_mono_ns();
	snprintf(line, sizeof line, "%lld now\n", (long long)now);
	write_line(line, O_APPEND);
	markers_read(&m, now - 1);
	assert_int_equal(k.t[1], now);
	assert_true(k.has_time[1]);
	markers_close(&m, 8);
	assert_names(&k, "typo|now");
	assert_int_equal(m.future, 1);
	assert_int_equal(m.wall_clock, 0);
}

static void a_wall_time_is_converted(void **state)
{
	struct taken k = {0};
	struct markers_watch m;
	int64_t before, after;
	char line[64];

	(void)state;
	assert_int_equal(markers_open(&m, path, take, &k, NULL), 0);
	before = clock_mono_ns();
	snprintf(line, sizeof line, "%lld work\n", (long long)clock_wall_ns());
	write_line(line, O_APPEND);
	after = clock_mono_ns();
	markers_read(&m, after);
	/* Give or take what the clocks drift apart and how exactly two of them can be read at once. */
	assert_true(k.t[0] > before - NS_PER_S && k.t[0] <= after);
	assert_true(k.has_time[0]);
	assert_int_equal(m.wall_clock, 1);
	assert_int_equal(m.future, 0);
	markers_close(&m, after);
}

static void the_time_of_a_line_is_judged_by_when_it_was_seen(void **state)
{
	enum { S = 1000000000 };
	static const struct {
		const char *line;
		int64_t offset, t;
		enum marker_time from;
	} lines[] = {
		{"x", 0, INT64_C(100) * S, MARKER_SEEN},
		{"100000000000 x", 0, INT64_C(100) * S, MARKER_NAMED},
		{"100000000001 x", 0, INT64_C(100) * S, MARKER_FUTURE},
		{"0 x", 0, 0, MARKER_NAMED},
		{"1700000090000000000 x", 0, INT64_C(100) * S, MARKER_FUTURE},
		{"1700000090000000000 x", INT64_C(1700000000) * S, INT64_C(90) * S, MARKER_WALL},
		{"1700000101000000000 x", INT64_C(1700000000) * S, INT64_C(100) * S, MARKER_WALL},
		{"1699990000000000000 x", INT64_C(1700000000) * S, INT64_C(-10000) * S, MARKER_WALL},
		{"1699913699000000000 x", INT64_C(1700000000) * S, INT64_C(100) * S, MARKER_FUTURE},
		{"1700086501000000000 x", INT64_C(1700000000) * S, INT64_C(100) * S, MARKER_FUTURE},
		{"9223372036854775807 x", INT64_C(1700000000) * S, INT64_C(100) * S, MARKER_FUTURE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		enum marker_time from;
		const char *name;
		size_t length;
		int64_t t;

		assert_true(marker_parse(lines[i].line, strlen(lines[i].line), INT64_C(100) * S, lines[i].offset, &t,
					 &name, &length, &from));
		if (t != lines[i].t || from != lines[i].from)
			fail_msg("line %zu: %lld, %d", i, (long long)t, (int)from);
		assert_string_equal(name, "x");
	}
}

static void a_number_too_large_for_a_time_is_part_of_the_name(void **state)
{
	const char *line = "99999999999999999999999 x", *name;
	size_t length;
	enum marker_time from;
	int64_t t;

	(void)state;
	assert_true(marker_parse(line, strlen(line), 5, 0, &t, &name, &length, &from));
	assert_int_equal(from, MARKER_SEEN);
	assert_int_equal(t, 5);
	assert_int_equal(length, strlen(line));
}

#define WATCH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WATCH(a_line_names_a_phase_and_perhaps_its_time),
		WATCH(a_line_without_end_is_cut_and_counted),
		WATCH(a_file_that_is_written_over_is_read_from_its_start_again),
		WATCH(what_is_written_over_with_as_much_or_more_is_noticed),
		WATCH(a_long_file_is_compared_by_its_last_bytes),
		WATCH(the_same_bytes_written_over_are_a_mark_again),
		WATCH(marks_that_come_thick_are_taken_once),
		WATCH(a_touched_file_is_not_read_again),
		WATCH(a_file_that_takes_its_place_is_read_from_its_start),
		WATCH(the_descriptor_tells_of_what_happens_to_the_new_file),
		WATCH(a_copy_that_goes_on_as_the_file_did_is_not_read_twice),
		WATCH(what_is_no_file_is_never_waited_for),
		WATCH(a_time_to_come_is_the_moment_it_was_seen),
		WATCH(a_wall_time_is_converted),
		cmocka_unit_test(the_time_of_a_line_is_judged_by_when_it_was_seen),
		cmocka_unit_test(a_number_too_large_for_a_time_is_part_of_the_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
