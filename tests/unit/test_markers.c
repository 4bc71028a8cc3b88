#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/markers.h"

struct taken {
	size_t count;
	int64_t t[8];
	char name[8][32];
	size_t length[8];
};

static void take(void *context, int64_t t, bool has_time, const char *name, size_t length, uint64_t end)
{
	struct taken *k = context;

	assert_true(end > 0);
	assert_true(has_time == (t == 12345));
	assert_true(k->count < 8);
	k->t[k->count] = t;
	k->length[k->count] = length;
	snprintf(k->name[k->count++], sizeof *k->name, "%.*s", (int)(length < 31 ? length : 31), name);
}

static char path[64];

static void append(const char *bytes, size_t length, int flags)
{
	int fd = open(path, O_WRONLY | flags);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	close(fd);
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
	return unlink(path);
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

static void a_number_too_large_for_a_time_is_part_of_the_name(void **state)
{
	const char *line = "99999999999999999999999 x", *name;
	size_t length;
	bool has_time;
	int64_t t;

	(void)state;
	assert_true(marker_parse(line, strlen(line), 5, &t, &name, &length, &has_time));
	assert_false(has_time);
	assert_int_equal(t, 5);
	assert_int_equal(length, strlen(line));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_line_names_a_phase_and_perhaps_its_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_line_without_end_is_cut_and_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_is_written_over_is_read_from_its_start_again, set_up,
						tear_down),
		cmocka_unit_test(a_number_too_large_for_a_time_is_part_of_the_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
