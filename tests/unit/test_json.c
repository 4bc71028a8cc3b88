#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/json.h"

static char folder[] = "/tmp/assay-test-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static char *put_file(const char *bytes, size_t length)
{
	char *path = fs_join(folder, "x.json");

	assert_int_equal(fs_write_file(path, bytes, length, NULL), 0);
	return path;
}

static void missing_is_absent_never_null_or_zero(void **state)
{
	CLEANUP(json_cleanup) json_t *o = json_object();
	CLEANUP(free_cleanup) char *text = NULL;

	(void)state;
	json_put_number(o, "nan", NAN);
	json_put_number(o, "inf", -INFINITY);
	json_put_text(o, "text", NULL);
	json_put_number(o, "third", 1.0 / 3);
	json_put_integer(o, "n", -3);
	json_put_bool(o, "yes", 1);
	text = json_print(o);
	assert_string_equal(text, "{\n \"third\": 0.333333333333333,\n \"n\": -3,\n \"yes\": true\n}");
}

static void any_bytes_become_text_that_reads_back(void **state)
{
	CLEANUP(json_cleanup) json_t *o = json_object();
	CLEANUP(json_cleanup) json_t *back = NULL;
	CLEANUP(free_cleanup) char *path = fs_join(folder, "x.json");
	char all[256];
	struct error err;

	(void)state;
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	json_object_set_new(o, "all", json_text(all, sizeof all));
	json_put_text(o, "cut", "a\xc3");
	assert_int_equal(json_write_file(path, o, &err), 0);
	back = json_read_file(path, &err);
	assert_non_null(back);
	assert_true(json_equal(o, back));
	assert_int_equal(json_string_length(json_object_get(back, "all")), 128 + 128 * 3);
	assert_string_equal(json_get_text(back, "cut", NULL), "a\xef\xbf\xbd");
	unlink(path);
}

static void a_bad_file_is_named_with_its_line(void **state)
{
	CLEANUP(free_cleanup) char *path = put_file("{\n \"a\": 1,\n}\n", 14);
	char start[200];
	struct error err;

	(void)state;
	assert_null(json_read_file(path, &err));
	snprintf(start, sizeof start, "%s: line 3, column 1: ", path);
	assert_memory_equal(err.text, start, strlen(start));
	unlink(path);
	assert_null(json_read_file(path, &err));
	snprintf(start, sizeof start, "%s: No such file or directory", path);
	assert_string_equal(err.text, start);
}

static void hostile_files_are_errors(void **state)
{
	static const char *const texts[] = {"", "{", "[1,", "{\"a\":1,\"a\":2}", "\"\xff\"", "[1] x", "nul", "1e99999"};
	CLEANUP(buf_release) struct buf deep;
	CLEANUP(free_cleanup) char *path = NULL;
	struct error err;

	(void)state;
	buf_init(&deep);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		free(path);
		path = put_file(texts[i], strlen(texts[i]));
		assert_null(json_read_file(path, &err));
	}
	for (int i = 0; i < 1000000; i++)
		buf_putc(&deep, '[');
	free(path);
	path = put_file(deep.text, deep.length);
	assert_null(json_read_file(path, &err));
	unlink(path);
}

static void a_member_of_the_wrong_kind_is_a_missing_one(void **state)
{
	CLEANUP(json_cleanup) json_t *o = json_pack("{s:i, s:f, s:s, s:n, s:[]}", "i", 3, "f", 0.5, "s", "x", "n", "l");

	(void)state;
	assert_true(json_get_number(o, "i", -1) == 3);
	assert_true(json_get_number(o, "f", -1) == 0.5);
	assert_true(json_get_number(o, "s", -1) == -1);
	assert_true(json_get_number(o, "n", -1) == -1);
	assert_true(json_get_number(NULL, "i", -1) == -1);
	assert_string_equal(json_get_text(o, "s", "none"), "x");
	assert_string_equal(json_get_text(o, "l", "none"), "none");
	assert_null(json_get_text(json_object_get(o, "absent"), "s", NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_is_absent_never_null_or_zero),
		cmocka_unit_test(any_bytes_become_text_that_reads_back),
		cmocka_unit_test(a_bad_file_is_named_with_its_line),
		cmocka_unit_test(hostile_files_are_errors),
		cmocka_unit_test(a_member_of_the_wrong_kind_is_a_missing_one),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
