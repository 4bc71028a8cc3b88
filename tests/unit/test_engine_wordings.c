/* Wordings and situations of which there is no recording: a few lines each in tests/data/engine/written, and what they
 * must give, both written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine_replay.h"

#define GIVES(test, log)                                                                                               \
	static void test(void **state)                                                                                 \
	{                                                                                                              \
		(void)state;                                                                                           \
		replay_expect("written/" log);                                                                         \
	}

GIVES(decimal_commas_are_read, "decimal-commas")
GIVES(one_token_has_no_rate_and_is_no_prefill, "one-token")
GIVES(two_generations_of_a_program_with_the_library_are_weighted, "library-two-generations")
GIVES(a_timing_without_a_printed_rate_has_none, "timings-without-rates")
GIVES(a_conversation_that_waits_for_its_user_has_no_phases_inside, "conversation-waits")
GIVES(of_two_answers_with_rates_but_no_times_the_last_one_counts, "chat-two-answers")
GIVES(the_server_inside_a_verbose_llama_cli_tells_its_times, "chat-verbose")
GIVES(other_columns_depths_and_repeated_tests_of_a_table_are_read, "bench-cuda-table")
GIVES(half_a_number_in_a_table_is_no_rate, "bench-odd-rates")
GIVES(a_rate_may_be_set_apart_from_its_deviation_in_several_ways, "bench-rate-forms")
GIVES(five_repetitions_are_meant_where_llama_bench_is_in_the_command, "bench-default-repetitions")
GIVES(the_deviation_of_one_repetition_is_not_known, "bench-one-repetition")
GIVES(a_test_printed_in_two_forms_counts_once_by_the_one_that_says_more, "bench-two-forms")
GIVES(a_row_that_is_seen_after_the_next_test_began_is_the_test_before_s, "bench-row-after-start")
GIVES(a_test_that_was_killed_has_no_value, "bench-killed")
GIVES(an_object_whose_end_is_lost_does_not_swallow_the_next_run, "bench-killed-in-object")
GIVES(two_runs_in_a_script_follow_each_other, "bench-two-runs")
GIVES(results_that_come_together_do_not_say_when_each_test_ran, "bench-all-at-once")
GIVES(repetitions_are_inferred_where_all_generations_agree, "bench-inferred")
GIVES(a_single_repetition_is_inferred_where_there_is_no_deviation, "bench-inferred-one")
GIVES(nothing_is_inferred_where_several_repetitions_would_have_no_deviation, "bench-no-deviation")
GIVES(nothing_is_inferred_from_a_time_that_is_no_whole_number_of_repetitions, "bench-pause")
GIVES(nothing_is_inferred_where_the_first_row_would_not_fit, "bench-long-pause")
GIVES(nothing_is_inferred_where_generations_disagree, "bench-rows-disagree")
GIVES(nothing_is_inferred_where_one_repetition_would_have_a_deviation, "bench-one-deviates")
GIVES(nothing_is_inferred_from_a_rate_that_varies_much, "bench-unsteady")
GIVES(nothing_is_inferred_from_one_row, "bench-one-row")
GIVES(nothing_is_inferred_where_some_rows_came_together, "bench-held-up")
GIVES(nothing_is_inferred_across_a_change_of_model, "bench-other-settings")
GIVES(nothing_is_inferred_across_two_runs, "bench-two-tables")
GIVES(nothing_is_inferred_from_repetitions_as_short_as_the_set_up, "bench-short-repetitions")
GIVES(nothing_is_inferred_from_few_tokens, "bench-few-tokens")
GIVES(a_json_array_on_one_line_is_read, "bench-array-on-one-line")
GIVES(rates_that_are_none_and_broken_json_give_no_value, "bench-broken-json")
GIVES(sql_of_early_builds_is_read, "bench-early-sql")
GIVES(cached_cancelled_and_unfinished_requests_are_told_apart, "server-late-2025")
GIVES(what_was_cached_follows_from_the_size_of_the_slot, "server-cached-by-size")
GIVES(a_log_may_begin_in_the_middle_of_a_request, "server-log-begins-late")
GIVES(a_server_that_loads_another_model_loads_again, "server-second-model")
GIVES(a_single_generated_token_is_not_measured, "server-one-token")

/* Each of these holds words that a parser looks for, and is none of its logs. */
static void other_text_is_no_engine(void **state)
{
	static const char *const texts[] = {
		"Loading model... done\nLoading weights took 3.5 seconds\nStarting to load model resnet50\nThroughput: "
		"12.5 images/s\n",
		"[10/120] Compiling C object src/load_tensors.c.o\nload_model.c:10: warning: unused variable 'slot'\n",
		"| model | test | t/s |\n| --- | --- | --- |\n| a | b | c |\n",
		"| Model                | Test     | Speed |\n|----------------------|----------|-------|\n| pp512 | "
		"tg128 | 5.0 |\n",
		"| model                | accuracy | t/s |\n| ---- | ---- | ---- |\n| bert | 0.5 | 12.0 |\n",
		"{\"level\":\"info\",\"msg\":\"HTTP server listening\",\"port\":8080}\nserver is listening on "
		"http://localhost:3000\n",
		"INFO:     Started server process [1]\nINFO:     Waiting for application startup.\n"
		"INFO:     Application startup complete.\nINFO:     Shutting down\n",
		"slot 3 released (2 cars)\nall slots are idle\ncleaning up before exit\nselected slot by "
		"lot\nprocessing task 5 of 7\n",
		"total time = 12.0 s\nprompt eval time = unknown\nreal\t0m1.0s\nload time = 5.00 ms\nmodel loaded\n",
		"{\"n_prompt\": 5, \"note\": \"avg_ts\"}\n{\n  \"n_prompt\": 5,\n  \"n_gen\": 3\n}\n",
		"a,b,avg_ts,stddev_ts\n1,2,3,4\nINSERT INTO llama_bench_notes VALUES (1);\n",
		"build: 80fb11a (1)\nwarming up the model\nsystem_info: n_threads = 2\n[ Prompt: what ]\n> quoted\n",
		"llama-bench: benchmark one/two: starting\nllama-bench: benchmark 1/2 is done\n",
		"\x7f"
		"ELF\x02\x01\x01 \x80\x81\xfe\xff| model  \x01 { \"avg_ts\" \xe2\x28\xa1\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct engine_context context = {.start = 0, .end = INT64_C(10000000000)};
		struct engine_set *set = engine_set_new("auto", &context);
		struct line_splitter *s = line_splitter_new(0, replay_each, set);
		struct engine_result r;

		line_splitter_feed(s, 5, texts[i], strlen(texts[i]));
		line_splitter_end(s);
		engine_result_init(&r);
		assert_int_equal(engine_set_finish(set, &r, NULL), 0);
		if (r.known > 0)
			fail_msg("text %zu is taken for the log of %s (%" PRIu64 " lines)", i, r.engine, r.known);
		assert_int_equal(r.marks.count, 0);
		assert_int_equal(r.warnings.count, 0);
		engine_result_release(&r);
		line_splitter_free(s);
		engine_set_free(set);
	}
}

/* Ten thousand requests are kept; all count. */
static void many_requests_are_counted_and_the_first_ones_kept(void **state)
{
	enum { REQUESTS = 12000 };
	struct engine_context context = {.start = 0, .end = INT64_MAX / 2};
	struct engine_set *set = engine_set_new("auto", &context);
	struct line_splitter *s = line_splitter_new(0, replay_each, set);
	struct engine_result r;
	struct buf text;

	(void)state;
	buf_init(&text);
	for (int i = 0; i < REQUESTS; i++) {
		buf_clear(&text);
		buf_printf(&text,
			   "slot launch_slot_: id  0 | task %d | processing task\n"
			   "slot print_timing: id  0 | task %d | prompt eval time = 10.00 ms / 50 tokens (0.2 ms per "
			   "token, %d.00 tokens per second)\n"
			   "slot print_timing: id  0 | task %d | total time = 10.00 ms / 50 tokens\n"
			   "slot      release: id  0 | task %d | stop processing: n_tokens = 50, truncated = 0\n",
			   i, i, i < REQUESTS / 2 ? 100 : 200, i, i);
		line_splitter_feed(s, i, text.text, text.length);
	}
	engine_result_init(&r);
	assert_int_equal(engine_set_finish(set, &r, NULL), 0);
	assert_int_equal(r.request_count, 10000);
	assert_int_equal(r.requests_dropped, REQUESTS - 10000);
	assert_true(fabs(r.prefill_tokens_per_s - 150) < 1e-9);
	engine_result_release(&r);
	buf_release(&text);
	line_splitter_free(s);
	engine_set_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decimal_commas_are_read),
		cmocka_unit_test(one_token_has_no_rate_and_is_no_prefill),
		cmocka_unit_test(two_generations_of_a_program_with_the_library_are_weighted),
		cmocka_unit_test(a_timing_without_a_printed_rate_has_none),
		cmocka_unit_test(a_conversation_that_waits_for_its_user_has_no_phases_inside),
		cmocka_unit_test(of_two_answers_with_rates_but_no_times_the_last_one_counts),
		cmocka_unit_test(the_server_inside_a_verbose_llama_cli_tells_its_times),
		cmocka_unit_test(other_columns_depths_and_repeated_tests_of_a_table_are_read),
		cmocka_unit_test(half_a_number_in_a_table_is_no_rate),
		cmocka_unit_test(a_rate_may_be_set_apart_from_its_deviation_in_several_ways),
		cmocka_unit_test(five_repetitions_are_meant_where_llama_bench_is_in_the_command),
		cmocka_unit_test(the_deviation_of_one_repetition_is_not_known),
		cmocka_unit_test(a_test_printed_in_two_forms_counts_once_by_the_one_that_says_more),
		cmocka_unit_test(a_row_that_is_seen_after_the_next_test_began_is_the_test_before_s),
		cmocka_unit_test(a_test_that_was_killed_has_no_value),
		cmocka_unit_test(an_object_whose_end_is_lost_does_not_swallow_the_next_run),
		cmocka_unit_test(two_runs_in_a_script_follow_each_other),
		cmocka_unit_test(results_that_come_together_do_not_say_when_each_test_ran),
		cmocka_unit_test(repetitions_are_inferred_where_all_generations_agree),
		cmocka_unit_test(a_single_repetition_is_inferred_where_there_is_no_deviation),
		cmocka_unit_test(nothing_is_inferred_where_several_repetitions_would_have_no_deviation),
		cmocka_unit_test(nothing_is_inferred_from_a_time_that_is_no_whole_number_of_repetitions),
		cmocka_unit_test(nothing_is_inferred_where_the_first_row_would_not_fit),
		cmocka_unit_test(nothing_is_inferred_where_generations_disagree),
		cmocka_unit_test(nothing_is_inferred_where_one_repetition_would_have_a_deviation),
		cmocka_unit_test(nothing_is_inferred_from_a_rate_that_varies_much),
		cmocka_unit_test(nothing_is_inferred_from_one_row),
		cmocka_unit_test(nothing_is_inferred_where_some_rows_came_together),
		cmocka_unit_test(nothing_is_inferred_across_a_change_of_model),
		cmocka_unit_test(nothing_is_inferred_across_two_runs),
		cmocka_unit_test(nothing_is_inferred_from_repetitions_as_short_as_the_set_up),
		cmocka_unit_test(nothing_is_inferred_from_few_tokens),
		cmocka_unit_test(a_json_array_on_one_line_is_read),
		cmocka_unit_test(rates_that_are_none_and_broken_json_give_no_value),
		cmocka_unit_test(sql_of_early_builds_is_read),
		cmocka_unit_test(cached_cancelled_and_unfinished_requests_are_told_apart),
		cmocka_unit_test(what_was_cached_follows_from_the_size_of_the_slot),
		cmocka_unit_test(a_log_may_begin_in_the_middle_of_a_request),
		cmocka_unit_test(a_server_that_loads_another_model_loads_again),
		cmocka_unit_test(a_single_generated_token_is_not_measured),
		cmocka_unit_test(other_text_is_no_engine),
		cmocka_unit_test(many_requests_are_counted_and_the_first_ones_kept),
	};

	replay_data();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
