#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/armfile.h"

struct fixture {
	struct metric_set metrics;
	struct arms arms;
	struct error err;
};

static int start(void **state)
{
	static struct fixture f;

	arms_init(&f.arms);
	*state = &f;
	return metric_set_init(&f.metrics, NULL);
}

static int end(void **state)
{
	struct fixture *f = *state;

	arms_release(&f->arms);
	metric_set_release(&f->metrics);
	return 0;
}

static int take(struct fixture *f, const char *text)
{
	CLEANUP(json_cleanup) json_t *run = json_loads(text, 0, NULL);

	assert_non_null(run);
	return armfile_take(run, "x.json", &f->metrics, &f->arms, &f->err);
}

static double value(const struct fixture *f, const char *metric)
{
	return arm_value(&f->arms.items[f->arms.count - 1], metric_find(&f->metrics, metric));
}

static void each_figure_is_found_at_its_path(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(take(f, "{\"status\": \"ok\", \"wall_s\": 0, \"unknown\": [1], \"cpu_s\": null,"
				 "\"throughput\": {\"decode\": {\"tokens_per_s\": 12}, \"prefill\": {}},"
				 "\"memory\": {\"gpu\": {\"peak_above_baseline_total_mib\": 7.5}, \"host\": 3},"
				 "\"groups\": {\"load\": {\"wall_s\": 1.25}},"
				 "\"energy\": {\"decode_j_per_token\": 0.5},"
				 "\"machine_before\": {\"clean\": false}, \"block\": 3, \"arm\": 1}"), 0);
	assert_true(value(f, "wall_s") == 0);
	assert_true(value(f, "decode_tps") == 12);
	assert_true(value(f, "gpu_peak_mib") == 7.5);
	assert_true(value(f, "load_s") == 1.25);
	assert_true(value(f, "decode_j_per_token") == 0.5);
	assert_true(isnan(value(f, "cpu_s")) && isnan(value(f, "prefill_tps")) && isnan(value(f, "rss_peak_mib")));
	assert_int_equal(f->arms.items[0].state, ARM_OK);
	assert_true(f->arms.items[0].dirty);
	assert_int_equal(f->arms.items[0].block, 3);
	assert_int_equal(f->arms.items[0].position, 1);
	assert_true(f->arms.items[0].started_ns == INT64_MIN);
}

static void phases_of_one_name_add_up_to_a_metric(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(take(f, "{\"status\": \"ok\", \"phases\": [{\"name\": \"a\", \"start_s\": 0, \"end_s\": 1},"
				 "{\"name\": \"b\", \"start_s\": 1, \"end_s\": 2}, {\"name\": \"a\", \"start_s\": 2,"
				 "\"end_s\": 5}, {\"name\": \"c\"}, 7]}"), 0);
	assert_true(value(f, "phase:a") == 4);
	assert_true(value(f, "phase:b") == 1);
	assert_true(metric_find(&f->metrics, "phase:c") == SIZE_MAX);
}

static void a_run_counts_only_if_it_ended_well_and_was_not_traced(void **state)
{
	static const struct {
		const char *text;
		enum arm_state state;
	} rows[] = {
		{"{\"status\": \"ok\"}", ARM_OK},
		{"{\"status\": \"ok\", \"perturbed\": 0}", ARM_OK},
		{"{\"status\": \"ok\", \"perturbed\": true}", ARM_PERTURBED},
		{"{\"status\": \"ok\", \"perturbed\": \"strace\"}", ARM_PERTURBED},
		{"{\"status\": \"failed\", \"perturbed\": true}", ARM_FAILED},
		{"{\"status\": \"timeout\"}", ARM_FAILED},
		{"{\"status\": \"refused\"}", ARM_REFUSED},
		{"{\"status\": 1}", ARM_FAILED},
		{"{}", ARM_FAILED},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(take(f, rows[i].text), 0);
		assert_int_equal(f->arms.items[i].state, rows[i].state);
	}
}

static void start_times_are_read_in_every_usual_form(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} rows[] = {
		{"{\"started_at\": \"1970-01-02T00:00:01.5Z\"}", INT64_C(86401500000000)},
		{"{\"started_at\": \"1970-01-02 00:00:01\"}", INT64_C(86401000000000)},
		{"{\"started_at\": \"1970-01-02T01:00:01.123456+01:00\"}", INT64_C(86401123456000)},
		{"{\"started_at\": \"1970-01-01T23:30:01-00:30\"}", INT64_C(86401000000000)},
		{"{\"started_at\": 86401.5}", INT64_C(86401500000000)},
		{"{\"started_at\": \"yesterday\"}", INT64_MIN},
		{"{\"started_at\": \"1970-13-02T00:00:01Z\"}", INT64_MIN},
		{"{\"started_at\": \"1970-01-02T00:00:01 o'clock\"}", INT64_MIN},
		{"{\"started_at\": 1e300}", INT64_MIN},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(take(f, rows[i].text), 0);
		assert_true(f->arms.items[i].started_ns == rows[i].ns);
	}
}

static void what_can_be_no_figure_is_refused_by_name(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{"[]", "x.json: it is no run.json: expected an object"},
		{"{\"wall_s\": -1}", "x.json: \"wall_s\" is -1, which it cannot be"},
		{"{\"wall_s\": \"3\"}", "x.json: \"wall_s\" is no number"},
		{"{\"wall_s\": true}", "x.json: \"wall_s\" is no number"},
		{"{\"cpu_s\": 1e300}", "x.json: \"cpu_s\" is 1e+300, which it cannot be"},
		{"{\"throughput\": {\"decode\": {\"tokens_per_s\": -2.5}}}",
		 "x.json: \"throughput.decode.tokens_per_s\" is -2.5, which it cannot be"},
		{"{\"phases\": [{\"name\": \"a\", \"start_s\": 3, \"end_s\": 2}]}",
		 "x.json: phase 1 ends at 2 s, before it starts"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(take(f, rows[i].text), -1);
		assert_string_equal(f->err.text, rows[i].error);
		assert_int_equal(f->arms.count, 0);
	}
}

static void a_folder_without_a_run_is_none(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(armfile_read("/", &f->metrics, &f->arms, &f->err), -1);
	assert_string_equal(f->err.text, "/: it is no run directory: it has no run.json");
	assert_int_equal(armfile_read("/does/not/exist", &f->metrics, &f->arms, &f->err), -1);
	assert_string_equal(f->err.text, "/does/not/exist: No such file or directory");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_figure_is_found_at_its_path),
		TEST(phases_of_one_name_add_up_to_a_metric),
		TEST(a_run_counts_only_if_it_ended_well_and_was_not_traced),
		TEST(start_times_are_read_in_every_usual_form),
		TEST(what_can_be_no_figure_is_refused_by_name),
		TEST(a_folder_without_a_run_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
