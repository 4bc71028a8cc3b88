#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pagecache.h"
#include "need.h"
#include "scratch.h"

#define MIB (1 << 20)
#define PAGES_TOUCHED 16

/* A file on disk whose pages are not in the page cache, or the test is skipped. */
static const char *make_evicted(const char *name, size_t size)
{
	const char *path = scratch_path(name);
	struct pagecache p;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char *text = malloc(size);

	assert_non_null(text);
	assert_true(fd >= 0);
	memset(text, 'x', size);
	assert_int_equal(write(fd, text, size), size);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
	free(text);
	assert_int_equal(pagecache_look_by_mincore(path, &p, NULL), 0);
	need("evict", p.cached == 0, "the file system of %s keeps all pages", scratch_dir);
	return path;
}

/* Without readahead, so that these pages come in and few others. */
static void read_pages(const char *path, off_t from, size_t pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char byte;

	assert_true(fd >= 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
	for (size_t i = 0; i < pages; i++)
		assert_int_equal(pread(fd, &byte, 1, from + (off_t)(i * page)), 1);
	close(fd);
}

static void what_is_read_is_cached_and_looking_reads_nothing(void **state)
{
	const char *path = make_evicted("f", 4 * MIB);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct pagecache p, by_mincore;

	(void)state;
	assert_int_equal(pagecache_look(path, &p, NULL), 0);
	assert_int_equal(p.size, 4 * MIB);
	assert_true(p.cached == 0);
	read_pages(path, MIB, PAGES_TOUCHED);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pagecache_look(path, &p, NULL), 0);
		assert_int_equal(pagecache_look_by_mincore(path, &by_mincore, NULL), 0);
		assert_true(p.cached == (double)(PAGES_TOUCHED * page));
		assert_true(by_mincore.cached == p.cached);
		assert_string_equal(by_mincore.how, "mincore");
		assert_true(isnan(by_mincore.evicted));
	}
}

static void the_last_page_counts_up_to_the_files_end(void **state)
{
	const char *path = make_evicted("f", MIB + 100);
	struct pagecache p;

	(void)state;
	read_pages(path, 0, (MIB + 100) / (size_t)sysconf(_SC_PAGESIZE) + 1);
	assert_int_equal(pagecache_look(path, &p, NULL), 0);
	assert_true(p.cached == MIB + 100);
	assert_int_equal(pagecache_look_by_mincore(path, &p, NULL), 0);
	assert_true(p.cached == MIB + 100);
}

static void an_empty_file_has_nothing_cached(void **state)
{
	const char *path = scratch_path("empty");
	struct pagecache p;

	(void)state;
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(pagecache_look(path, &p, NULL), 0);
	assert_int_equal(p.size, 0);
	assert_true(p.cached == 0);
	assert_non_null(p.how);
	assert_int_equal(pagecache_look_by_mincore(path, &p, NULL), 0);
	assert_true(p.cached == 0);
}

/* Nothing is on disk of a sparse file, but what is read of it is in the page cache all the same. */
static void of_a_huge_file_parts_are_looked_at(void **state)
{
	const char *path = scratch_path("sparse");
	off_t stride = (off_t)8 << 30 >> 8;
	struct pagecache p;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	make_evicted("small", MIB); /* where all pages are kept, those of holes are not there at all */
	assert_true(fd >= 0);
	need("big-files", ftruncate(fd, (off_t)8 << 30) == 0, "no file of 8 GiB may be made");
	close(fd);
	assert_int_equal(pagecache_look(path, &p, NULL), 0);
	assert_true(p.cached == 0);
	/* Four strides, of which a sixteenth is looked at. */
	for (int i = 10; i < 14; i++)
		read_pages(path, i * stride, (size_t)stride / (size_t)sysconf(_SC_PAGESIZE));
	assert_int_equal(pagecache_look(path, &p, NULL), 0);
	assert_true(fabs(p.cached - 4 * (double)stride) < 64 * 1024);
	assert_int_equal(pagecache_look_by_mincore(path, &p, NULL), 0);
	assert_true(fabs(p.cached - 4 * (double)stride) < 64 * 1024);
}

static void what_has_no_page_cache_is_unknown(void **state)
{
	struct pagecache p;

	(void)state;
	assert_int_equal(pagecache_look("/proc/self/maps", &p, NULL), 0);
	assert_true(isnan(p.cached) && isnan(p.evicted));
	assert_null(p.how);
}

static void only_regular_files_are_opened(void **state)
{
	const char *fifo = scratch_path("fifo");
	struct error err;
	struct pagecache p;
	char expected[600];

	(void)state;
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(pagecache_look(fifo, &p, &err), -1);
	snprintf(expected, sizeof expected, "%s: it is not a regular file", fifo);
	assert_string_equal(err.text, expected);
	assert_int_equal(pagecache_look(scratch_dir, &p, &err), -1);
	assert_int_equal(pagecache_look("/nonexistent/file", &p, &err), -1);
	assert_string_equal(err.text, "/nonexistent/file: No such file or directory");
}

/* 0 where the answer is "unknown". */
static int look_as_nobody(const char *path)
{
	struct pagecache p;

	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 2;
	return pagecache_look_by_mincore(path, &p, NULL) == 0 && isnan(p.cached) && !p.how ? 0 : 1;
}

static void another_users_file_is_unknown_and_not_wholly_cached(void **state)
{
	const char *path;
	int status;
	pid_t child;

	(void)state;
	need("root", geteuid() == 0, "it takes root to become another user");
	path = make_evicted("f", MIB);
	assert_int_equal(chmod(scratch_dir, 0755), 0);
	assert_int_equal(chmod(path, 0644), 0);
	child = fork();
	if (child == 0)
		_exit(look_as_nobody(path));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH(what_is_read_is_cached_and_looking_reads_nothing),
		SCRATCH(the_last_page_counts_up_to_the_files_end),
		SCRATCH(an_empty_file_has_nothing_cached),
		SCRATCH(of_a_huge_file_parts_are_looked_at),
		SCRATCH(what_has_no_page_cache_is_unknown),
		SCRATCH(only_regular_files_are_opened),
		SCRATCH(another_users_file_is_unknown_and_not_wholly_cached),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
