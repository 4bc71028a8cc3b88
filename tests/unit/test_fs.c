#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "need.h"

static char folder[] = "/tmp/assay-test-XXXXXX";

static int enter_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static void assert_holds(const char *path, const char *text)
{
	CLEANUP(buf_release) struct buf b;

	buf_init(&b);
	assert_int_equal(fs_read_file(path, 1 << 20, &b, NULL), 0);
	assert_string_equal(b.text, text);
}

static void a_file_is_replaced_whole(void **state)
{
	(void)state;
	assert_int_equal(fs_write_file("f", "one", 3, NULL), 0);
	assert_int_equal(fs_write_file("f", "2", 1, NULL), 0);
	assert_holds("f", "2");
	assert_int_equal(unlink("f"), 0);
}

static void a_file_that_was_private_stays_private(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(fs_write_file("f", "one", 3, NULL), 0);
	assert_int_equal(chmod("f", 0600), 0);
	assert_int_equal(fs_write_file("f", "two", 3, NULL), 0);
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(unlink("f"), 0);
}

/* The file cannot grow past the limit, as on a full disk. */
static void a_failed_write_leaves_the_old_file_and_nothing_else(void **state)
{
	struct rlimit old, small;
	static char large[100000];
	struct error err;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(fs_write_file("f", "good", 4, NULL), 0);
	small = (struct rlimit){.rlim_cur = 1000, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(fs_write_file("f", large, sizeof large, &err), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_string_equal(err.text, "f: File too large");
	assert_holds("f", "good");
	assert_int_equal(unlink("f"), 0);
	assert_int_equal(fs_dir_is_empty(".", NULL), 1);
}

static void links_are_followed(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(fs_write_file("real", "old", 3, NULL), 0);
	assert_int_equal(symlink("real", "link"), 0);
	assert_int_equal(fs_write_file("link", "new", 3, NULL), 0);
	assert_holds("real", "new");
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(unlink("link"), 0);
	assert_int_equal(unlink("real"), 0);
}

static void a_pipe_is_written_to_and_stays_a_pipe(void **state)
{
	char got[8] = "";
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(mkfifo("p", 0600), 0);
	fd = open("p", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fs_write_file("p", "text", 4, NULL), 0);
	assert_int_equal(read(fd, got, sizeof got), 4);
	assert_string_equal(got, "text");
	assert_int_equal(stat("p", &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	close(fd);
	assert_int_equal(unlink("p"), 0);
}

static void a_full_device_is_an_error_that_names_it(void **state)
{
	struct error err;

	(void)state;
	need("fulldisk", access("/dev/full", W_OK) == 0, "there is no /dev/full");
	assert_int_equal(fs_write_file("/dev/full", "x", 1, &err), -1);
	assert_string_equal(err.text, "/dev/full: No space left on device");
}

static void reading_is_bounded(void **state)
{
	CLEANUP(buf_release) struct buf b;
	struct error err;

	(void)state;
	buf_init(&b);
	assert_int_equal(fs_read_file("/dev/zero", 1000000, &b, &err), -1);
	assert_string_equal(err.text, "/dev/zero: larger than the 1000000 bytes that are read of such a file");
	assert_int_equal(fs_read_file("none", 1000, &b, &err), -1);
	assert_string_equal(err.text, "none: No such file or directory");
	assert_int_equal(fs_read_file(".", 1000, &b, &err), -1);
	assert_string_equal(err.text, ".: Is a directory");
}

static void folders_are_made_with_their_parents(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(fs_make_dirs("a/b//c/", &err), 0);
	assert_int_equal(fs_make_dirs("a/b/c", &err), 0);
	assert_int_equal(fs_make_dirs("/", &err), 0);
	assert_true(fs_is_dir("a/b/c"));
	assert_int_equal(fs_make_dirs("", &err), -1);
	assert_int_equal(fs_write_file("a/f", "", 0, NULL), 0);
	assert_int_equal(fs_make_dirs("a/f/d", &err), -1);
	assert_string_equal(err.text, "a/f: cannot make the folder: File exists");
	assert_int_equal(fs_dir_is_empty("a/b/c", &err), 1);
	assert_int_equal(fs_dir_is_empty("a", &err), 0);
	assert_int_equal(fs_dir_is_empty("a/f", &err), -1);
	assert_int_equal(fs_dir_is_empty("a/none", &err), -1);
	assert_int_equal(unlink("a/f"), 0);
	assert_int_equal(rmdir("a/b/c"), 0);
	assert_int_equal(rmdir("a/b"), 0);
	assert_int_equal(rmdir("a"), 0);
}

static void paths_are_joined(void **state)
{
	static const struct {
		const char *dir, *name, *joined;
	} cases[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "/b"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(free_cleanup) char *path = fs_join(cases[i].dir, cases[i].name);

		assert_string_equal(path, cases[i].joined);
	}
}

static void a_companion_is_found_beside_the_program(void **state)
{
	CLEANUP(free_cleanup) char *self = fs_find_companion("test_fs");
	CLEANUP(free_cleanup) char *none = fs_find_companion("no such companion");

	(void)state;
	assert_non_null(self);
	assert_int_equal(*self, '/');
	assert_null(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_replaced_whole),
		cmocka_unit_test(a_file_that_was_private_stays_private),
		cmocka_unit_test(a_failed_write_leaves_the_old_file_and_nothing_else),
		cmocka_unit_test(links_are_followed),
		cmocka_unit_test(a_pipe_is_written_to_and_stays_a_pipe),
		cmocka_unit_test(a_full_device_is_an_error_that_names_it),
		cmocka_unit_test(reading_is_bounded),
		cmocka_unit_test(folders_are_made_with_their_parents),
		cmocka_unit_test(paths_are_joined),
		cmocka_unit_test(a_companion_is_found_beside_the_program),
	};
	return cmocka_run_group_tests(tests, enter_folder, remove_folder);
}
