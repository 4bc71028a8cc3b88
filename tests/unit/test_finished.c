#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "scratch.h"
#include "store/finished.h"
#include "wire/records.h"
#include "wire/segment.h"

#define START INT64_C(5000000000123)

/* Reads a run directory that holds this run.json; *f must be released. */
static int read_run(const char *json, struct finished_run *f, struct error *err)
{
	struct rundir dir;
	int got;

	finished_init(f);
	rundir_init(&dir);
	assert_int_equal(fs_write_file(scratch_path("run.json"), json, strlen(json), NULL), 0);
	assert_int_equal(rundir_open(&dir, scratch_dir, err), 0);
	got = finished_read(&dir, f, err);
	rundir_release(&dir);
	return got;
}

static void write_start(void)
{
	struct wire_start start = {.t = START, .pid = 4};
	struct segment_writer w;

	assert_int_equal(mkdir(scratch_path("segments"), 0777), 0);
	assert_int_equal(segment_create(&w, scratch_path("segments/output.seg"), SEGMENT_KIND_OUTPUT, 1 << 20), 0);
	assert_int_equal(segment_append(&w, WIRE_START, 0, &start, sizeof start), 0);
	segment_close(&w);
}

static void phases_are_back_in_the_clock_of_the_records(void **state)
{
	struct finished_run f;
	struct error err;

	(void)state;
	write_start();
	assert_int_equal(read_run("{\"label\": \"x\", \"command\": \"a b\", \"wall_s\": 2.5, \"cpu_s\": 1.25, "
				  "\"phases\": ["
				  "{\"name\": \"load\", \"group\": \"load\", \"start_s\": 0, \"end_s\": 1}, "
				  "{\"name\": \"mine\", \"group\": \"decode\", \"start_s\": 1, "
				  "\"end_s\": 2.000000001}]}",
				  &f, &err),
			 0);
	assert_string_equal(f.label, "x");
	assert_string_equal(f.command, "a b");
	assert_int_equal(f.start, START);
	assert_int_equal(f.end, START + INT64_C(2500000000));
	assert_true(f.cpu_s == 1.25);
	assert_int_equal(f.phases.count, 2);
	assert_string_equal(f.phases.items[1].name, "mine");
	assert_int_equal(f.phases.items[1].group, GROUP_DECODE);
	assert_int_equal(f.phases.items[1].start, START + INT64_C(1000000000));
	assert_int_equal(f.phases.items[1].end, START + INT64_C(2000000001));
	finished_release(&f);
}

static void without_the_segment_run_json_tells_the_start(void **state)
{
	struct finished_run f;
	struct error err;

	(void)state;
	assert_int_equal(read_run("{\"started_at\": \"1970-01-02T00:00:01.250Z\", \"wall_offset_ns\": 86400000000000}",
				  &f, &err),
			 0);
	assert_int_equal(f.start, 1250000000);
	assert_int_equal(f.end, f.start);
	assert_null(f.label);
	assert_true(isnan(f.wall_s));
	finished_release(&f);
}

static void phases_that_cannot_be_are_left_out(void **state)
{
	struct finished_run f;
	struct error err;

	(void)state;
	assert_int_equal(read_run("{\"wall_s\": 1e300, \"started_at\": \"soon\", \"phases\": [1, null, {},"
				  " {\"name\": 5, \"start_s\": 0, \"end_s\": 1}, {\"name\": \"a\", \"start_s\": 0},"
				  " {\"name\": \"b\", \"start_s\": 2, \"end_s\": 1},"
				  " {\"name\": \"c\", \"start_s\": 1e300, \"end_s\": 1e301},"
				  " {\"name\": \"good\", \"start_s\": 3, \"end_s\": 4},"
				  " {\"name\": \"back\", \"start_s\": 1, \"end_s\": 2}]}",
				  &f, &err),
			 0);
	assert_int_equal(f.phases.count, 1);
	assert_string_equal(f.phases.items[0].name, "good");
	assert_int_equal(f.phases.items[0].group, GROUP_OTHER);
	assert_int_equal(f.end, 4000000000);
	finished_release(&f);
}

static void what_is_no_run_json_is_refused(void **state)
{
	struct finished_run f;
	struct error err;

	(void)state;
	assert_int_equal(read_run("[]", &f, &err), -1);
	assert_non_null(strstr(err.text, "it is no run.json"));
	finished_release(&f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
	const struct CMUnitTest tests[] = {
		TEST(phases_are_back_in_the_clock_of_the_records),
		TEST(without_the_segment_run_json_tells_the_start),
		TEST(phases_that_cannot_be_are_left_out),
		TEST(what_is_no_run_json_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
