#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/procfs.h"
#include "scratch.h"

#define STAT_TAIL " S 17 4242 4242 0 -1 4194304 11 12 13 14 15 16 17 18 20 0 3 0 900 0 0\n"

static bool scan(const char *text, struct proc_stat *ret)
{
	return proc_stat_scan(text, strlen(text), ret);
}

static void fields_of_stat_are_those_of_its_manual_page(void **state)
{
	struct proc_stat s;

	(void)state;
	assert_true(scan("4242 (cat)" STAT_TAIL, &s));
	assert_int_equal(s.state, 'S');
	assert_int_equal(s.ppid, 17);
	assert_int_equal(s.minor_faults, 11);
	assert_int_equal(s.children_minor_faults, 12);
	assert_int_equal(s.major_faults, 13);
	assert_int_equal(s.children_major_faults, 14);
	assert_int_equal(s.user_ticks, 15);
	assert_int_equal(s.system_ticks, 16);
	assert_int_equal(s.children_user_ticks, 17);
	assert_int_equal(s.children_system_ticks, 18);
	assert_int_equal(s.threads, 3);
	assert_int_equal(s.start_ticks, 900);
	assert_int_equal(s.comm_length, 3);
	assert_memory_equal(s.comm, "cat", 3);
}

static void a_name_may_hold_blanks_parentheses_and_newlines(void **state)
{
	static const char *const names[] = {") S 1 (x", "a b\nc)", "", "((", "))", " 1 2 3 4 5 6"};
	struct proc_stat s;
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(text, sizeof text, "4242 (%s)" STAT_TAIL, names[i]);
		assert_true(scan(text, &s));
		assert_int_equal(s.ppid, 17);
		assert_int_equal(s.start_ticks, 900);
		assert_int_equal(s.comm_length, strlen(names[i]));
		assert_memory_equal(s.comm, names[i], s.comm_length);
	}
}

static void a_stat_that_is_cut_anywhere_is_refused(void **state)
{
	static const char whole[] = "4242 (cat)" STAT_TAIL;
	size_t needed = (size_t)(strstr(whole, " 900") - whole) + 4;
	struct proc_stat s;

	(void)state;
	for (size_t length = 0; length <= needed; length++)
		assert_false(proc_stat_scan(whole, length, &s));
	assert_true(proc_stat_scan(whole, needed + 1, &s));
}

static void bytes_of_any_kind_do_no_harm(void **state)
{
	char text[400];
	struct proc_stat s;
	uint32_t random = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct scan_key key = {.name = "a"};

		for (size_t i = 0; i < sizeof text; i++) {
			random = random * 1664525 + 1013904223;
			/* Mostly the bytes that such files are made of. */
			text[i] = round % 2 ? (char)(random >> 24) : " ()0123456789-\na:"[(random >> 24) % 17];
		}
		(void)proc_stat_scan(text, sizeof text, &s);
		(void)scan_keys(text, sizeof text, &key, 1);
	}
	assert_false(proc_stat_scan("", 0, &s));
}

static void only_a_first_thread_that_ended_is_not_a_zombie(void **state)
{
	struct proc_stat s = {.state = 'Z', .threads = 1};

	(void)state;
	assert_true(proc_stat_ended(&s));
	s.threads = 2;
	assert_false(proc_stat_ended(&s));
	s = (struct proc_stat){.state = 'R', .threads = 1};
	assert_false(proc_stat_ended(&s));
}

static void numbers_that_do_not_fit_are_refused(void **state)
{
	const char *most = "18446744073709551615 ", *more = "18446744073709551616 ", *at = most;
	uint64_t value = 5;

	(void)state;
	assert_true(scan_u64(&at, most + strlen(most), &value));
	assert_true(value == UINT64_MAX);
	at = more;
	assert_false(scan_u64(&at, more + strlen(more), &value));
	at = "-1";
	assert_false(scan_u64(&at, at + 2, &value));
	at = "   ";
	assert_false(scan_u64(&at, at + 3, &value));
}

static void keys_match_whole_words_only(void **state)
{
	static const char text[] = "workingset_refault_anon 7\nVmSwap:\t   12 kB\nworkingset_refault 9\nbad x\nlast 3";
	struct scan_key keys[] = {
		{.name = "workingset_refault"}, {.name = "VmSwap:"}, {.name = "bad"}, {.name = "last"}};

	(void)state;
	assert_int_equal(scan_keys(text, sizeof text - 1, keys, 4), 2);
	assert_int_equal(keys[0].value, 9);
	assert_int_equal(keys[1].value, 12);
	assert_false(keys[2].found);
	/* Its line does not end, so the number may have been cut. */
	assert_false(keys[3].found);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void files_are_read_below_the_root_that_is_set(void **state)
{
	char text[16];

	(void)state;
	write_file(scratch_path("loadavg"), "0.5 0.6 0.7\n");
	procfs_set_roots(scratch_dir, scratch_dir);
	assert_int_equal(procfs_read_file(text, sizeof text, "load%s", "avg"), 12);
	assert_string_equal(text, "0.5 0.6 0.7\n");
	sysfs_read_word(text, sizeof text, "loadavg");
	assert_string_equal(text, "0.5 0.6 0.7");
	sysfs_read_word(text, sizeof text, "nothing");
	assert_string_equal(text, "");
	assert_int_equal(procfs_read_file(text, sizeof text, "nothing"), -ENOENT);
	assert_int_equal(procfs_read_file(text, sizeof text, "."), -EISDIR);
	procfs_set_roots(NULL, NULL);
	assert_true(procfs_read_file(text, sizeof text, "loadavg") > 0);
}

static void a_file_larger_than_the_buffer_is_cut_with_its_end_marked(void **state)
{
	char text[8];

	(void)state;
	write_file(scratch_path("long"), "0123456789");
	procfs_set_roots(scratch_dir, NULL);
	assert_int_equal(procfs_read_file(text, sizeof text, "long"), 7);
	assert_string_equal(text, "0123456");
	procfs_set_roots(NULL, NULL);
}

static bool sum_pids(void *context, int pid)
{
	*(int *)context += pid;
	return true;
}

static void only_names_that_are_numbers_are_pids(void **state)
{
	static const char *const names[] = {"1", "20", "300", "self", "4a", "99999999999999999999", "-5", "0"};
	int fd, sum = 0;

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_int_equal(mkdir(scratch_path(names[i]), 0700), 0);
	fd = open(scratch_dir, O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	assert_int_equal(procfs_each_pid(fd, sum_pids, &sum), 0);
	assert_int_equal(sum, 321);
	assert_int_equal(procfs_each_pid(fd, sum_pids, &sum), 0);
	assert_int_equal(sum, 642);
	close(fd);
	assert_int_equal(procfs_each_pid(fd, sum_pids, &sum), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_of_stat_are_those_of_its_manual_page),
		cmocka_unit_test(a_name_may_hold_blanks_parentheses_and_newlines),
		cmocka_unit_test(a_stat_that_is_cut_anywhere_is_refused),
		cmocka_unit_test(bytes_of_any_kind_do_no_harm),
		cmocka_unit_test(only_a_first_thread_that_ended_is_not_a_zombie),
		cmocka_unit_test(numbers_that_do_not_fit_are_refused),
		cmocka_unit_test(keys_match_whole_words_only),
		cmocka_unit_test_setup_teardown(files_are_read_below_the_root_that_is_set, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(a_file_larger_than_the_buffer_is_cut_with_its_end_marked, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(only_names_that_are_numbers_are_pids, scratch_make, scratch_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
