#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trial/trial.h"

/* What a trial did, as text: "A0 B0 ..." with the place in the design; "w" for a warm-up. */
struct log {
	char text[65536];
	size_t runs, stop_at; /* stop_at: the run that says stop; 0: none */
	int answer;           /* what it says */
	size_t asked[16], asked_count, decide_at;
	size_t progress, of;
};

static int run(void *context, size_t side, int block, int position, size_t turn, struct error *err)
{
	struct log *log = context;
	size_t used = strlen(log->text);

	if (++log->runs == log->stop_at)
		return log->answer < 0 ? error_set(err, "the arm cannot be run") : log->answer;
	if (block < 0)
		snprintf(log->text + used, sizeof log->text - used, "w%c ", (int)('A' + side));
	else
		snprintf(log->text + used, sizeof log->text - used, "%c%zu@%d.%d ", (int)('A' + side), turn, block,
			 position);
	return 0;
}

static bool decided(void *context, size_t pairs)
{
	struct log *log = context;

	log->asked[log->asked_count++] = pairs;
	return pairs == log->decide_at;
}

static void progress(void *context, size_t at, size_t of, size_t side)
{
	struct log *log = context;

	(void)side;
	assert_int_equal(at, log->progress++);
	log->of = of;
}

static struct trial_options options_for(struct log *log, size_t sides, size_t pairs, const char *order)
{
	*log = (struct log){.text = ""};
	return (struct trial_options){
		.sides = sides, .pairs = pairs, .order = order, .seed = 7, .run = run, .context = log};
}

static void a_block_is_a_permutation_and_its_mirror_image(void **state)
{
	struct log log;

	(void)state;
	for (size_t sides = 1; sides <= 5; sides++) {
		struct trial_options o = options_for(&log, sides, 40, "random");
		uint16_t *plan;
		size_t count;

		assert_int_equal(trial_plan(&o, &plan, &count, NULL), 0);
		assert_int_equal(count, 40 * sides);
		for (size_t block = 0; block < count; block += 2 * sides) {
			unsigned seen = 0;

			for (size_t i = 0; i < sides; i++) {
				seen |= 1u << plan[block + i];
				assert_int_equal(plan[block + i], plan[block + 2 * sides - 1 - i]);
			}
			assert_int_equal(seen, (1u << sides) - 1);
		}
		free(plan);
	}
}

static void both_orders_are_equally_likely(void **state)
{
	struct log log;
	struct trial_options o = options_for(&log, 2, 2, NULL);
	int first_is_a = 0;

	(void)state;
	for (o.seed = 0; o.seed < 10000; o.seed++) {
		uint16_t *plan;
		size_t count;

		assert_int_equal(trial_plan(&o, &plan, &count, NULL), 0);
		first_is_a += plan[0] == 0;
		free(plan);
	}
	/* 5 standard deviations of 10,000 coins; the seeds are fixed, so it cannot fail by chance. */
	assert_in_range(first_is_a, 4750, 5250);
}

static void a_seed_gives_the_same_plan_always(void **state)
{
	struct log log;
	struct trial_options o = options_for(&log, 2, 6, "random");

	(void)state;
	assert_int_equal(trial_run(&o, NULL), TRIAL_DONE);
	assert_string_equal(log.text, "B0@0.0 A0@0.1 A1@0.2 B1@0.3 A2@1.0 B2@1.1 B3@1.2 A3@1.3 A4@2.0 B4@2.1 B5@2.2 "
				      "A5@2.3 ");
}

static void an_odd_number_of_pairs_ends_in_half_a_block(void **state)
{
	struct log log;
	struct trial_options o = options_for(&log, 2, 3, "ABBA");

	(void)state;
	assert_int_equal(trial_run(&o, NULL), TRIAL_DONE);
	assert_string_equal(log.text, "A0@0.0 B0@0.1 B1@0.2 A1@0.3 A2@1.0 B2@1.1 ");
}

static void a_fixed_order_passes_over_sides_that_are_done(void **state)
{
	struct log log;
	struct trial_options o = options_for(&log, 2, 3, "AABB");

	(void)state;
	assert_int_equal(trial_run(&o, NULL), TRIAL_DONE);
	assert_string_equal(log.text, "A0@0.0 A1@0.1 B0@0.2 B1@0.3 A2@1.0 B2@1.1 ");
}

static void a_bad_order_is_named(void **state)
{
	static const char *const orders[] = {"", "A", "ABB", "ABC", "abba", "AB BA", "Random"};
	struct log log;

	(void)state;
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
		struct trial_options o = options_for(&log, 2, 3, orders[i]);
		struct error err = {.text = ""};

		assert_int_equal(trial_run(&o, &err), TRIAL_FAILED);
		assert_non_null(strstr(err.text, "the order '"));
		assert_int_equal(log.runs, 0);
	}
}

static void warm_ups_come_first_and_in_turn(void **state)
{
	struct log log;
	struct trial_options o = options_for(&log, 2, 1, "AB");

	(void)state;
	o.warmup = 2;
	o.progress = progress;
	assert_int_equal(trial_run(&o, NULL), TRIAL_DONE);
	assert_string_equal(log.text, "wA wB wA wB A0@0.0 B0@0.1 ");
	assert_int_equal(log.progress, 6);
	assert_int_equal(log.of, 6);
}

static void it_is_asked_at_preset_looks_only(void **state)
{
	struct log log;
	struct trial_options o = options_for(&log, 2, 60, "random");

	(void)state;
	o.until_decided = true;
	o.decided = decided;
	log.decide_at = 24;
	assert_int_equal(trial_run(&o, NULL), TRIAL_DECIDED);
	assert_int_equal(log.runs, 48);
	assert_int_equal(log.asked_count, 3);
	assert_int_equal(log.asked[0], 8);
	assert_int_equal(log.asked[1], 14);
	assert_int_equal(log.asked[2], 24);
	o = options_for(&log, 2, 60, "random");
	o.decided = decided; /* without until_decided nobody asks */
	assert_int_equal(trial_run(&o, NULL), TRIAL_DONE);
	assert_int_equal(log.asked_count, 0);
}

static void the_end_is_a_look(void **state)
{
	static const struct {
		size_t asked, run;
	} cases[] = {{1, 1}, {7, 7}, {8, 8}, {13, 8}, {14, 14}, {30, 24}, {60, 60}, {100, 60}};
	struct log log;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trial_options o = options_for(&log, 2, cases[i].asked, i % 2 ? "ABBA" : "random");
		uint16_t *plan;
		size_t count;

		o.until_decided = true;
		o.decided = decided;
		assert_int_equal(trial_plan(&o, &plan, &count, NULL), 0);
		assert_int_equal(count, 2 * cases[i].run);
		free(plan);
		assert_int_equal(trial_run(&o, NULL), TRIAL_DONE);
		assert_int_equal(log.runs, 2 * cases[i].run);
	}
}

static void a_stop_is_passed_on(void **state)
{
	struct log log;
	struct trial_options o = options_for(&log, 2, 4, "ABBA");
	struct error err;

	(void)state;
	log.stop_at = 3;
	log.answer = 1;
	assert_int_equal(trial_run(&o, &err), TRIAL_INTERRUPTED);
	assert_string_equal(log.text, "A0@0.0 B0@0.1 ");
	o = options_for(&log, 2, 4, "ABBA");
	log.stop_at = 2;
	log.answer = -1;
	assert_int_equal(trial_run(&o, &err), TRIAL_FAILED);
	assert_string_equal(err.text, "the arm cannot be run");
}

static void what_was_done_is_not_run_again(void **state)
{
	struct log whole, rest;
	struct trial_options o = options_for(&whole, 2, 10, "random");

	(void)state;
	assert_int_equal(trial_run(&o, NULL), TRIAL_DONE);
	for (size_t done = 0; done <= 20; done++) {
		const char *expected = whole.text;

		o = options_for(&rest, 2, 10, "random");
		o.done = done;
		assert_int_equal(trial_run(&o, NULL), TRIAL_DONE);
		for (size_t i = 0; i < done; i++)
			expected = strchr(expected, ' ') + 1;
		assert_string_equal(rest.text, expected);
	}
}

static void a_look_is_taken_again_only_where_it_stopped_there(void **state)
{
	struct log log;
	struct trial_options o = options_for(&log, 2, 60, "random");

	(void)state;
	o.until_decided = true;
	o.decided = decided;
	o.done = 16;
	log.decide_at = 8;
	assert_int_equal(trial_run(&o, NULL), TRIAL_DECIDED);
	assert_int_equal(log.runs, 0);
	o = options_for(&log, 2, 60, "random");
	o.until_decided = true;
	o.decided = decided;
	o.done = 17;
	log.decide_at = 14;
	assert_int_equal(trial_run(&o, NULL), TRIAL_DECIDED);
	assert_int_equal(log.runs, 11);
	assert_int_equal(log.asked_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_is_a_permutation_and_its_mirror_image),
		cmocka_unit_test(both_orders_are_equally_likely),
		cmocka_unit_test(a_seed_gives_the_same_plan_always),
		cmocka_unit_test(an_odd_number_of_pairs_ends_in_half_a_block),
		cmocka_unit_test(a_fixed_order_passes_over_sides_that_are_done),
		cmocka_unit_test(a_bad_order_is_named),
		cmocka_unit_test(warm_ups_come_first_and_in_turn),
		cmocka_unit_test(it_is_asked_at_preset_looks_only),
		cmocka_unit_test(the_end_is_a_look),
		cmocka_unit_test(a_stop_is_passed_on),
		cmocka_unit_test(what_was_done_is_not_run_again),
		cmocka_unit_test(a_look_is_taken_again_only_where_it_stopped_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
