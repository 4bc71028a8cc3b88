#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "need.h"
#include "sources.h"

#define SECOND INT64_C(1000000000)
#define MIB ((off_t)1 << 20)

/* Valid until the tenth call after it. */
static const char *make_sized(const char *name, off_t size)
{
	static char paths[10][512];
	static unsigned next;
	char *path = paths[next++ % 10];
	int fd;

	snprintf(path, sizeof paths[0], "%s/%s", scratch_dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
	return path;
}

static void start(struct stage *s, pid_t command, const char *const *argv)
{
	struct process *p;

	make_file("proc/self/fd/.keep", "");
	stage_init(s, command);
	s->context.argv = (char *const *)(uintptr_t)argv;
	stage_open(s, &source_inputs);
	if (!command)
		return;
	p = process_add(&s->table, command, 1, 1, 0);
	assert_non_null(p);
	p->rss = 64 * MIB;
	p->anon = 0;
}

static void assert_scope(const char *series, const char *format, const char *path)
{
	const struct shown *s = series_of(series);
	char scope[600], kept[sizeof s->scope];

	if (!s)
		fail_msg("%s is not there", series);
	snprintf(scope, sizeof scope, format, path);
	snprintf(kept, sizeof kept, "%s", scope); /* as long as sources.h keeps it */
	assert_string_equal(s->scope, kept);
}

static size_t inputs_shown(void)
{
	size_t count = 0;

	for (size_t i = 0; i < shown_count; i++)
		count += strncmp(shown[i].name, "input.", 6) == 0 && strstr(shown[i].name, ".size");
	return count;
}

static void large_files_that_the_command_line_names_are_shown(void **state)
{
	char option[600], folder[600];
	const char *a, *b, *argv[] = {"engine", "-m", NULL, option, "--small", NULL, folder, "plain", "", "=", NULL};
	struct stage s;

	(void)state;
	argv[2] = a = make_sized("a.gguf", MIB);
	b = make_sized("b.gguf", 3 * MIB + 1);
	snprintf(option, sizeof option, "--draft=%s", b);
	argv[5] = make_sized("small", MIB - 1);
	make_file("models/readme", "text");
	snprintf(folder, sizeof folder, "%s/models", scratch_dir);
	make_sized("models/c.gguf", 2 * MIB);
	assert_int_equal(symlink(b, scratch_path("models/again")), 0);
	start(&s, 0, argv);
	stage_slow(&s, SECOND);
	assert_int_equal(inputs_shown(), 3);
	assert_last("input.0.size", (double)MIB);
	assert_scope("input.0.size", "file %s", a);
	assert_scope("input.0.cached", "file %s", a);
	assert_last("input.1.size", (double)(3 * MIB + 1));
	assert_scope("input.1.size", "file %s", b);
	assert_last("input.2.size", (double)(2 * MIB));
	assert_string_equal(series_of("input.0.size")->unit, "bytes");
	assert_int_equal(series_of("input.0.size")->kind, SERIES_GAUGE);
	stage_release(&s);
}

static void a_file_that_cannot_be_opened_takes_no_number(void **state)
{
	const char *gone = make_sized("gone", MIB), *there = make_sized("there", 2 * MIB);
	const char *argv[] = {"engine", gone, there, NULL};
	struct stage s;

	(void)state;
	start(&s, 0, argv);
	assert_int_equal(unlink(gone), 0);
	stage_slow(&s, SECOND);
	assert_int_equal(inputs_shown(), 1);
	assert_scope("input.0.size", "file %s", there);
	stage_release(&s);
}

static void without_a_command_line_there_is_nothing(void **state)
{
	const char *only[] = {"engine", NULL}, *none[] = {NULL};
	struct stage s;

	(void)state;
	for (int i = 0; i < 3; i++) {
		start(&s, 0, i == 0 ? NULL : i == 1 ? only : none);
		stage_slow(&s, SECOND);
		stage_slow(&s, 20 * SECOND);
		assert_int_equal(shown_count, 0);
		stage_release(&s);
	}
}

static void of_many_files_the_first_64_are_kept(void **state)
{
	const char *argv[] = {"engine", scratch_dir, NULL};
	struct stage s;
	char name[32];

	(void)state;
	for (int i = 0; i < 70; i++) {
		snprintf(name, sizeof name, "model-%d.safetensors", i);
		make_sized(name, MIB);
	}
	start(&s, 0, argv);
	stage_slow(&s, SECOND);
	assert_int_equal(inputs_shown(), 64);
	stage_release(&s);
}

static void a_path_of_more_than_1024_bytes_is_left_out(void **state)
{
	char path[1400], link[600];
	const char *argv[] = {"engine", path, NULL};
	struct stage s;
	size_t length;

	(void)state;
	make_sized("a.gguf", MIB);
	snprintf(link, sizeof link, "%s/%0200d", scratch_dir, 0);
	assert_int_equal(symlink(".", link), 0);
	length = (size_t)snprintf(path, sizeof path, "%s", scratch_dir);
	for (int i = 0; i < 5; i++)
		length += (size_t)snprintf(path + length, sizeof path - length, "/%0200d", 0);
	snprintf(path + length, sizeof path - length, "/a.gguf");
	start(&s, 0, argv);
	stage_slow(&s, SECOND);
	assert_int_equal(inputs_shown(), 0);
	stage_release(&s);
}

static void read_whole(const char *path)
{
	char text[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	while (read(fd, text, sizeof text) > 0)
		;
	close(fd);
}

/* What is read of a hole is in the page cache, but not where memory is all there is (tmpfs). */
static void what_is_cached_is_read_again_every_five_seconds(void **state)
{
	const char *path = make_sized("a.gguf", 2 * MIB), *argv[] = {"engine", path, NULL};
	struct stage s;

	(void)state;
	start(&s, 0, argv);
	stage_slow(&s, SECOND);
	assert_last("input.0.cached", 0);
	read_whole(path);
	stage_slow(&s, 2 * SECOND);
	assert_last("input.0.cached", 0);
	stage_slow(&s, 600 * SECOND);
	need("evict", last_of("input.0.cached") > 0, "the file system of %s keeps no holes in the page cache",
	     scratch_dir);
	assert_last("input.0.cached", (double)(2 * MIB));
	if (series_of("input.0.evicted"))
		assert_last("input.0.evicted", 0);
	/* A file that has gone leaves its last value. */
	assert_int_equal(unlink(path), 0);
	stage_slow(&s, 1200 * SECOND);
	assert_last("input.0.cached", (double)(2 * MIB));
	stage_release(&s);
}

static size_t size_points(void)
{
	return series_of("input.0.size")->points;
}

static void at_marks_it_is_read_after_a_second_and_at_the_end_always(void **state)
{
	const char *path = make_sized("a.gguf", MIB), *argv[] = {"engine", path, NULL};
	struct stage s;

	(void)state;
	start(&s, getpid(), argv);
	stage_slow(&s, SECOND);
	assert_int_equal(size_points(), 1);
	s.context.exact = true;
	assert_int_equal(truncate(path, 2 * MIB), 0);
	stage_slow(&s, SECOND + SECOND / 2);
	assert_last("input.0.size", (double)MIB);
	stage_slow(&s, 300 * SECOND);
	assert_last("input.0.size", (double)(2 * MIB));
	assert_int_equal(truncate(path, 3 * MIB), 0);
	process_died(&s.table, process_find(&s.table, getpid()), 300 * SECOND);
	stage_slow(&s, 300 * SECOND + 1);
	assert_last("input.0.size", (double)(3 * MIB));
	stage_release(&s);
}

static void need_a_folder_of_files(void)
{
	need("scratch", strncmp(scratch_dir, "/dev/", 5) != 0, "what lies in /dev is no input");
}

static void what_a_process_opens_for_reading_is_found(void **state)
{
	const char *large = make_sized("large", 16 * MIB), *argv[] = {"engine", NULL};
	int read_only, write_only, less, deleted, segment;
	struct stage s;

	(void)state;
	need_a_folder_of_files();
	procfs_set_roots(NULL, NULL);
	start(&s, getpid(), argv);
	read_only = open(large, O_RDONLY | O_CLOEXEC);
	write_only = open(make_sized("log", 17 * MIB), O_WRONLY | O_CLOEXEC);
	less = open(make_sized("less", 16 * MIB - 1), O_RDONLY | O_CLOEXEC);
	deleted = open(make_sized("deleted", 18 * MIB), O_RDONLY | O_CLOEXEC);
	assert_int_equal(unlink(scratch_path("deleted")), 0);
	assert_int_equal(mkdir(scratch_path("segments"), 0700), 0);
	segment = open(make_sized("segments/monitor.seg", 19 * MIB), O_RDWR | O_CLOEXEC);
	stage_slow(&s, SECOND);
	assert_int_equal(inputs_shown(), 0); /* the command has not begun: what is open there is the recorder's */
	stage_slow(&s, SECOND + SECOND / 10);
	assert_int_equal(inputs_shown(), 1);
	assert_scope("input.0.size", "opened %s", large);
	assert_last("input.0.size", (double)(16 * MIB));
	close(read_only), close(write_only), close(less), close(deleted), close(segment);
	stage_release(&s);
}

static void after_a_minute_it_does_not_search_any_more(void **state)
{
	const char *argv[] = {"engine", NULL};
	struct stage s;
	int fd;

	(void)state;
	procfs_set_roots(NULL, NULL);
	start(&s, getpid(), argv);
	stage_slow(&s, SECOND);
	fd = open(make_sized("large", 16 * MIB), O_RDONLY | O_CLOEXEC);
	stage_slow(&s, 62 * SECOND);
	assert_int_equal(inputs_shown(), 0);
	close(fd);
	stage_release(&s);
}

static void *map_sized(const char *path, size_t size, int protection)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *map = mmap(NULL, size, protection, MAP_PRIVATE, fd, 0);

	close(fd);
	assert_ptr_not_equal(map, MAP_FAILED);
	return map;
}

static void what_is_mapped_and_closed_is_found_but_no_program(void **state)
{
	const char *model = make_sized("model", 20 * MIB), *library = make_sized("library", 21 * MIB);
	const char *argv[] = {"engine", NULL};
	void *maps[3];
	struct stage s;

	(void)state;
	need_a_folder_of_files();
	procfs_set_roots(NULL, NULL);
	maps[0] = map_sized(library, 20 * MIB, PROT_READ);
	maps[1] = map_sized(library, 16 * MIB, PROT_READ | PROT_EXEC);
	maps[2] = map_sized(model, 20 * MIB, PROT_READ);
	start(&s, getpid(), argv);
	stage_slow(&s, SECOND);
	stage_slow(&s, SECOND + SECOND / 10);
	assert_int_equal(inputs_shown(), 1);
	assert_scope("input.0.size", "opened %s", model);
	munmap(maps[0], 20 * MIB);
	munmap(maps[1], 16 * MIB);
	munmap(maps[2], 20 * MIB);
	stage_release(&s);
}

static void maps_are_not_read_of_a_process_without_pages_of_files(void **state)
{
	const char *argv[] = {"engine", NULL};
	struct stage s;
	void *map;

	(void)state;
	procfs_set_roots(NULL, NULL);
	map = map_sized(make_sized("model", 20 * MIB), 20 * MIB, PROT_READ);
	start(&s, getpid(), argv);
	process_find(&s.table, getpid())->anon = 60 * MIB;
	stage_slow(&s, SECOND);
	stage_slow(&s, SECOND + SECOND / 10);
	assert_int_equal(inputs_shown(), 0);
	munmap(map, 20 * MIB);
	stage_release(&s);
}

static void damaged_files_of_proc_find_nothing(void **state)
{
	static const char *const texts[] = {
		"",
		"\n\n\n",
		"zz-zz r-xp\n",
		"0-ffffffffffffffff r",
		"0-ffffffff r--p\n0-ffffffff r--p 0\n0-ffffffff r--p 0 0:0\n0-ffffffff r--p 0 0:0 1\n",
		"ffffffff-0 r--p 0 0:0 1 /etc/passwd\n",
		"0-ffffffff r--p 0 0:0 1 /nonexistent\n0-ffffffff r--p 0 0:0 1 relative\n-\n0-\n-0 \n",
		"0-ffffffff r--p 0 0:0 1 /a (deleted)\n0-ffffffffffffffffffffffffffffffffff r--p 0 0:0 1 /\n",
	};
	const char *argv[] = {"engine", NULL};

	(void)state;
	make_file("proc/7/fd/0", "not a link");
	make_file("proc/7/fd/x", "");
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct stage s;

		make_file("proc/7/maps", texts[i]);
		start(&s, 7, argv);
		stage_slow(&s, SECOND);
		stage_slow(&s, SECOND + SECOND / 10);
		assert_int_equal(shown_count, 0);
		stage_release(&s);
	}
}

static void another_file_system_at_the_same_path_is_not_taken_for_ours(void **state)
{
	const char *ours = make_sized("model", 20 * MIB), *argv[] = {"engine", NULL};
	char line[600], theirs[600];
	struct stage s;

	(void)state;
	/* The process's root is a folder in which the same path is another file. */
	snprintf(theirs, sizeof theirs, "proc/7/root%s", ours);
	make_file(theirs, "");
	make_sized(theirs, 20 * MIB);
	make_file("proc/7/fd/.keep", "");
	snprintf(line, sizeof line, "10000000-20000000 r--s 00000000 00:01 77    %s\n", ours);
	make_file("proc/7/maps", line);
	start(&s, 7, argv);
	stage_slow(&s, SECOND);
	stage_slow(&s, SECOND + SECOND / 10);
	assert_int_equal(inputs_shown(), 0);
	stage_release(&s);
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, fake_roots, real_roots)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE(large_files_that_the_command_line_names_are_shown),
		FAKE(a_file_that_cannot_be_opened_takes_no_number),
		FAKE(without_a_command_line_there_is_nothing),
		FAKE(of_many_files_the_first_64_are_kept),
		FAKE(a_path_of_more_than_1024_bytes_is_left_out),
		FAKE(what_is_cached_is_read_again_every_five_seconds),
		FAKE(at_marks_it_is_read_after_a_second_and_at_the_end_always),
		FAKE(what_a_process_opens_for_reading_is_found),
		FAKE(after_a_minute_it_does_not_search_any_more),
		FAKE(what_is_mapped_and_closed_is_found_but_no_program),
		FAKE(maps_are_not_read_of_a_process_without_pages_of_files),
		FAKE(damaged_files_of_proc_find_nothing),
		FAKE(another_file_system_at_the_same_path_is_not_taken_for_ours),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
