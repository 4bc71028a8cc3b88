#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "need.h"
#include "scratch.h"
#include "wire/segment.h"

#define MIB (UINT64_C(1) << 20)

/* The whole file as a reader sees it, in the test's memory. */
static unsigned char *read_whole(const char *path, size_t *ret_length)
{
	struct stat st;
	unsigned char *bytes;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t done = 0;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size + 1);
	assert_non_null(bytes);
	while (done < (size_t)st.st_size) {
		ssize_t got = read(fd, bytes + done, (size_t)st.st_size - done);

		assert_true(got > 0);
		done += (size_t)got;
	}
	close(fd);
	*ret_length = done;
	return bytes;
}

static struct segment_header header_of(const char *path)
{
	size_t length;
	unsigned char *bytes = read_whole(path, &length);
	struct segment_header h;

	assert_true(length >= sizeof h);
	memcpy(&h, bytes, sizeof h);
	free(bytes);
	return h;
}

/* One field of it; members that are atomic are no plain values to every compiler. */
#define HEADER(path, field) \
	__extension__({ \
		struct segment_header header_ = header_of(path); \
		atomic_load(&header_.field); \
	})

/* How many records there are, each of `length` bytes whose first eight are its number. */
static uint64_t count_numbered(const char *path, size_t length)
{
	size_t file_length;
	unsigned char *bytes = read_whole(path, &file_length);
	struct segment_header h;
	uint64_t at, count = 0;

	memcpy(&h, bytes, sizeof h);
	assert_true(h.committed <= file_length);
	for (at = h.data_offset; at < h.committed; count++) {
		struct segment_record record;
		uint64_t number;

		memcpy(&record, bytes + at, sizeof record);
		memcpy(&number, bytes + at + sizeof record, sizeof number);
		assert_int_equal(record.used, length);
		assert_int_equal(number, count);
		at += record.size;
	}
	assert_int_equal(at, h.committed);
	free(bytes);
	return count;
}

static int append_number(struct segment_writer *w, uint64_t number, size_t length)
{
	uint64_t payload[512] = {number};

	return segment_append(w, 7, 0, payload, length);
}

/* Runs `test` in a child, so that limits and mounts stay there; returns its exit status. */
static int status_in_child(void (*test)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(WIFSIGNALED(status));
	return WEXITSTATUS(status);
}

/* For children: cmocka's assertions would go on in the parent's test list there. */
static void expect(int holds, int line)
{
	if (!holds) {
		fprintf(stderr, "test_segment.c:%d: does not hold (errno %s)\n", line, strerror(errno));
		_exit(1);
	}
}
#define EXPECT(condition) expect(condition, __LINE__)

static void a_record_is_visible_only_after_its_commit(void **state)
{
	const char *path = scratch_path("a.seg");
	struct segment_writer w;
	char *payload;

	(void)state;
	assert_int_equal(segment_create(&w, path, SEGMENT_KIND_OUTPUT, MIB), 0);
	payload = segment_reserve(&w, 3, 42, 5);
	memcpy(payload, "hello", 5);
	assert_int_equal(HEADER(path, committed), SEGMENT_DATA_OFFSET);
	segment_commit(&w);
	assert_int_equal(HEADER(path, committed), SEGMENT_DATA_OFFSET + 24);
	segment_commit(&w);
	assert_int_equal(HEADER(path, committed), SEGMENT_DATA_OFFSET + 24);
	assert_int_equal(HEADER(path, closed), 0);
	segment_close(&w);
}

static void the_file_holds_header_records_and_zeros_as_padding(void **state)
{
	const char *path = scratch_path("a.seg");
	struct segment_writer w;
	struct segment_header h;
	struct segment_record record;
	unsigned char *bytes;
	size_t length;

	(void)state;
	assert_int_equal(segment_create(&w, path, SEGMENT_KIND_OUTPUT, MIB), 0);
	assert_int_equal(segment_append(&w, 3, 42, "hello", 5), 0);
	assert_int_equal(segment_append(&w, 8, 0, NULL, 0), 0);
	segment_close(&w);
	bytes = read_whole(path, &length);
	assert_int_equal(length, SEGMENT_DATA_OFFSET + 24 + 16);
	memcpy(&h, bytes, sizeof h);
	assert_memory_equal(h.magic, "ASSAYSEG", 8);
	assert_int_equal(h.version, 1);
	assert_int_equal(h.kind, SEGMENT_KIND_OUTPUT);
	assert_int_equal(h.pid, getpid());
	assert_int_equal(h.committed, length);
	assert_int_equal(h.closed, 1);
	assert_int_equal(h.stopped, 0);
	assert_true(h.mono_ns > 0 && h.wall_ns > INT64_C(1500000000000000000));
	memcpy(&record, bytes + SEGMENT_DATA_OFFSET, sizeof record);
	assert_int_equal(record.size, 24);
	assert_int_equal(record.type, 3);
	assert_int_equal(record.tid, 42);
	assert_int_equal(record.used, 5);
	assert_memory_equal(bytes + SEGMENT_DATA_OFFSET + 16, "hello\0\0\0", 8);
	free(bytes);
}

static void a_reservation_that_was_given_up_leaves_nothing(void **state)
{
	const char *path = scratch_path("a.seg");
	struct segment_writer w;
	unsigned char *bytes;
	size_t length;

	(void)state;
	assert_int_equal(segment_create(&w, path, SEGMENT_KIND_OUTPUT, MIB), 0);
	memset(segment_reserve(&w, 1, 0, 100), 0xff, 100);
	assert_memory_equal(segment_reserve(&w, 2, 0, 3), "\0\0\0\0\0\0\0\0", 8);
	segment_commit(&w);
	memset(segment_reserve(&w, 1, 0, 100), 0xff, 100);
	assert_int_equal(segment_append(&w, 3, 0, "x", 1), 0);
	segment_close(&w);
	bytes = read_whole(path, &length);
	assert_int_equal(length, SEGMENT_DATA_OFFSET + 48);
	assert_memory_equal(bytes + SEGMENT_DATA_OFFSET + 16, "\0\0\0\0\0\0\0\0", 8);
	assert_memory_equal(bytes + SEGMENT_DATA_OFFSET + 40, "x\0\0\0\0\0\0\0", 8);
	free(bytes);
}

static void a_record_above_the_limit_is_dropped_and_the_next_one_is_not(void **state)
{
	const char *path = scratch_path("a.seg");
	size_t largest = SEGMENT_RECORD_MAX - sizeof(struct segment_record);
	struct segment_writer w;
	char *payload = calloc(1, largest + 1);

	(void)state;
	assert_non_null(payload);
	assert_int_equal(segment_create(&w, path, SEGMENT_KIND_OUTPUT, 8 * MIB), 0);
	assert_int_equal(segment_append(&w, 1, 0, payload, largest), 0);
	assert_int_equal(segment_append(&w, 1, 0, payload, largest + 1), -EMSGSIZE);
	assert_null(segment_reserve(&w, 1, 0, SIZE_MAX));
	assert_int_equal(segment_append(&w, 1, 0, payload, 8), 0);
	segment_close(&w);
	assert_int_equal(HEADER(path, dropped), 2);
	assert_int_equal(HEADER(path, committed), SEGMENT_DATA_OFFSET + SEGMENT_RECORD_MAX + 24);
	free(payload);
}

static void a_full_capacity_stops_the_writer_for_good_and_counts(void **state)
{
	const char *path = scratch_path("a.seg");
	struct segment_writer w;
	uint64_t kept = 0;

	(void)state;
	assert_int_equal(segment_create(&w, path, SEGMENT_KIND_MONITOR, 128 << 10), 0);
	while (append_number(&w, kept, 1000) == 0)
		kept++;
	assert_int_equal(kept, ((128 << 10) - SEGMENT_DATA_OFFSET) / 1016);
	/* A small one would fit, but then there were a hole in what was recorded. */
	assert_int_equal(append_number(&w, kept, 8), -ENOSPC);
	assert_null(segment_reserve(&w, 1, 0, 8));
	segment_close(&w);
	assert_int_equal(HEADER(path, dropped), 3);
	assert_int_equal(HEADER(path, stopped), ENOSPC);
	assert_int_equal(count_numbered(path, 1000), kept);
}

static void a_file_that_exists_is_left_alone(void **state)
{
	const char *path = scratch_path("a.seg");
	struct segment_writer w;
	struct stat st;
	FILE *f = fopen(path, "we");

	(void)state;
	assert_non_null(f);
	assert_true(fputs("precious", f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(segment_create(&w, path, SEGMENT_KIND_MONITOR, MIB), -EEXIST);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 8);
	assert_int_equal(segment_create(&w, scratch_path("none/a.seg"), SEGMENT_KIND_MONITOR, MIB), -ENOENT);
}

static void a_writer_that_is_not_open_takes_every_call(void **state)
{
	struct segment_writer zeroed = {0}, w;
	int stdin_before = fcntl(0, F_GETFD);

	(void)state;
	assert_int_equal(segment_create(&w, scratch_path("none/a.seg"), SEGMENT_KIND_MONITOR, MIB), -ENOENT);
	for (int i = 0; i < 2; i++) {
		struct segment_writer *closed = i ? &w : &zeroed;

		assert_null(segment_reserve(closed, 1, 0, 8));
		segment_commit(closed);
		assert_int_equal(segment_append(closed, 1, 0, "x", 1), -EBADF);
		segment_trim(closed);
		segment_abandon(closed);
		segment_close(closed);
	}
	/* The descriptor of a zeroed writer is 0, which is not its own. */
	assert_int_equal(fcntl(0, F_GETFD), stdin_before);
}

static void a_file_has_blocks_for_all_that_the_writer_may_touch(void **state)
{
	const char *path = scratch_path("a.seg");
	struct segment_writer w;
	struct stat st;

	(void)state;
	assert_int_equal(segment_create(&w, path, SEGMENT_KIND_MONITOR, UINT64_MAX), 0);
	for (uint64_t i = 0; i < 20000; i++) {
		assert_int_equal(append_number(&w, i, 1000), 0);
		assert_true(w.committed <= w.allocated);
	}
	assert_int_equal(stat(path, &st), 0);
	assert_true((uint64_t)st.st_size >= w.allocated);
	assert_true((uint64_t)st.st_blocks * 512 >= w.allocated);
	/* Killed at any moment, the file is not much larger than what it holds. */
	assert_true(w.allocated - w.committed <= 4 * MIB + 4096);
	segment_close(&w);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, HEADER(path, committed));
	assert_int_equal(count_numbered(path, 1000), 20000);
}

static long status_kib(const char *key)
{
	char line[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "re");

	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0)
			kib = strtol(line + strlen(key), NULL, 10);
	fclose(f);
	return kib;
}

static long resident_kib(void)
{
	return status_kib("RssFile:") + status_kib("RssShmem:");
}

static void trimmed_pages_leave_the_process_and_stay_in_the_file(void **state)
{
	const char *path = scratch_path("a.seg");
	struct segment_writer w;
	uint64_t count = 64 * MIB / 4016;
	long before = resident_kib(), full;

	(void)state;
	assert_int_equal(segment_create(&w, path, SEGMENT_KIND_MONITOR, 200 * MIB), 0);
	for (uint64_t i = 0; i < count; i++)
		assert_int_equal(append_number(&w, i, 4000), 0);
	full = resident_kib();
	assert_true(full - before > 60 * 1024);
	segment_trim(&w);
	assert_true(resident_kib() - before < 1024);
	assert_int_equal(append_number(&w, count, 4000), 0);
	segment_trim(&w);
	assert_int_equal(count_numbered(path, 4000), count + 1);
	segment_close(&w);
	assert_int_equal(count_numbered(path, 4000), count + 1);
}

static void fill_a_limited_file(void)
{
	struct segment_writer w;
	struct rlimit limit = {.rlim_cur = 700001, .rlim_max = RLIM_INFINITY};
	uint64_t kept = 0;

	EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	EXPECT(segment_create(&w, scratch_path("a.seg"), SEGMENT_KIND_MONITOR, 8 * MIB) == 0);
	while (append_number(&w, kept, 1000) == 0)
		kept++;
	EXPECT(append_number(&w, kept, 1000) == -EFBIG);
	EXPECT(kept == (700001 - SEGMENT_DATA_OFFSET) / 1016);
	segment_close(&w);
	limit.rlim_cur = 1000;
	EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	EXPECT(segment_create(&w, scratch_path("b.seg"), SEGMENT_KIND_MONITOR, 8 * MIB) == -EFBIG);
	EXPECT(access(scratch_path("b.seg"), F_OK) < 0);
}

static void a_limit_on_file_sizes_is_used_up_and_kills_nobody(void **state)
{
	(void)state;
	assert_int_equal(status_in_child(fill_a_limited_file), 0);
	assert_int_equal(HEADER(scratch_path("a.seg"), stopped), EFBIG);
	assert_int_equal(count_numbered(scratch_path("a.seg"), 1000), (700001 - SEGMENT_DATA_OFFSET) / 1016);
}

static void fill_a_full_disk(void)
{
	struct segment_writer w, second;
	uint64_t kept = 0;

	EXPECT(segment_create(&w, scratch_path("disk/a.seg"), SEGMENT_KIND_MONITOR, 64 * MIB) == 0);
	while (append_number(&w, kept, 1000) == 0)
		kept++;
	EXPECT(append_number(&w, kept, 1000) == -ENOSPC);
	/* To the last page: small steps follow where a whole one does not fit any more. */
	EXPECT(kept * 1016 > MIB - 4 * 4096);
	EXPECT(segment_create(&second, scratch_path("disk/b.seg"), SEGMENT_KIND_MONITOR, 64 * MIB) == -ENOSPC);
	EXPECT(access(scratch_path("disk/b.seg"), F_OK) < 0);
	segment_close(&w);
	EXPECT(HEADER(scratch_path("disk/a.seg"), stopped) == ENOSPC);
	EXPECT(count_numbered(scratch_path("disk/a.seg"), 1000) == kept);
}

#define CANNOT_MOUNT 77

static void fill_a_mounted_disk(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", scratch_path("disk"), "tmpfs", 0, "size=1m") < 0)
		_exit(CANNOT_MOUNT);
	fill_a_full_disk();
}

static void a_full_disk_is_filled_to_its_end_and_kills_nobody(void **state)
{
	int status;

	(void)state;
	assert_int_equal(mkdir(scratch_path("disk"), 0777), 0);
	status = status_in_child(fill_a_mounted_disk);
	need("mount", status != CANNOT_MOUNT, "a small tmpfs cannot be mounted by this user");
	assert_int_equal(status, 0);
}

/* ramfs has no fallocate; it has no limit either, so little is written. */
static void write_without_fallocate(void)
{
	struct segment_writer w;
	struct stat st;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("ramfs", scratch_path("disk"), "ramfs", 0, NULL) < 0)
		_exit(CANNOT_MOUNT);
	EXPECT(segment_create(&w, scratch_path("disk/a.seg"), SEGMENT_KIND_MONITOR, 64 * MIB) == 0);
	EXPECT(fallocate(w.fd, 0, 0, 4096) < 0 && errno == EOPNOTSUPP);
	for (uint64_t i = 0; i < 5000; i++) {
		EXPECT(append_number(&w, i, 1000) == 0);
		EXPECT(fstat(w.fd, &st) == 0 && (uint64_t)st.st_size == w.allocated);
	}
	segment_close(&w);
	EXPECT(count_numbered(scratch_path("disk/a.seg"), 1000) == 5000);
}

static void a_file_system_without_fallocate_gets_zeros(void **state)
{
	int status;

	(void)state;
	assert_int_equal(mkdir(scratch_path("disk"), 0777), 0);
	status = status_in_child(write_without_fallocate);
	need("mount", status != CANNOT_MOUNT, "a ramfs cannot be mounted by this user");
	assert_int_equal(status, 0);
}

static void write_with_little_address_space(void)
{
	struct segment_writer w;
	struct rlimit limit = {.rlim_cur = (rlim_t)status_kib("VmSize:") * 1024 + 3 * MIB, .rlim_max = RLIM_INFINITY};
	uint64_t kept = 0;

	EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
	EXPECT(segment_create(&w, scratch_path("a.seg"), SEGMENT_KIND_MONITOR, 1024 * MIB) == 0);
	EXPECT(w.capacity >= MIB && w.capacity <= limit.rlim_cur / 4 + 4096);
	while (append_number(&w, kept, 1000) == 0)
		kept++;
	EXPECT(kept > 1000);
	segment_close(&w);
}

static void a_limited_address_space_gives_a_smaller_capacity(void **state)
{
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	need("address-space", false, "AddressSanitizer's own memory cannot be limited");
#endif
	assert_int_equal(status_in_child(write_with_little_address_space), 0);
	assert_int_equal(HEADER(scratch_path("a.seg"), stopped), ENOSPC);
}

static void a_descriptor_that_became_another_file_is_not_touched(void **state)
{
	const char *other = scratch_path("other");
	struct segment_writer w;
	uint64_t kept = 0;
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(segment_create(&w, scratch_path("a.seg"), SEGMENT_KIND_MONITOR, 8 * MIB), 0);
	close(w.fd);
	fd = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	assert_int_equal(dup2(fd, w.fd), w.fd);
	while (append_number(&w, kept, 1000) == 0)
		kept++;
	assert_int_equal(append_number(&w, kept, 1000), -EBADF);
	assert_int_equal(write(fd, "mine", 4), 4);
	fd = w.fd;
	segment_close(&w);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_size, 4);
	assert_int_equal(count_numbered(scratch_path("a.seg"), 1000), kept);
	close(fd);
}

static struct segment_writer shared;

static void abandon_the_shared(void)
{
	segment_abandon(&shared);
	EXPECT(shared.header == NULL);
	EXPECT(segment_append(&shared, 1, 0, "x", 1) == -EBADF);
	segment_close(&shared);
}

static void an_abandoning_child_does_not_disturb_its_parent(void **state)
{
	(void)state;
	assert_int_equal(segment_create(&shared, scratch_path("a.seg"), SEGMENT_KIND_MONITOR, 8 * MIB), 0);
	assert_int_equal(append_number(&shared, 0, 1000), 0);
	assert_int_equal(status_in_child(abandon_the_shared), 0);
	for (uint64_t i = 1; i < 2000; i++)
		assert_int_equal(append_number(&shared, i, 1000), 0);
	assert_int_equal(HEADER(scratch_path("a.seg"), closed), 0);
	segment_close(&shared);
	assert_int_equal(count_numbered(scratch_path("a.seg"), 1000), 2000);
}

static void recording_keeps_errno(void **state)
{
	struct segment_writer w;

	(void)state;
	assert_int_equal(segment_create(&w, scratch_path("a.seg"), SEGMENT_KIND_MONITOR, 8 * MIB), 0);
	close(w.fd);
	errno = EXDEV;
	while (append_number(&w, 0, 1000) == 0)
		;
	segment_trim(&w);
	assert_int_equal(errno, EXDEV);
	segment_close(&w);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
	const struct CMUnitTest tests[] = {
		TEST(a_record_is_visible_only_after_its_commit),
		TEST(the_file_holds_header_records_and_zeros_as_padding),
		TEST(a_reservation_that_was_given_up_leaves_nothing),
		TEST(a_record_above_the_limit_is_dropped_and_the_next_one_is_not),
		TEST(a_full_capacity_stops_the_writer_for_good_and_counts),
		TEST(a_file_that_exists_is_left_alone),
		TEST(a_writer_that_is_not_open_takes_every_call),
		TEST(a_file_has_blocks_for_all_that_the_writer_may_touch),
		TEST(trimmed_pages_leave_the_process_and_stay_in_the_file),
		TEST(a_limit_on_file_sizes_is_used_up_and_kills_nobody),
		TEST(a_full_disk_is_filled_to_its_end_and_kills_nobody),
		TEST(a_file_system_without_fallocate_gets_zeros),
		TEST(a_limited_address_space_gives_a_smaller_capacity),
		TEST(a_descriptor_that_became_another_file_is_not_touched),
		TEST(an_abandoning_child_does_not_disturb_its_parent),
		TEST(recording_keeps_errno),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
