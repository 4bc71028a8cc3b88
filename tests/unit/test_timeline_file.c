#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "hdf5_plugin.h"
#include "model/timeline.h"
#include "need.h"
#include "scratch.h"
#include "store/segments.h"
#include "store/timeline_file.h"

#define MIB (UINT64_C(1) << 20)
#define START_NS INT64_C(5000000000)
#define WALL_NS INT64_C(1790000000000000000)

/* What these tests look at is the file as such; that h5py reads from it what was written is tests/cli's business. */

static void define(struct segment_writer *w, uint32_t id, const char *name)
{
	char payload[200] = {0};
	struct wire_series fixed = {.id = id, .kind = SERIES_COUNTER};
	size_t length = strlen(name) + 1;

	memcpy(payload, &fixed, sizeof fixed);
	memcpy(payload + sizeof fixed, name, length);
	assert_int_equal(segment_append(w, WIRE_SERIES, 0, payload, sizeof fixed + length + 3), 0);
}

static void put(struct segment_writer *w, uint32_t id, int64_t t, double value)
{
	struct {
		struct wire_points fixed;
		struct wire_point point;
	} points = {{START_NS + t}, {.id = id, .value = value}};

	assert_int_equal(segment_append(w, WIRE_POINTS, 0, &points, sizeof points), 0);
}

/* Two series and `count` points of the first, of values that do not compress. */
static void begin_segment(struct segment_writer *w, int count)
{
	assert_int_equal(segment_create(w, scratch_path("monitor.seg"), SEGMENT_KIND_MONITOR, 512 * MIB), 0);
	define(w, 0, "memory.anon");
	define(w, 1, "cpu.user");
	srandom(1);
	for (int i = 0; i < count; i++)
		put(w, 0, i, (double)random() * (double)random());
}

static void write_segment(int count)
{
	struct segment_writer w;

	begin_segment(&w, count);
	segment_close(&w);
}

static int build(const char *h5, const volatile int *stop, struct error *err)
{
	err->text[0] = '\0';
	return timeline_file_build(scratch_path("monitor.seg"), h5, START_NS, WALL_NS, stop, err);
}

static void assert_is_hdf5(const char *path)
{
	char magic[8];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, magic, sizeof magic), sizeof magic);
	assert_memory_equal(magic, "\x89HDF\r\n\x1a\n", 8);
	close(fd);
}

static size_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t count = 0;

	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

static void assert_says(const struct error *err, const char *what)
{
	if (!strstr(err->text, what))
		fail_msg("\"%s\" does not say \"%s\"", err->text, what);
}

static void a_file_replaces_the_old_one_and_leaves_nothing_else(void **state)
{
	const char *h5 = scratch_path("timeline.h5");
	struct error err;

	(void)state;
	need_plugin();
	write_segment(3000);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(build(h5, NULL, &err), 0);
		assert_is_hdf5(h5);
		assert_int_equal(count_entries(scratch_dir), 2);
	}
}

static void the_segment_of_a_killed_writer_is_enough(void **state)
{
	struct segment_writer w;
	struct error err;

	(void)state;
	need_plugin();
	begin_segment(&w, 100);
	segment_abandon(&w);
	assert_int_equal(build(scratch_path("timeline.h5"), NULL, &err), 0);
	assert_is_hdf5(scratch_path("timeline.h5"));
}

static void damage_keeps_what_came_before_and_is_told(void **state)
{
	static const struct {
		uint16_t type;
		uint8_t length;
		uint32_t payload[8];
		const char *says;
	} cases[] = {
		{WIRE_SERIES, 4, {2}, "a series of 4 bytes"},
		{WIRE_SERIES, 8, {7}, "series 7 is defined where series 2 is next"},
		{WIRE_SERIES, 8, {1}, "series 1 is defined where series 2 is next"},
		{WIRE_POINTS, 4, {0}, "points of 4 bytes"},
		{WIRE_POINTS, 20, {0}, "points of 20 bytes"},
		{WIRE_POINTS, 24, {0, 0, 2}, "a point of series 2, which is not defined"},
		{WIRE_POINTS, 24, {0, 0x80000000u, 0}, "a point at -9223372036854775808 ns"},
	};

	(void)state;
	need_plugin();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct segment_writer w;
		struct error err;

		begin_segment(&w, 10);
		assert_int_equal(segment_append(&w, cases[i].type, 0, cases[i].payload, cases[i].length), 0);
		segment_close(&w);
		assert_int_equal(build(scratch_path("timeline.h5"), NULL, &err), 1);
		assert_says(&err, "timeline.h5: a damaged record: ");
		assert_says(&err, cases[i].says);
		assert_is_hdf5(scratch_path("timeline.h5"));
		assert_int_equal(unlink(scratch_path("monitor.seg")), 0);
	}
	write_segment(10);
	assert_int_equal(truncate(scratch_path("monitor.seg"), SEGMENT_DATA_OFFSET + 199), 0);
	assert_int_equal(build(scratch_path("timeline.h5"), NULL, &(struct error){""}), 1);
}

static void a_stop_leaves_the_old_file(void **state)
{
	const char *h5 = scratch_path("timeline.h5");
	volatile int stop = 1;
	struct error err;
	struct stat st;

	(void)state;
	need_plugin();
	write_segment(3000);
	assert_int_equal(fs_write_file(h5, "old", 3, &err), 0);
	assert_int_equal(build(h5, &stop, &err), -1);
	assert_says(&err, "timeline.h5: interrupted while it was written");
	assert_int_equal(stat(h5, &st), 0);
	assert_int_equal(st.st_size, 3);
	assert_int_equal(count_entries(scratch_dir), 2);
}

static void a_missing_segment_or_folder_is_named(void **state)
{
	struct error err;

	(void)state;
	need_plugin();
	assert_int_equal(build(scratch_path("timeline.h5"), NULL, &err), -1);
	assert_says(&err, "monitor.seg: No such file or directory");
	write_segment(1);
	assert_int_equal(build(scratch_path("none/timeline.h5"), NULL, &err), -1);
	assert_says(&err, "none/timeline.h5: HDF5 cannot make the file: No such file or directory");
	assert_int_equal(count_entries(scratch_dir), 1);
}

/* For children: the exit status is the line that does not hold. */
#define EXPECT(condition)                                                                                              \
	do                                                                                                             \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "test_timeline_file.c:%d: does not hold: %s\n", __LINE__, err.text);           \
			return 1;                                                                                      \
		}                                                                                                      \
	while (0)

static int status_in_child(int (*test)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		exit(test());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(WIFSIGNALED(status));
	return WEXITSTATUS(status);
}

static int build_under_a_limit(void)
{
	struct rlimit limit = {.rlim_cur = 100000, .rlim_max = RLIM_INFINITY};
	struct error err = {""};

	EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	EXPECT(build(scratch_path("timeline.h5"), NULL, &err) == -1);
	EXPECT(strstr(err.text, strerror(EFBIG)));
	EXPECT(!fs_exists(scratch_path("timeline.h5")));
	/* Not only held back: the signal is gone. */
	limit.rlim_cur = RLIM_INFINITY;
	EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	EXPECT(build(scratch_path("timeline.h5"), NULL, &err) == 0);
	return 0;
}

static void a_limit_on_file_sizes_is_an_error_and_no_signal(void **state)
{
	(void)state;
	need_plugin();
	write_segment(100000);
	assert_int_equal(status_in_child(build_under_a_limit), 0);
	assert_int_equal(count_entries(scratch_dir), 2);
}

#define CANNOT_MOUNT 77
#define FITS 78

static int build_on_a_full_disk(void)
{
	struct error err = {""};

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", scratch_path("disk"), "tmpfs", 0, "size=64k") < 0)
		return CANNOT_MOUNT;
	if (build(scratch_path("disk/timeline.h5"), NULL, &err) == 0)
		return FITS;
	EXPECT(strstr(err.text, "disk/timeline.h5: HDF5 cannot "));
	EXPECT(strstr(err.text, strerror(ENOSPC)));
	EXPECT(fs_dir_is_empty(scratch_path("disk"), NULL) == 1);
	return 0;
}

static void a_full_disk_is_an_error_and_leaves_nothing(void **state)
{
	int status = FITS;

	(void)state;
	need_plugin();
	assert_int_equal(mkdir(scratch_path("disk"), 0777), 0);
	/* Among these is a file where only the last write, that of closing it, fails. */
	for (int count = 6000; count < 12000; count += 250) {
		write_segment(count);
		status = status_in_child(build_on_a_full_disk);
		need("mount", status != CANNOT_MOUNT, "a small tmpfs cannot be mounted by this user");
		assert_true(status == 0 || (status == FITS && count < 11000));
		assert_int_equal(unlink(scratch_path("monitor.seg")), 0);
	}
	assert_int_equal(status, 0);
}

static void the_library_tells_its_version(void **state)
{
	char version[64] = "";
	struct error err;

	(void)state;
	need_plugin();
	assert_int_equal(timeline_file_available(version, sizeof version, &err), 0);
	assert_memory_equal(version, "HDF5 ", 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
	const struct CMUnitTest tests[] = {
		TEST(a_file_replaces_the_old_one_and_leaves_nothing_else),
		TEST(the_segment_of_a_killed_writer_is_enough),
		TEST(damage_keeps_what_came_before_and_is_told),
		TEST(a_stop_leaves_the_old_file),
		TEST(a_missing_segment_or_folder_is_named),
		TEST(a_limit_on_file_sizes_is_an_error_and_no_signal),
		TEST(a_full_disk_is_an_error_and_leaves_nothing),
		TEST(the_library_tells_its_version),
	};
	return cmocka_run_group_tests(tests, find_plugin, NULL);
}
