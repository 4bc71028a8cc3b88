#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "ingest/foreign.h"

/* What a text holds, or why it was refused. */
struct reading {
	const char *format; /* NULL: of none */
	int result;
	struct metric_set metrics;
	struct arms arms;
	struct error err;
};

static void reading_init(struct reading *r)
{
	*r = (struct reading){.result = -1};
	assert_int_equal(metric_set_init(&r->metrics, NULL), 0);
	arms_init(&r->arms);
}

static void reading_release(struct reading *r)
{
	metric_set_release(&r->metrics);
	arms_release(&r->arms);
}

static void add_bytes(struct reading *r, const char *text, size_t length)
{
	char *exact = malloc(length + 1); /* of the exact size, so that reading past its end is noticed */
	const struct foreign *format;

	assert_non_null(exact);
	memcpy(exact, text, length);
	exact = realloc(exact, length ? length : 1);
	format = foreign_of(exact, length);
	r->format = format ? format->name : NULL;
	r->result = format ? format->read(exact, length, "X", &r->metrics, &r->arms, &r->err) : -1;
	free(exact);
}

static void add_text(struct reading *r, const char *text)
{
	add_bytes(r, text, strlen(text));
}

static void add_file(struct reading *r, const char *name)
{
	struct buf text;
	char path[4096];

	buf_init(&text);
	snprintf(path, sizeof path, "%s/foreign/%s", getenv("ASSAY_TEST_DATA"), name);
	assert_int_equal(fs_read_file(path, 1 << 20, &text, NULL), 0);
	add_bytes(r, text.text, text.length);
	if (r->result < 0)
		print_error("%s\n", r->err.text);
	buf_release(&text);
}

static const struct metric_desc *metric_of(const struct reading *r, const char *name)
{
	size_t found = metric_find(&r->metrics, name);

	if (found == SIZE_MAX)
		fail_msg("there is no metric \"%s\"", name);
	return &r->metrics.items[found];
}

/* The value of an arm; NaN where it is missing. */
static double value_of(const struct reading *r, size_t arm, const char *name)
{
	assert_true(arm < r->arms.count);
	return arm_value(&r->arms.items[arm], (size_t)(metric_of(r, name) - r->metrics.items));
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

static size_t added(const struct reading *r)
{
	return r->metrics.count - metric_count;
}

static void refused(const char *text, const char *sentence)
{
	struct reading r;

	reading_init(&r);
	add_text(&r, text);
	if (r.result == 0 || r.format == NULL)
		fail_msg("%s: %s", r.format ? "was taken" : "was not recognised", text);
	assert_string_equal(r.err.text, sentence);
	assert_int_equal(r.arms.count, 0); /* nothing is left of a bad file */
	assert_int_equal(added(&r), 0);
	reading_release(&r);
}

static void times_of_hyperfine_are_repetitions_in_seconds(void **state)
{
	struct reading r;
	const struct metric_desc *time;

	(void)state;
	reading_init(&r);
	add_file(&r, "hyperfine.json");
	assert_int_equal(r.result, 0);
	assert_string_equal(r.format, "hyperfine");
	assert_int_equal(r.arms.count, 4);
	assert_true(near(value_of(&r, 0, "true"), 0.0012134700000000001));
	assert_true(near(value_of(&r, 3, "true"), 0.0008931420000000001));
	assert_true(near(value_of(&r, 2, "sleep 0.01"), 0.01141813));
	time = metric_of(&r, "sleep 0.01");
	assert_string_equal(time->unit, "s");
	assert_string_equal(time->title, "sleep 0.01");
	assert_int_equal(time->direction, -1);
	assert_true(time->relative_floor == 0.01 && time->absolute_floor == 0 && time->gated && !time->reference);
	assert_string_equal(r.arms.items[2].source, "X: repetition 3");
	assert_string_equal(r.arms.items[2].status, "ok");
	assert_int_equal(r.arms.items[2].state, ARM_OK);
	/* means: shown once, do not decide */
	assert_true(near(value_of(&r, 0, "true: user"), 0.0005525) && isnan(value_of(&r, 1, "true: user")));
	assert_false(metric_of(&r, "sleep 0.01: system")->gated);
	assert_int_equal(added(&r), 6);
	reading_release(&r);
}

static void a_failed_run_of_hyperfine_is_an_arm_that_does_not_count(void **state)
{
	struct reading r;

	(void)state;
	reading_init(&r);
	add_text(&r, "{\"results\": [{\"command\": \"c\", \"user\": 1, \"times\": [1, 2, 3, 4],"
		     " \"exit_codes\": [0, 139, null, 0]}]}");
	assert_int_equal(r.result, 0);
	assert_int_equal(r.arms.count, 4);
	assert_true(value_of(&r, 0, "c") == 1 && value_of(&r, 1, "c") == 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(r.arms.items[i].state, i < 2 ? ARM_OK : ARM_FAILED);
		assert_string_equal(r.arms.items[i].status, i < 2 ? "ok" : "failed");
	}
	assert_true(isnan(value_of(&r, 2, "c")) && isnan(value_of(&r, 3, "c")));
	assert_string_equal(r.arms.items[3].source, "X: repetition 3 of c");
	assert_int_equal(metric_find(&r.metrics, "c: user"), SIZE_MAX); /* that mean has the failed runs in it */
	reading_release(&r);
}

static void a_failing_command_takes_nothing_from_the_others(void **state)
{
	struct reading r;
	size_t failed = 0;

	(void)state;
	reading_init(&r);
	add_file(&r, "hyperfine-failing.json");
	assert_int_equal(r.result, 0);
	for (size_t i = 0; i < r.arms.count; i++)
		failed += r.arms.items[i].state == ARM_FAILED;
	assert_int_equal(failed, 3);
	assert_int_equal(r.arms.count, 6);
	for (size_t i = 0; i < 3; i++)
		assert_true(value_of(&r, i, "sh -c 'exit 0'") > 0);
	assert_int_equal(metric_find(&r.metrics, "sh -c 'exit 1'"), SIZE_MAX);
	reading_release(&r);
}

static void memory_of_hyperfine_is_in_mib(void **state)
{
	struct reading r;

	(void)state;
	reading_init(&r);
	add_text(&r, "{\"results\": [{\"command\": \"c\", \"times\": [1, 2], \"memory_usage_byte\":"
		     " [1048576, 3145728]}]}");
	assert_int_equal(r.result, 0);
	assert_true(value_of(&r, 0, "c: peak memory") == 1 && value_of(&r, 1, "c: peak memory") == 3);
	assert_string_equal(metric_of(&r, "c: peak memory")->unit, "MiB");
	assert_int_equal(metric_of(&r, "c: peak memory")->direction, -1);
	reading_release(&r);
}

static void parameters_tell_commands_of_one_name_apart(void **state)
{
	struct reading r;

	(void)state;
	reading_init(&r);
	add_file(&r, "hyperfine-named-scan.json");
	assert_int_equal(r.result, 0);
	assert_true(value_of(&r, 1, "sleep (s=0.001)") > 0 && value_of(&r, 1, "sleep (s=0.002)") > 0);
	assert_int_equal(metric_find(&r.metrics, "sleep"), SIZE_MAX);
	reading_release(&r);
	reading_init(&r);
	add_text(&r, "{\"results\": ["
		     "{\"command\": \"c\", \"times\": [1], \"parameters\": {\"z\": \"1\", \"b\": \"x\", \"a\": \"1\"}},"
		     "{\"command\": \"c\", \"times\": [2], \"parameters\": {\"a\": \"2\", \"z\": \"2\", \"b\": \"x\"}},"
		     "{\"command\": \"d\", \"times\": [3], \"parameters\": {\"a\": \"2\"}},"
		     "{\"command\": \"e\", \"times\": [4]},"
		     "{\"command\": \"e\", \"times\": [5], \"parameters\": {\"a\": \"2\"}}]}");
	assert_int_equal(r.result, 0);
	assert_true(value_of(&r, 0, "c (a=1, z=1)") == 1);
	assert_true(value_of(&r, 0, "c (a=2, z=2)") == 2);
	assert_true(value_of(&r, 0, "d") == 3);
	assert_true(value_of(&r, 0, "e") == 4 && value_of(&r, 0, "e (a=2)") == 5);
	reading_release(&r);
}

static void a_name_that_comes_again_means_further_repetitions(void **state)
{
	struct reading r;

	(void)state;
	reading_init(&r);
	add_text(&r, "{\"results\": [{\"command\": \"c\", \"times\": [1, 2]}, {\"command\": \"c\", \"times\": [3]}]}");
	assert_int_equal(r.result, 0);
	assert_int_equal(r.arms.count, 3);
	assert_true(value_of(&r, 2, "c") == 3);
	add_text(&r, "{\"results\": [{\"command\": \"c\", \"times\": [4]}]}"); /* a second file of the same side */
	assert_int_equal(r.arms.count, 4);
	assert_true(value_of(&r, 3, "c") == 4);
	assert_int_equal(added(&r), 1);
	reading_release(&r);
}

static void a_benchmark_named_like_a_metric_is_kept_apart(void **state)
{
	struct reading r;

	(void)state;
	reading_init(&r);
	add_text(&r, "{\"results\": [{\"command\": \"decode_tps\", \"times\": [1]}]}");
	assert_int_equal(r.result, 0);
	assert_true(isnan(value_of(&r, 0, "decode_tps")));
	assert_true(value_of(&r, 0, "decode_tps (benchmark)") == 1);
	reading_release(&r);
}

static void one_name_in_two_units_is_refused(void **state)
{
	struct reading r;

	(void)state;
	reading_init(&r);
	add_text(&r, "{\"results\": [{\"command\": \"pp8\", \"times\": [1]}]}");
	assert_int_equal(r.result, 0);
	add_text(&r, "{\"n_prompt\": 8, \"n_gen\": 0, \"samples_ts\": [5]}");
	assert_int_equal(r.result, -1);
	assert_string_equal(r.err.text, "X: benchmark \"pp8\" is in tokens/s here and in s in another file");
	reading_release(&r);
}

static void repetitions_of_google_benchmark_are_in_seconds(void **state)
{
	struct reading r;
	size_t failed = 0;

	(void)state;
	reading_init(&r);
	add_file(&r, "google-benchmark.json"); /* its counter "ratio" is NaN, which is no concern of ours */
	assert_int_equal(r.result, 0);
	assert_string_equal(r.format, "google_benchmark");
	assert_true(near(value_of(&r, 0, "BM_fill/8/iterations:1000"), 7.0599999162368476e-9));
	assert_true(near(value_of(&r, 2, "BM_fill/8/iterations:1000"), 5.4980009736027569e-9));
	assert_true(near(value_of(&r, 0, "BM_fill/8/iterations:1000: CPU time"), 5.8880000000003339e-9));
	assert_true(near(value_of(&r, 0, "BM_fill/8/iterations:1000: items_per_second"), 1.6983695652172950e+08));
	assert_int_equal(metric_of(&r, "BM_fill/8/iterations:1000: items_per_second")->direction, +1);
	assert_int_equal(metric_of(&r, "BM_fill/8/iterations:1000")->direction, -1);
	assert_true(value_of(&r, 0, "BM_unit/iterations:1000") < 1e-5);
	assert_true(value_of(&r, 0, "BM_unit/iterations:1000") > 1e-9);
	for (size_t i = 0; i < r.arms.count; i++)
		failed += r.arms.items[i].state == ARM_FAILED;
	assert_int_equal(failed, 3); /* the three of BM_bad; aggregates are no arms */
	assert_int_equal(r.arms.count, 6);
	assert_int_equal(metric_find(&r.metrics, "BM_bad"), SIZE_MAX);
	assert_int_equal(metric_find(&r.metrics, "BM_fill/8/iterations:1000: ratio"), SIZE_MAX);
	assert_int_equal(metric_find(&r.metrics, "BM_fill/8/iterations:1000_mean"), SIZE_MAX);
	reading_release(&r);
}

static void aggregates_stand_in_where_there_is_nothing_else(void **state)
{
	struct reading r;

	(void)state;
	reading_init(&r);
	add_file(&r, "google-benchmark-aggregates.json");
	assert_int_equal(r.result, 0);
	assert_int_equal(r.arms.count, 1);
	assert_true(near(value_of(&r, 0, "BM_unit/iterations:1000"), 3.5954000850324519e-08)); /* the median */
	reading_release(&r);
}

static void time_units_and_skipped_rows_of_google_benchmark(void **state)
{
	struct reading r;

	(void)state;
	reading_init(&r);
	add_text(&r, "{\"benchmarks\": ["
		     "{\"name\": \"a\", \"real_time\": 2, \"cpu_time\": 1, \"time_unit\": \"ms\"},"
		     "{\"name\": \"b\", \"real_time\": 2, \"cpu_time\": 0, \"time_unit\": \"s\"},"
		     "{\"name\": \"c\", \"skipped\": true, \"skip_message\": \"no\"}]}");
	assert_int_equal(r.result, 0);
	assert_int_equal(r.arms.count, 1);
	assert_true(near(value_of(&r, 0, "a"), 0.002) && near(value_of(&r, 0, "a: CPU time"), 0.001));
	assert_true(value_of(&r, 0, "b") == 2 && value_of(&r, 0, "b: CPU time") == 0); /* 0 is a value */
	assert_int_equal(metric_find(&r.metrics, "c"), SIZE_MAX);
	reading_release(&r);
	refused("{\"benchmarks\": [{\"name\": \"a\", \"real_time\": 2, \"cpu_time\": 1, \"time_unit\": \"h\"}]}",
		"X: benchmark \"a\": \"time_unit\" is none of ns, us, ms and s");
}

static void samples_of_llama_bench_are_repetitions(void **state)
{
	static const char *const files[] = {"llama-bench-new.json", "llama-bench-new.jsonl", "llama-bench-old.jsonl"};
	static const double prompt[] = {413.509, 385.505, 416.315}, generated[] = {104.854, 104.334, 86.0225};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct reading r;

		reading_init(&r);
		add_file(&r, files[i]);
		assert_int_equal(r.result, 0);
		assert_string_equal(r.format, "llama_bench");
		assert_int_equal(r.arms.count, 2);
		assert_int_equal(added(&r), 2);
		assert_true(value_of(&r, 1, "llama ?B Q8_0 pp64") == prompt[i]);
		assert_true(value_of(&r, 0, "llama ?B Q8_0 tg16") == generated[i]);
		assert_string_equal(metric_of(&r, "llama ?B Q8_0 pp64")->unit, "tokens/s");
		assert_int_equal(metric_of(&r, "llama ?B Q8_0 pp64")->direction, +1);
		assert_true(metric_of(&r, "llama ?B Q8_0 pp64")->relative_floor == 0.003);
		reading_release(&r);
	}
}

static void builds_of_both_years_have_the_same_names(void **state)
{
	struct reading r;

	(void)state;
	reading_init(&r);
	add_file(&r, "llama-bench-old.jsonl");
	add_file(&r, "llama-bench-new.json");
	assert_int_equal(added(&r), 2);
	assert_int_equal(r.arms.count, 4);
	reading_release(&r);
}

static void settings_tell_tests_of_one_name_apart(void **state)
{
	struct reading r;

	(void)state;
	reading_init(&r);
	add_text(&r, "{\"n_threads\": 1, \"fa\": false, \"n_prompt\": 0, \"n_gen\": 4, \"n_depth\": 32,"
		     " \"test_time\": \"1\", \"samples_ts\": [1]}\n"
		     "{\"n_threads\": 2, \"fa\": false, \"n_prompt\": 0, \"n_gen\": 4, \"n_depth\": 32,"
		     " \"test_time\": \"2\", \"samples_ts\": [2]}\n"
		     "{\"n_threads\": 2, \"fa\": false, \"n_prompt\": 0, \"n_gen\": 4, \"n_depth\": 32,"
		     " \"test_time\": \"3\", \"samples_ts\": [3]}\n"
		     "{\"n_threads\": 4, \"n_prompt\": 8, \"n_gen\": 4, \"samples_ts\": [4]}\n");
	assert_int_equal(r.result, 0);
	assert_true(value_of(&r, 0, "tg4 @ d32 (n_threads=1)") == 1);
	assert_true(value_of(&r, 0, "tg4 @ d32 (n_threads=2)") == 2);
	assert_true(value_of(&r, 1, "tg4 @ d32 (n_threads=2)") == 3); /* run again: a further repetition */
	assert_true(value_of(&r, 0, "pp8+tg4") == 4);
	reading_release(&r);
}

static void a_bad_value_is_named_with_its_benchmark_and_key(void **state)
{
	(void)state;
	refused("{\"results\": [{\"command\": \"c\", \"times\": [1, -2]}]}",
		"X: benchmark \"c\": \"times[1]\" is negative");
	refused("{\"results\": [{\"command\": \"c\", \"times\": [NaN]}]}",
		"X: benchmark \"c\": \"times[0]\" is not a finite number");
	refused("{\"results\": [{\"command\": \"c\", \"times\": [-Infinity]}]}",
		"X: benchmark \"c\": \"times[0]\" is not a finite number");
	refused("{\"results\": [{\"command\": \"c\", \"times\": [\"1\"]}]}",
		"X: benchmark \"c\": \"times[0]\" is not a finite number");
	refused("{\"results\": [{\"command\": \"c\", \"times\": [null]}]}",
		"X: benchmark \"c\": \"times[0]\" is not a finite number");
	refused("{\"results\": [{\"command\": \"c\", \"times\": [1], \"user\": -1}]}",
		"X: benchmark \"c\": \"user\" is negative");
	refused("{\"results\": [{\"command\": \"c\", \"times\": 1}]}",
		"X: benchmark \"c\": \"times\" is missing or has no value");
	refused("{\"results\": [{\"command\": \"c\", \"times\": [1, 2], \"exit_codes\": [0]}]}",
		"X: benchmark \"c\": \"exit_codes\" does not have one value for each of \"times\"");
	refused("{\"benchmarks\": [{\"name\": \"a\\u001b\", \"real_time\": nan, \"time_unit\": \"s\"}]}",
		"X: benchmark \"a?\": \"real_time\" is not a finite number");
	refused("{\"benchmarks\": [{\"name\": \"a\", \"real_time\": 1, \"cpu_time\": 1, \"time_unit\": \"s\","
		" \"items_per_second\": -inf}]}",
		"X: benchmark \"a\": \"items_per_second\" is not a finite number");
	refused("{\"n_prompt\": 8, \"n_gen\": 0, \"samples_ts\": [1, inf]}",
		"X: benchmark \"pp8\": \"samples_ts[1]\" is not a finite number");
	refused("{\"n_prompt\": -8, \"samples_ts\": [1]}", "X: row 1: \"n_prompt\" is no count");
	refused("[{\"n_prompt\": 0, \"n_gen\": 0, \"samples_ts\": [1]}]",
		"X: row 1: neither \"n_prompt\" nor \"n_gen\" says what was tested");
	refused("[{\"n_prompt\": 4, \"samples_ts\": [1]}, 5]", "X: row 2 is no object");
}

static void a_word_in_a_name_is_no_number(void **state)
{
	struct reading r;

	(void)state;
	reading_init(&r);
	add_text(&r, "{\"results\": [{\"command\": \"\\\\\\\"nan -inf\\\"\", \"times\": [1]}]}");
	assert_int_equal(r.result, 0);
	assert_true(value_of(&r, 0, "\\\"nan -inf\"") == 1);
	reading_release(&r);
}

static void truncated_text_is_named_with_line_and_column(void **state)
{
	(void)state;
	refused("{\"results\": [\n{\"command\": \"c\",",
		"X: line 2, column 16: string or '}' expected near end of file");
	refused("[", "X: line 1, column 1: ']' expected near end of file");
	refused("{\"n_prompt\": 1,\n \"n_gen\": 0, \"samples_ts\": [1]}\n\n {\"n_prompt\": 1",
		"X: line 4, column 15: '}' expected near end of file");
	refused("{\"n_prompt\": 1, \"samples_ts\": [1]} {\"n_prompt\": x}",
		"X: line 1, column 49: invalid token near 'x'");
	refused("{\"results\": []} x", "X: line 1, column 17: something stands behind the end of the object");
	refused("{\"results\": [], \"results\": []}", "X: line 1, column 25: duplicate object key near '\"results\"'");
}

static void an_empty_list_is_an_error_that_says_so(void **state)
{
	(void)state;
	refused("{\"results\": []}", "X: \"results\" is empty: no benchmark was finished");
	refused("{\"context\": {}, \"benchmarks\": []}", "X: \"benchmarks\" is empty: no benchmark was run");
	refused(" [\n]\n", "X: holds no test: llama-bench did not finish any");
	refused("{\"results\": 3}", "X: \"results\" is missing or no list");
	refused("{\"results\": [3]}", "X: results[0]: \"command\" is missing or no text");
	refused("{\"benchmarks\": [{\"name\": \"a\", \"skipped\": true}]}", "X: holds no results");
}

static void other_files_are_of_no_format(void **state)
{
	static const char *const texts[] = {
		"",
		"x",
		"{",
		"}",
		"{}",
		"\"results\":",
		"[[\"results\"]]",
		"{\"schema\": 1, \"command\": \"results\"}",
		"{\"a\": {\"results\": []}}",
		"{\"results",
		"{\"results\"",
		"{\"a\": \"\\",
		"[]]",
		"[] x",
		"{} \"results\":",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (foreign_of(texts[i], strlen(texts[i])))
			fail_msg("%s was taken", texts[i]);
}

/* `head`, then `piece` so often, then `tail`. */
static void repeated(struct reading *r, const char *head, const char *piece, size_t times, const char *tail)
{
	struct buf text;

	buf_init(&text);
	buf_puts(&text, head);
	for (size_t i = 0; i < times; i++)
		buf_puts(&text, piece);
	buf_puts(&text, tail);
	assert_false(text.failed);
	add_bytes(r, text.text, text.length);
	buf_release(&text);
}

static void what_would_fill_the_memory_is_refused(void **state)
{
	struct reading r;

	(void)state;
	reading_init(&r);
	repeated(&r, "{\"results\": [", "{},", 1000001, "0]}");
	assert_int_equal(r.result, -1);
	assert_string_equal(r.err.text,
			    "X: holds more values than can be read (3000000 numbers, 1000000 objects and lists)");
	repeated(&r, "{\"results\": [{\"command\": \"c\", \"times\": [", "1,", 3000000, "1]}]}");
	assert_int_equal(r.result, -1);
	repeated(&r, "{\"results\": [{\"command\": \"c\", \"times\": [", "1,", 2000000, "1]}]}");
	assert_int_equal(r.result, -1);
	assert_string_equal(r.err.text, "X: 1 kinds of values with so many repetitions are more than can be compared");
	repeated(&r, "{\"results\": [], \"a\": \"", "0123456789abcdef", (64 << 20) / 16, "\"}");
	assert_string_equal(r.err.text, "X: larger than 64 MiB");
	repeated(&r, "{\"results\": ", "[", 100000, "");
	assert_int_equal(r.result, -1);
	assert_int_equal(r.arms.count, 0);
	reading_release(&r);
}

static void add_many(struct reading *r, unsigned benchmarks)
{
	struct buf text;

	buf_init(&text);
	buf_puts(&text, "{\"results\": [");
	for (unsigned i = 0; i < benchmarks; i++)
		buf_printf(&text, "%s{\"command\": \"%u\", \"times\": [1, 2]}", i ? "," : "", i);
	buf_puts(&text, "]}");
	add_bytes(r, text.text, text.length);
	buf_release(&text);
}

static void up_to_100000_benchmarks_are_read(void **state)
{
	struct reading r;

	(void)state;
	reading_init(&r);
	add_many(&r, 100001);
	assert_int_equal(r.result, -1);
	assert_string_equal(r.err.text, "X: holds more than 100000 benchmarks");
	assert_int_equal(added(&r), 0);
	add_many(&r, 100000);
	assert_int_equal(r.result, 0);
	assert_int_equal(added(&r), 100000);
	assert_true(value_of(&r, 1, "99999") == 2);
	reading_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_of_hyperfine_are_repetitions_in_seconds),
		cmocka_unit_test(a_failed_run_of_hyperfine_is_an_arm_that_does_not_count),
		cmocka_unit_test(a_failing_command_takes_nothing_from_the_others),
		cmocka_unit_test(memory_of_hyperfine_is_in_mib),
		cmocka_unit_test(parameters_tell_commands_of_one_name_apart),
		cmocka_unit_test(a_name_that_comes_again_means_further_repetitions),
		cmocka_unit_test(a_benchmark_named_like_a_metric_is_kept_apart),
		cmocka_unit_test(one_name_in_two_units_is_refused),
		cmocka_unit_test(repetitions_of_google_benchmark_are_in_seconds),
		cmocka_unit_test(aggregates_stand_in_where_there_is_nothing_else),
		cmocka_unit_test(time_units_and_skipped_rows_of_google_benchmark),
		cmocka_unit_test(samples_of_llama_bench_are_repetitions),
		cmocka_unit_test(builds_of_both_years_have_the_same_names),
		cmocka_unit_test(settings_tell_tests_of_one_name_apart),
		cmocka_unit_test(a_bad_value_is_named_with_its_benchmark_and_key),
		cmocka_unit_test(a_word_in_a_name_is_no_number),
		cmocka_unit_test(truncated_text_is_named_with_line_and_column),
		cmocka_unit_test(an_empty_list_is_an_error_that_says_so),
		cmocka_unit_test(other_files_are_of_no_format),
		cmocka_unit_test(what_would_fill_the_memory_is_refused),
		cmocka_unit_test(up_to_100000_benchmarks_are_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
