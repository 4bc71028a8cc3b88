#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fs.h"
#include "need.h"
#include "hdf5_plugin.h"
#include "scratch.h"
#include "store/region_file.h"

static const char *case_path(const char *name)
{
	static char path[600];

	snprintf(path, sizeof path, "%s/regions/%s", getenv("ASSAY_TEST_DATA"), name);
	return path;
}

static void layout_1_of_four_ranks_is_read(void **state)
{
	struct region_file *f;
	const struct regions *r;
	struct error err;
	uint64_t next = 0;

	(void)state;
	need_plugin();
	f = open_file(case_path("mpi4.h5"));
	r = region_file_regions(f);
	assert_int_equal(r->layout, 1);
	assert_int_equal(r->rank_count, 4);
	assert_int_equal(r->name_count, 5);
	assert_int_equal(r->part_count, 20);
	assert_int_equal(r->call_count, 4 * 526);
	assert_string_equal(regions_fact(r, "mpi_size"), "4");
	for (size_t i = 0; i < r->part_count; i++) {
		assert_int_equal(r->parts[i].first, next);
		next += r->parts[i].count;
		for (uint64_t k = 0; k < r->parts[i].count; k++) {
			int64_t start, end;

			assert_int_equal(region_file_read(f, REGION_START, r->parts[i].first + k, 1, &start, &err), 0);
			assert_int_equal(region_file_read(f, REGION_END, r->parts[i].first + k, 1, &end, &err), 0);
			assert_true(start > 0 && end >= start);
		}
	}
	region_file_free(f);
}

static void a_run_directory_stands_for_the_file_in_it(void **state)
{
	struct region_file *f;
	struct buf text;
	struct error err;

	(void)state;
	need_plugin();
	buf_init(&text);
	assert_int_equal(fs_read_file(case_path("before.h5"), 1 << 20, &text, &err), 0);
	assert_int_equal(fs_write_file(scratch_path("regions.h5"), text.text, text.length, &err), 0);
	buf_release(&text);
	assert_true(region_file_is_one(scratch_dir));
	f = open_file(scratch_dir);
	assert_int_equal(region_file_regions(f)->call_count, 526);
	region_file_free(f);
}

/* ---- .spt ---- */

static void put_region(struct buf *b, const char *name, int32_t line, int64_t count, int64_t first)
{
	int32_t length = (int32_t)strlen(name), file_length = 4;

	buf_append(b, &length, sizeof length);
	buf_puts(b, name);
	buf_append(b, &file_length, sizeof file_length);
	buf_puts(b, "a.py");
	buf_append(b, &line, sizeof line);
	buf_append(b, &count, sizeof count);
	for (int64_t i = 0; i < count; i++) {
		int64_t start = first + 10 * i;

		buf_append(b, &start, sizeof start);
	}
	for (int64_t i = 0; i < count; i++) {
		int64_t end = first + 10 * i + 7;

		buf_append(b, &end, sizeof end);
	}
}

static void put_spt(struct buf *b, int32_t version, int32_t rank, int64_t regions)
{
	buf_init(b);
	buf_puts(b, "SCOPEPRF");
	buf_append(b, &version, sizeof version);
	buf_append(b, &rank, sizeof rank);
	buf_append(b, &regions, sizeof regions);
}

static void a_native_file_of_the_python_package_is_read(void **state)
{
	struct region_file *f;
	const struct regions *r;
	int64_t rows[6];
	struct error err;
	struct buf b;

	(void)state;
	put_spt(&b, 2, 3, 3);
	put_region(&b, "one", 12, 2, 1000);
	put_region(&b, "none", 0, 0, 0);
	put_region(&b, "two", 0, 3, 5000);
	assert_int_equal(fs_write_file(scratch_path("a.spt"), b.text, b.length, &err), 0);
	buf_release(&b);
	assert_true(region_file_is_one(scratch_path("a.spt")));
	f = open_file(scratch_path("a.spt"));
	r = region_file_regions(f);
	assert_int_equal(r->layout, 0);
	assert_int_equal(r->ranks[0], 3);
	assert_int_equal(r->part_count, 3);
	assert_string_equal(r->names[r->parts[2].region], "two");
	assert_string_equal(r->parts[0].file, "a.py");
	assert_int_equal(r->parts[0].line, 12);
	assert_int_equal(r->parts[2].line, -1);
	assert_int_equal(region_file_read(f, REGION_END, 0, 5, rows, &err), 0);
	assert_int_equal(rows[1], 1017);
	assert_int_equal(rows[2], 5007);
	assert_int_equal(rows[4], 5027);
	assert_int_equal(region_file_read(f, REGION_THREAD, 1, 2, rows, &err), 0);
	assert_int_equal(rows[0], -1);
	region_file_free(f);
}

static void an_spt_file_that_was_cut_anywhere_is_an_error(void **state)
{
	struct error err;
	struct buf b;

	(void)state;
	put_spt(&b, 2, 0, 2);
	put_region(&b, "one", 12, 2, 1000);
	put_region(&b, "two", 1, 1, 1000);
	for (size_t length = 8; length < b.length; length++) {
		struct region_file *f = NULL;

		assert_int_equal(fs_write_file(scratch_path("a.spt"), b.text, length, &err), 0);
		assert_int_equal(region_file_open(scratch_path("a.spt"), &f, &err), -1);
		assert_non_null(strstr(err.text, "a.spt: "));
	}
	buf_release(&b);
}

static void numbers_that_cannot_be_are_an_error(void **state)
{
	static const struct {
		int32_t version, rank;
		int64_t regions, calls;
		const char *says;
	} cases[] = {
		{3, 0, 1, 1, "version 3"},
		{2, -1, 1, 1, "rank -1"},
		{2, 0, INT64_MAX, 1, "9223372036854775807 regions"},
		{2, 0, -1, 1, "-1 regions"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct region_file *f = NULL;
		struct error err;
		struct buf b;

		put_spt(&b, cases[i].version, cases[i].rank, cases[i].regions);
		put_region(&b, "one", 12, cases[i].calls, 1000);
		assert_int_equal(fs_write_file(scratch_path("a.spt"), b.text, b.length, &err), 0);
		buf_release(&b);
		assert_int_equal(region_file_open(scratch_path("a.spt"), &f, &err), -1);
		assert_non_null(strstr(err.text, cases[i].says));
	}
}

static void what_is_no_file_of_regions_is_told_so(void **state)
{
	struct region_file *f = NULL;
	struct error err;
	char wanted[700];

	(void)state;
	assert_int_equal(region_file_open("/nowhere/x.h5", &f, &err), -1);
	assert_string_equal(err.text, "/nowhere/x.h5: No such file or directory");
	assert_int_equal(region_file_open("/dev/null", &f, &err), -1);
	assert_string_equal(err.text, "/dev/null: it is no regular file");
	assert_int_equal(mkfifo(scratch_path("pipe"), 0600), 0);
	assert_int_equal(region_file_open(scratch_path("pipe"), &f, &err), -1); /* and does not wait for a writer */
	assert_false(region_file_is_one(scratch_path("pipe")));
	assert_int_equal(fs_write_file(scratch_path("empty"), "", 0, &err), 0);
	assert_int_equal(region_file_open(scratch_path("empty"), &f, &err), -1);
	snprintf(wanted, sizeof wanted, "%s: it is neither HDF5 nor .spt, so no file of regions",
		 scratch_path("empty"));
	assert_string_equal(err.text, wanted);
	assert_false(region_file_is_one(scratch_path("empty")));
}

/* Whatever the damage: a sentence, or a file that can be read. Bytes in the middle are calls, so most can. */
static void a_file_that_was_cut_is_an_error(void **state)
{
	struct error err;
	struct buf text;

	(void)state;
	need_plugin();
	buf_init(&text);
	assert_int_equal(fs_read_file(case_path("before.h5"), 1 << 20, &text, &err), 0);
	for (size_t length = 8; length < text.length; length += 1 + length / 3) {
		struct region_file *f = NULL;

		assert_int_equal(fs_write_file(scratch_path("a.h5"), text.text, length, &err), 0);
		assert_int_equal(region_file_open(scratch_path("a.h5"), &f, &err), -1);
		assert_non_null(strstr(err.text, "a.h5: HDF5 cannot"));
	}
	buf_release(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(layout_1_of_four_ranks_is_read),
		TEST(a_run_directory_stands_for_the_file_in_it),
		TEST(a_native_file_of_the_python_package_is_read),
		TEST(an_spt_file_that_was_cut_anywhere_is_an_error),
		TEST(numbers_that_cannot_be_are_an_error),
		TEST(what_is_no_file_of_regions_is_told_so),
		TEST(a_file_that_was_cut_is_an_error),
	};
	return cmocka_run_group_tests(tests, find_plugin, NULL);
}
