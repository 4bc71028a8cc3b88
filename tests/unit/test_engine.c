/* Recorded logs, as they were and in other dress. tests/data/engine holds them, each with what it must give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine_replay.h"

/* The rates as the logs print them, written off by hand (a server's from its requests); NAN: none. */
static const struct {
	const char *log, *engine;
	double prefill, decode;
} logs[] = {
	{"new-bench-default", "llama-bench", 430.82, 103.24},
	{"new-bench-o-md", "llama-bench", 439.44, 105.86},
	{"new-bench-o-json", "llama-bench", 413.831047, 105.134016},
	{"new-bench-o-jsonl", "llama-bench", 412.536019, 104.709997},
	{"new-bench-o-csv", "llama-bench", 422.215158, 114.441793},
	{"new-bench-o-sql", "llama-bench", 404.529399, 114.649267},
	{"new-bench-progress", "llama-bench", 422.62, 111.80},
	{"new-bench-progress-pty", "llama-bench", 418.30, 112.77},
	{"new-bench-verbose-progress", "llama-bench", 420.39, 113.10},
	{"new-bench-no-warmup", "llama-bench", 410.84, 115.61},
	{"new-bench-pg-depth", "llama-bench", 418.91, 111.58},
	{"new-bench-missing-model", "llama-bench", NAN, NAN},
	{"new-bench-missing-model-json", "llama-bench", NAN, NAN},
	{"new-bench-bad-flag", "none", NAN, NAN},
	{"new-bench-sigterm-json", "llama-bench", 415.060560, NAN},
	{"new-bench-coldcache-mmap", "llama-bench", 443.106875, 106.471137},
	{"new-bench-warmcache", "llama-bench", 442.490887, 105.476068},
	{"new-bench-memlimit240-mmap", "llama-bench", 186.622551, 6.394194},
	{"old-bench-default", "llama-bench", 414.09, 86.41},
	{"old-bench-o-jsonl", "llama-bench", 415.388408, 83.959956},
	{"old-bench-progress", "llama-bench", 417.14, 85.06},
	{"oldest-bench", "llama-bench", 2233.80, 82.05},
	{"new-completion-default", "llama-cli", 410.30, 108.96},
	{"new-completion-lv4", "llama-cli", 397.41, 113.79},
	{"new-completion-colors", "llama-cli", 386.47, 109.72},
	{"new-completion-noperf", "llama-cli", NAN, NAN},
	{"new-cli-single-turn", "llama-cli", 412.3, 101.3},
	{"old-cli-default", "llama-cli", 410.99, 82.46},
	{"oldest-cli", "llama-cli", 15.74, 6.20},
	{"new-server-default", "llama-server",
	 (343.04 * 104.94 + 291.22 * 7945.85 + 375.15 * 111.95) / (104.94 + 7945.85 + 111.95),
	 (81.21 * 381.70 + 49.05 * 3241.37 + 85.90 * 34.92 + 90.03 * 77.75) / (381.70 + 3241.37 + 34.92 + 77.75)},
	{"new-server-parallel4", "llama-server",
	 (228.97 * 61.14 + 111.30 * 125.78 + 111.31 * 125.77 + 111.30 * 125.78) / (61.14 + 125.78 + 125.77 + 125.78),
	 (28.20 * 1666.51 + 29.85 * 1574.72 + 29.84 * 1574.91 + 29.84 * 1574.89) /
		 (1666.51 + 1574.72 + 1574.91 + 1574.89)},
	{"old-server-default", "llama-server", (263.44 * 136.65 + 263.18 * 8769.71) / (136.65 + 8769.71),
	 (92.37 * 346.44 + 47.05 * 1360.23) / (346.44 + 1360.23)},
	{"mid-server-keyvalue", "llama-server", (529.38 * 1428.08 + 654.88 * 2259.97) / (1428.08 + 2259.97),
	 (46.23 * 2163.0 + 39.60 * 1010.1 + 40.00 * 500.0) / (2163.0 + 1010.1 + 500.0)},
	{"mid-server-json", "llama-server", 12.48, 6.49},
	{"oldest-server", "llama-server", 117.51, (3.47 * 115381.73 + 3.33 * 600.0) / (115381.73 + 600.0)},
	{"new-vllm-server", "vllm", NAN, NAN},
	{"old-vllm-offline", "vllm", NAN, NAN},
};

#define LOGS (sizeof logs / sizeof *logs)

static void assert_rate(const char *log, const char *which, double got, double wanted)
{
	if (isnan(wanted) ? !isnan(got) : !(fabs(got - wanted) <= 1e-9 * wanted))
		fail_msg("%s: %s is %.9g, not %.9g", log, which, got, wanted);
}

static void the_rates_are_those_that_the_log_prints(void **state)
{
	(void)state;
	for (size_t i = 0; i < LOGS; i++) {
		struct engine_result r;

		replay(logs[i].log, &plain, &r);
		if (strcmp(r.known ? r.engine : "none", logs[i].engine) != 0)
			fail_msg("%s: taken for the log of %s", logs[i].log, r.known ? r.engine : "none");
		assert_rate(logs[i].log, "prefill", r.prefill_tokens_per_s, logs[i].prefill);
		assert_rate(logs[i].log, "decode", r.decode_tokens_per_s, logs[i].decode);
		engine_result_release(&r);
	}
}

static void each_log_gives_its_expected_result(void **state)
{
	(void)state;
	for (size_t i = 0; i < LOGS; i++)
		replay_expect(logs[i].log);
}

static void marks_are_in_order_and_inside_the_run(void **state)
{
	(void)state;
	for (size_t i = 0; i < LOGS; i++) {
		struct engine_result r;
		struct phases phases;
		struct warnings warnings;

		replay(logs[i].log, &plain, &r);
		for (size_t k = 0; k < r.marks.count; k++) {
			assert_true(r.marks.items[k].t >= REPLAY_START);
			assert_true(k == 0 || r.marks.items[k].t > r.marks.items[k - 1].t);
		}
		phases_init(&phases);
		warnings_init(&warnings);
		assert_int_equal(phases_from_marks(&phases, &r.marks, REPLAY_START, INT64_MAX, "start", true, &warnings,
						   NULL),
				 0);
		assert_int_equal(warnings.count, 0);
		phases_release(&phases);
		warnings_release(&warnings);
		engine_result_release(&r);
	}
}

static void print_log(const char *log, const struct dress *dress, struct buf *text)
{
	struct engine_result r;

	replay(log, dress, &r);
	buf_clear(text);
	replay_print(&r, text);
	engine_result_release(&r);
}

static void assert_same_in(const struct dress *dress, const char *what)
{
	struct buf got, wanted;

	buf_init(&got);
	buf_init(&wanted);
	for (size_t i = 0; i < LOGS; i++) {
		print_log(logs[i].log, &plain, &wanted);
		print_log(logs[i].log, dress, &got);
		if (strcmp(got.text, wanted.text) != 0)
			fail_msg("%s %s gave\n%s\ninstead of\n%s", logs[i].log, what, got.text, wanted.text);
	}
	buf_release(&got);
	buf_release(&wanted);
}

static void it_does_not_matter_where_chunks_are_cut(void **state)
{
	static const size_t chunks[] = {1, 2, 3, 7, 64};

	(void)state;
	for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
		struct dress dress = plain;

		dress.chunk = chunks[i];
		assert_same_in(&dress, "in small chunks");
	}
}

static void colours_titles_and_line_ends_do_not_matter(void **state)
{
	static const struct dress dresses[] = {
		{NULL, NULL, "\r\n", 4096, false, false, "auto"},
		{NULL, NULL, "\r\r\n", 5, true, false, "auto"},
		{"\033[32m", "\033[0m", "\n", 3, false, false, "auto"},
		{"\033]0;a title\007\033[38;2;255;0;0m", "\033[K\033(B", "\r\n", 2, true, false, "auto"},
		{"\033]8;;http://x\033\\", "\033]8;;\033\\", "\n", 11, true, false, "auto"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof dresses / sizeof *dresses; i++)
		assert_same_in(&dresses[i], "with escape sequences");
}

static void prefixes_of_other_tools_do_not_matter(void **state)
{
	static const char *const prefixes[] = {
		"llama-1  | ",
		"bench | ",
		"[1,0]<stderr>:",
		"2026-11-29T16:31:04.123456789Z ",
		"2026-11-29 16:31:04,123 INFO ",
		"Nov 29 16:31:04 host llama[3601]: ",
		"[35729] ",
	};

	(void)state;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		struct dress dress = plain;

		dress.before = prefixes[i];
		assert_same_in(&dress, prefixes[i]);
	}
}

static void without_the_command_all_that_is_printed_is_still_found(void **state)
{
	struct dress dress = plain;

	(void)state;
	dress.no_command = true;
	for (size_t i = 0; i < LOGS; i++) {
		struct engine_result with, without;

		replay(logs[i].log, &plain, &with);
		replay(logs[i].log, &dress, &without);
		assert_string_equal(with.engine, without.engine);
		assert_int_equal(with.test_count, without.test_count);
		assert_int_equal(with.request_count, without.request_count);
		assert_rate(logs[i].log, "prefill", without.prefill_tokens_per_s, logs[i].prefill);
		assert_rate(logs[i].log, "decode", without.decode_tokens_per_s, logs[i].decode);
		engine_result_release(&with);
		engine_result_release(&without);
	}
}

/* But for the last phase, whose name says whether the tool told its end. */
static void assert_same_phases(const struct marks *got, const struct marks *wanted)
{
	assert_int_equal(got->count, wanted->count);
	for (size_t i = 0; i + 1 < got->count; i++) {
		assert_string_equal(got->items[i].name, wanted->items[i].name);
		assert_int_equal(got->items[i].group, wanted->items[i].group);
	}
}

/* The command of all these says -r 2. */
static void without_the_command_repetitions_are_inferred_from_the_times_of_rows(void **state)
{
	static const char *const inferred[] = {"new-bench-default", "new-bench-o-md", "new-bench-o-csv",
					       "new-bench-o-sql", "old-bench-default"};
	struct dress dress = plain;
	struct engine_result json;

	(void)state;
	dress.no_command = true;
	replay("new-bench-o-json", &dress, &json);
	assert_int_equal(json.warnings.count, 0); /* it prints its samples */
	for (size_t i = 0; i < sizeof inferred / sizeof *inferred; i++) {
		struct engine_result with, without;

		replay(inferred[i], &plain, &with);
		replay(inferred[i], &dress, &without);
		assert_same_phases(&without.marks, &json.marks);
		for (size_t k = 0; k < with.marks.count; k++)
			assert_int_equal(without.marks.items[k].t, with.marks.items[k].t);
		for (size_t k = 0; k < without.test_count; k++)
			assert_int_equal(without.tests[k].repetitions, -1);
		assert_int_equal(without.warnings.count, 1);
		assert_non_null(strstr(without.warnings.texts[0], "repetitions (2) was inferred"));
		engine_result_release(&with);
		engine_result_release(&without);
	}
	engine_result_release(&json);
}

static void a_log_that_is_cut_anywhere_is_survived(void **state)
{
	char path[512];
	struct buf file, part;
	struct error err;

	(void)state;
	buf_init(&file);
	buf_init(&part);
	for (size_t i = 0; i < LOGS; i++) {
		snprintf(path, sizeof path, "%s/engine/%s.tsv", replay_data(), logs[i].log);
		buf_clear(&file);
		assert_int_equal(fs_read_file(path, 1 << 20, &file, &err), 0);
		for (size_t length = file.length - 1; length > 200; length -= 1 + length / 23) {
			struct engine_result r;
			size_t whole = length;

			while (file.text[whole - 1] != '\n' || strcspn(file.text + whole, "\t") > 12)
				whole--; /* at a row's begin, then the log's own text is cut */
			buf_clear(&part);
			buf_append(&part, file.text, whole);
			replay_text(part.text, &plain, &r);
			assert_true(isnan(r.prefill_tokens_per_s) || r.prefill_tokens_per_s > 0);
			assert_true(isnan(r.decode_tokens_per_s) || r.decode_tokens_per_s > 0);
			engine_result_release(&r);
		}
	}
	buf_release(&file);
	buf_release(&part);
}

static void the_name_of_a_parser_picks_it_alone(void **state)
{
	struct dress dress = plain;
	struct engine_result r;

	(void)state;
	dress.engine = "llama-cli";
	replay("new-bench-verbose-progress", &dress, &r);
	assert_string_equal(r.engine, "llama-cli");
	engine_result_release(&r);
	dress.engine = "vllm";
	replay("new-bench-progress", &dress, &r);
	assert_int_equal(r.known, 0);
	assert_int_equal(r.marks.count, 0);
	engine_result_release(&r);
	assert_null(engine_find("nosuch"));
	for (size_t i = 0; i < engine_count; i++)
		assert_ptr_equal(engine_find(engines[i]->name), engines[i]);
}

/* A phrase that is too short would be missed by the filter of the set; one too many, too. */
static void the_table_of_engines_fits_the_filter(void **state)
{
	size_t phrases = 0;

	(void)state;
	assert_in_range(engine_count, 1, 8);
	for (size_t i = 0; i < engine_count; i++)
		for (const char *const *phrase = engines[i]->phrases; *phrase; phrase++, phrases++)
			if (strlen(*phrase) < ENGINE_PHRASE_MIN)
				fail_msg("%s: the phrase \"%s\" is too short", engines[i]->name, *phrase);
	assert_in_range(phrases, 1, ENGINE_PHRASES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rates_are_those_that_the_log_prints),
		cmocka_unit_test(each_log_gives_its_expected_result),
		cmocka_unit_test(marks_are_in_order_and_inside_the_run),
		cmocka_unit_test(it_does_not_matter_where_chunks_are_cut),
		cmocka_unit_test(colours_titles_and_line_ends_do_not_matter),
		cmocka_unit_test(prefixes_of_other_tools_do_not_matter),
		cmocka_unit_test(without_the_command_all_that_is_printed_is_still_found),
		cmocka_unit_test(without_the_command_repetitions_are_inferred_from_the_times_of_rows),
		cmocka_unit_test(a_log_that_is_cut_anywhere_is_survived),
		cmocka_unit_test(the_name_of_a_parser_picks_it_alone),
		cmocka_unit_test(the_table_of_engines_fits_the_filter),
	};

	replay_data();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
