#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "scratch.h"
#include "store/peakfile.h"

static const struct peak_identity here = {"0123abcd", "Model X", "KVM", 8, 4, 25275162624.0};

static const struct bandwidth measured = {
	.one = 20.125e9,
	.all = 37.5e9,
	.one_spread = 0.03,
	.all_spread = 0.25,
	.threads = 4,
	.touched = 8.5e9,
	.cache_bytes = 33554432,
	.took_s = 0.85,
	.wall_ns = INT64_C(1795000000000000000),
	.quiet = true,
};

static int cache_in_scratch(void **state)
{
	return scratch_make(state) == 0 ? setenv("XDG_CACHE_HOME", scratch_path("cache"), 1) : -1;
}

static void path_of(const struct peak_identity *id, struct buf *ret)
{
	buf_init(ret);
	assert_true(peakfile_path(id, ret));
}

static void save_or_fail(const struct peak_identity *id)
{
	struct error err;

	if (peakfile_save(id, &measured, &err) < 0)
		fail_msg("%s", err.text);
}

static void what_was_saved_is_loaded(void **state)
{
	CLEANUP(buf_release) struct buf path;
	struct bandwidth b = {0};
	struct error err;
	struct stat st;

	(void)state;
	path_of(&here, &path);
	assert_int_equal(peakfile_load(&here, &b, &err), 1);
	save_or_fail(&here);
	assert_int_equal(stat(path.text, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(peakfile_load(&here, &b, &err), 0);
	assert_true(b.one == measured.one && b.all == measured.all && b.threads == 4 && b.quiet);
	assert_true(b.one_spread == measured.one_spread && b.all_spread == measured.all_spread);
	assert_true(b.touched == measured.touched && b.cache_bytes == measured.cache_bytes);
	assert_true(b.took_s == measured.took_s && b.wall_ns == measured.wall_ns);
	/* Again, over the old one. */
	save_or_fail(&here);
	assert_int_equal(peakfile_load(&here, &b, &err), 0);
}

static void what_was_not_possible_stays_missing(void **state)
{
	struct bandwidth b = measured, got = {0};
	json_t *object;

	(void)state;
	b.touched = NAN;
	b.cache_bytes = 0;
	object = bandwidth_json(&b);
	assert_null(json_object_get(object, "touched_bytes_per_s"));
	assert_null(json_object_get(object, "cache_bytes"));
	assert_string_equal(json_get_text(object, "measured_at", ""), "2026-11-18T11:06:40.000Z");
	assert_int_equal(bandwidth_from_json(object, &got), 0);
	assert_true(isnan(got.touched) && got.cache_bytes == 0);
	json_decref(object);
}

static void another_machine_has_another_file(void **state)
{
	struct peak_identity others[] = {here, here, here, here, here, here};
	struct bandwidth b = {0};
	struct error err;

	(void)state;
	save_or_fail(&here);
	others[0].machine_id = "";
	others[1].cpu_model = "Model Y";
	others[2].hypervisor = "";
	others[3].cpus = 9;
	others[4].cpus_allowed = 3;
	others[5].memory_bytes += 4096;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_int_equal(peakfile_load(&others[i], &b, &err), 1);
	assert_true(b.one == 0);
}

static void write_text(const char *path, const char *text)
{
	struct error err;

	if (fs_write_file(path, text, strlen(text), &err) < 0)
		fail_msg("%s", err.text);
}

static void a_file_under_the_name_of_this_machine_but_of_another_is_not_taken(void **state)
{
	CLEANUP(buf_release) struct buf path, text;
	struct bandwidth b = {0};
	struct error err;
	char *model;

	(void)state;
	path_of(&here, &path);
	buf_init(&text);
	save_or_fail(&here);
	assert_int_equal(fs_read_file(path.text, 1 << 20, &text, &err), 0);
	model = strstr(text.text, "Model X");
	assert_non_null(model);
	model[6] = 'Z';
	write_text(path.text, text.text);
	assert_int_equal(peakfile_load(&here, &b, &err), 1);
	write_text(path.text, "{\"schema\": 99}");
	assert_int_equal(peakfile_load(&here, &b, &err), 1);
}

static void a_damaged_file_is_named(void **state)
{
	static const char *const texts[] = {"", "{", "[]", "\"\xff\"", "null", "{\"schema\": \"1\"}"};
	CLEANUP(buf_release) struct buf path;
	struct bandwidth b = {0};
	struct error err;

	(void)state;
	path_of(&here, &path);
	save_or_fail(&here);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		write_text(path.text, texts[i]);
		assert_int_equal(peakfile_load(&here, &b, &err), -1);
		assert_non_null(strstr(err.text, path.text));
	}
	assert_int_equal(unlink(path.text), 0);
	assert_int_equal(mkdir(path.text, 0700), 0);
	assert_int_equal(peakfile_load(&here, &b, &err), -1);
	assert_true(b.one == 0);
}

static void numbers_that_cannot_be_are_refused(void **state)
{
	static const char *const keys[] = {"one_bytes_per_s", "all_bytes_per_s", "one_spread", "touched_bytes_per_s",
					   "threads",	      "wall_ns",	 "took_s"};
	struct bandwidth b = {0};

	(void)state;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		for (int bad = 0; bad < 3; bad++) {
			json_t *object = bandwidth_json(&measured);

			json_object_set_new(object, keys[i],
					    bad == 0   ? json_real(-1)
					    : bad == 1 ? json_real(1e300)
						       : json_string("20e9"));
			assert_int_equal(bandwidth_from_json(object, &b), -1);
			json_decref(object);
		}
	for (size_t i = 0; i < 2; i++) {
		json_t *object = bandwidth_json(&measured);

		json_object_del(object, keys[i]);
		assert_int_equal(bandwidth_from_json(object, &b), -1);
		json_object_set_new(object, keys[i], json_integer(0));
		assert_int_equal(bandwidth_from_json(object, &b), -1);
		json_decref(object);
	}
	assert_int_equal(bandwidth_from_json(NULL, &b), -1);
	assert_true(b.one == 0);
}

static void without_a_place_nothing_is_kept_and_that_is_said(void **state)
{
	struct bandwidth b = {0};
	struct error err;
	struct buf path;

	(void)state;
	buf_init(&path);
	/* A relative folder would be another one in each working folder. */
	assert_int_equal(setenv("XDG_CACHE_HOME", "cache", 1), 0);
	assert_int_equal(setenv("HOME", scratch_dir, 1), 0);
	assert_true(peakfile_path(&here, &path));
	assert_non_null(strstr(path.text, "/.cache/assay/machine-"));
	assert_int_equal(unsetenv("HOME"), 0);
	assert_int_equal(peakfile_load(&here, &b, &err), 1);
	assert_int_equal(peakfile_save(&here, &measured, &err), -1);
	assert_non_null(strstr(err.text, "$HOME"));
	buf_release(&path);
}

#define SCRATCH(test) cmocka_unit_test_setup_teardown(test, cache_in_scratch, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH(what_was_saved_is_loaded),
		SCRATCH(what_was_not_possible_stays_missing),
		SCRATCH(another_machine_has_another_file),
		SCRATCH(a_file_under_the_name_of_this_machine_but_of_another_is_not_taken),
		SCRATCH(a_damaged_file_is_named),
		SCRATCH(numbers_that_cannot_be_are_refused),
		SCRATCH(without_a_place_nothing_is_kept_and_that_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
