#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "judge/compare.h"
#include "judge/compare_pairs.h"

enum { DECODE = 1, ANON = 4, LOAD = 5, WALL = 8, FAULTS = 11 };

struct fixture {
	struct metric_set metrics;
	struct arms a, b;
	struct compare_options options;
	struct comparison c;
};

static int start(void **state)
{
	static struct fixture f;

	f = (struct fixture){.options = {.confidence = 0.95, .looks = 1}};
	*state = &f;
	return metric_set_init(&f.metrics, NULL);
}

static int end(void **state)
{
	struct fixture *f = *state;

	comparison_release(&f->c);
	arms_release(&f->a);
	arms_release(&f->b);
	metric_set_release(&f->metrics);
	return 0;
}

static struct arm *add(struct arms *arms, size_t metric, double value)
{
	struct arm *arm = arms_add(arms);

	assert_non_null(arm);
	arm->status = strdup("ok");
	assert_true(asprintf(&arm->source, "%p/%zu", (void *)arms, arms->count) > 0);
	assert_int_equal(arm_set(arm, metric, value), 0);
	return arm;
}

/* Runs in the order of the letters, one second after another. */
static void run_in_order(struct fixture *f, const char *order, size_t metric, double a, double b)
{
	for (size_t i = 0; order[i]; i++)
		add(order[i] == 'A' ? &f->a : &f->b, metric, order[i] == 'A' ? a : b)->started_ns =
			(int64_t)i * 1000000000;
}

static const struct compare_metric *judge(struct fixture *f)
{
	comparison_release(&f->c);
	assert_int_equal(compare(&f->metrics, &f->a, &f->b, &f->options, &f->c, NULL), 0);
	return f->c.metrics;
}

/* "01 12": pairs as indexes of A and B. */
static void expect_pairs(struct fixture *f, const char *expected, bool expected_interleaved)
{
	CLEANUP(free_cleanup) struct pair *pairs = NULL;
	char text[256] = "";
	bool interleaved;
	size_t count;

	assert_int_equal(compare_find_pairs(&f->a, &f->b, &pairs, &count, &interleaved, NULL), 0);
	for (size_t i = 0; i < count; i++) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof text - used, "%s%zu%zu", i ? " " : "", pairs[i].a, pairs[i].b);
	}
	assert_string_equal(text, expected);
	assert_int_equal(interleaved, expected_interleaved);
}

static void neighbours_in_time_are_pairs_where_the_sides_take_turns(void **state)
{
	static const struct {
		const char *order, *pairs;
		bool interleaved;
	} rows[] = {
		{"AB", "00", true},	  {"ABAB", "00 11", true},     {"ABBA", "00 11", true},
		{"BAAB", "00 11", true},  {"ABA", "00", true},	       {"AABBAABB", "10 21 32", true},
		{"AABB", "", false},	  {"AAAABBBB", "", false},     {"A", "", false},
		{"ABBAB", "00 11", true}, {"BBBBBBA", "", false},      {"", "", false},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		run_in_order(f, rows[i].order, DECODE, 1, 1);
		expect_pairs(f, rows[i].pairs, rows[i].interleaved);
		arms_release(&f->a);
		arms_release(&f->b);
	}
}

static void a_failed_runs_partner_pairs_with_nobody(void **state)
{
	struct fixture *f = *state;

	run_in_order(f, "ABBAABBA", DECODE, 1, 1);
	f->b.items[1].state = ARM_FAILED;
	expect_pairs(f, "00 22 33", true);
}

static void place(struct arms *arms, int block, int position)
{
	struct arm *arm = add(arms, DECODE, 1);

	arm->block = block;
	arm->position = position;
}

static void blocks_pair_their_own_runs_in_any_order_of_the_files(void **state)
{
	struct fixture *f = *state;

	place(&f->a, 1, 2); /* B A A B, of which the last one is not there */
	place(&f->a, 1, 1);
	place(&f->a, 0, 3); /* A B B A */
	place(&f->a, 0, 0);
	place(&f->b, 1, 0);
	place(&f->b, 0, 2);
	place(&f->b, 0, 1);
	expect_pairs(f, "32 21 10", true);
}

static void two_runs_in_one_place_are_no_design(void **state)
{
	struct fixture *f = *state;

	place(&f->a, 0, 0);
	place(&f->b, 0, 1);
	place(&f->b, 0, 1);
	expect_pairs(f, "", false);
}

/* The old runs of one matrix against the new runs of a later one: A B B A in each, of which A and B are here. */
static void blocks_of_two_designs_are_not_one(void **state)
{
	static const int positions[2][4] = {{0, 3, 4, 7}, {1, 2, 5, 6}};
	struct fixture *f = *state;

	for (int side = 0; side < 2; side++) {
		for (int i = 0; i < 4; i++) {
			struct arms *arms = side ? &f->b : &f->a;

			place(arms, positions[side][i] / 4, positions[side][i] % 4);
			arms->items[i].started_ns = positions[side][i] + side * 1000;
		}
	}
	expect_pairs(f, "", false);
	for (int i = 0; i < 4; i++)
		f->b.items[i].started_ns -= 1000;
	expect_pairs(f, "00 11 22 33", true);
	f->b.items[0].started_ns = INT64_MIN; /* not all times are known: nothing speaks against the blocks */
	f->b.items[3].started_ns = 1000;
	expect_pairs(f, "00 11 22 33", true);
}

static void start_times_that_are_equal_are_no_turns(void **state)
{
	struct fixture *f = *state;

	add(&f->a, DECODE, 1)->started_ns = 5;
	add(&f->b, DECODE, 2)->started_ns = 5;
	expect_pairs(f, "", false);
}

static void runs_that_took_turns_are_decided_by_pairs(void **state)
{
	struct fixture *f = *state;
	const struct compare_metric *m;

	run_in_order(f, "ABBAABBAABBA", DECODE, 100, 103);
	m = judge(f);
	assert_int_equal(f->c.rule, RULE_PAIRED);
	assert_int_equal(f->c.overall, OVERALL_IMPROVEMENT);
	assert_int_equal(m->paired.verdict, PAIRED_BETTER);
	assert_int_equal(m->paired.pairs, 6);
	assert_true(fabs(m->paired.ratio - 1.03) < 1e-12);
	f->options.margin = 0.05;
	assert_int_equal(judge(f)->paired.verdict, PAIRED_EQUIVALENT);
	assert_int_equal(f->c.overall, OVERALL_NEUTRAL);
	f->options.confidence = 0.99;
	assert_int_equal(judge(f)->paired.verdict, PAIRED_TOO_FEW);
	assert_int_equal(f->c.overall, OVERALL_UNDECIDED);
}

static void runs_without_turns_are_decided_by_separation(void **state)
{
	struct fixture *f = *state;

	run_in_order(f, "AAABBB", DECODE, 100, 97);
	assert_int_equal(judge(f)->separation, SEPARATION_WORSE);
	assert_int_equal(f->c.rule, RULE_SEPARATION);
	assert_int_equal(f->c.overall, OVERALL_REGRESSION);
	f->options.rule = RULE_PAIRED;
	assert_int_equal(judge(f)->paired.verdict, PAIRED_TOO_FEW);
	assert_int_equal(f->c.overall, OVERALL_UNDECIDED);
	assert_int_equal(f->c.by_separation, OVERALL_REGRESSION);
}

static void noise_raises_the_margin_of_both_rules(void **state)
{
	double noise[] = {NAN, 0.04};
	struct fixture *f = *state;

	run_in_order(f, "ABABABABABAB", DECODE, 100, 97);
	assert_int_equal(judge(f)->paired.verdict, PAIRED_WORSE);
	assert_int_equal(f->c.metrics->separation, SEPARATION_WORSE);
	f->options.noise = noise;
	f->options.noise_count = 2;
	assert_int_equal(judge(f)->paired.verdict, PAIRED_EQUIVALENT);
	assert_int_equal(f->c.metrics->separation, SEPARATION_SAME);
}

static void from_zero_there_is_no_ratio_and_a_regression_all_the_same(void **state)
{
	struct fixture *f = *state;
	const struct compare_metric *m;

	run_in_order(f, "ABABABABABAB", LOAD, 0, 5);
	m = judge(f);
	assert_true(isnan(m->ratio));
	assert_true(m->difference == 5);
	assert_int_equal(m->paired.verdict, PAIRED_BELOW_RESOLUTION);
	assert_true(m->by_difference);
	assert_int_equal(f->c.overall, OVERALL_REGRESSION);
}

static void zero_on_both_sides_is_neutral(void **state)
{
	struct fixture *f = *state;

	run_in_order(f, "ABABABABABAB", LOAD, 0, 0);
	judge(f);
	assert_int_equal(f->c.overall, OVERALL_NEUTRAL);
}

static void the_same_runs_on_both_sides_are_equivalent(void **state)
{
	struct fixture *f = *state;

	run_in_order(f, "A", DECODE, 100, 0);
	run_in_order(f, "B", DECODE, 0, 100);
	assert_int_equal(judge(f)->paired.verdict, PAIRED_EQUIVALENT);
	assert_true(f->c.same_runs);
	assert_int_equal(f->c.overall, OVERALL_NEUTRAL);
}

static void one_run_a_side_is_shown_and_never_a_verdict_by_pairs(void **state)
{
	struct fixture *f = *state;

	run_in_order(f, "AB", DECODE, 100, 50);
	assert_int_equal(judge(f)->paired.verdict, PAIRED_TOO_FEW);
	assert_int_equal(f->c.overall, OVERALL_UNDECIDED);
	assert_true(f->c.metrics->a_mean == 100 && f->c.metrics->b_mean == 50);
}

static void a_side_without_a_usable_run_is_neutral_without_metrics(void **state)
{
	struct fixture *f = *state;

	run_in_order(f, "ABAB", DECODE, 100, 50);
	f->b.items[0].state = ARM_PERTURBED;
	f->b.items[1].state = ARM_FAILED;
	for (int rule = RULE_AUTO; rule <= RULE_PAIRED; rule++) {
		f->options.rule = (enum compare_rule)rule;
		judge(f);
		assert_int_equal(f->c.count, 0);
		assert_int_equal(f->c.dropped, 2);
		assert_int_equal(f->c.overall, OVERALL_NEUTRAL);
	}
}

static void an_absolute_floor_counts_under_both_rules(void **state)
{
	struct fixture *f = *state;
	const struct compare_metric *m;

	run_in_order(f, "ABABABABABABABAB", ANON, 0.3, 0.31); /* MiB, of which 64 are the floor */
	m = judge(f);
	assert_int_equal(f->c.rule, RULE_PAIRED);
	assert_int_equal(m->paired.verdict, PAIRED_EQUIVALENT);
	assert_int_equal(m->separation, SEPARATION_SAME);
	assert_true(fabs(m->margin - 64 / 0.3) < 1e-9);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(arm_set(&f->b.items[i], ANON, 65), 0);
	m = judge(f);
	assert_int_equal(m->paired.verdict, PAIRED_WORSE);
	assert_int_equal(m->separation, SEPARATION_WORSE);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(arm_set(&f->a.items[i], ANON, 6400), 0); /* here 2% are more than 64 MiB */
		assert_int_equal(arm_set(&f->b.items[i], ANON, 6500), 0);
	}
	assert_true(fabs(judge(f)->margin - 0.02) < 1e-12);
}

static void better_and_worse_is_a_tradeoff(void **state)
{
	struct fixture *f = *state;

	run_in_order(f, "ABABABABABABABAB", DECODE, 100, 110);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(arm_set(&f->a.items[i], ANON, 1000), 0);
		assert_int_equal(arm_set(&f->b.items[i], ANON, 1200), 0);
	}
	judge(f);
	assert_int_equal(f->c.overall, OVERALL_TRADEOFF);
	assert_int_equal(f->c.by_separation, OVERALL_TRADEOFF);
}

/* 6 pairs have p = 1/32: enough for one metric at 5%, not for two that could both have been claimed. */
static void a_claim_among_many_metrics_needs_more_pairs(void **state)
{
	struct fixture *f = *state;

	run_in_order(f, "ABABABABABAB", DECODE, 100, 103);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(arm_set(&f->a.items[i], WALL, 10), 0);
		assert_int_equal(arm_set(&f->b.items[i], WALL, i % 2 ? 9 : 11), 0);
	}
	judge(f);
	assert_true(f->c.metrics[0].held_back);
	assert_int_equal(f->c.metrics[0].paired.verdict, PAIRED_UNDECIDED);
	assert_true(fabs(f->c.metrics[0].p_adjusted - 2.0 / 32) < 1e-12);
	assert_true(f->c.metrics[0].paired.pairs_needed == 1);
	assert_int_equal(f->c.overall, OVERALL_UNDECIDED);
	/* One that stays within its margin could never have been claimed. */
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(arm_set(&f->b.items[i], WALL, 10.01), 0);
	judge(f);
	assert_false(f->c.metrics[0].held_back);
	assert_int_equal(f->c.overall, OVERALL_IMPROVEMENT);
}

static void only_what_is_asked_for_or_gated_decides(void **state)
{
	bool selected[64] = {[FAULTS] = true};
	struct fixture *f = *state;

	run_in_order(f, "ABABABABABAB", FAULTS, 100, 200);
	assert_int_equal(judge(f)->paired.verdict, PAIRED_WORSE);
	assert_int_equal(f->c.overall, OVERALL_NEUTRAL);
	f->options.selected = selected;
	judge(f);
	assert_int_equal(f->c.overall, OVERALL_REGRESSION);
}

static void the_reference_knows_only_its_own_metrics_and_those_asked_for(void **state)
{
	bool selected[64] = {[WALL] = true};
	struct fixture *f = *state;

	run_in_order(f, "ABABABABABAB", WALL, 100, 200);
	f->options.rule = RULE_SEPARATION;
	f->options.reference = true;
	judge(f);
	assert_int_equal(f->c.count, 0);
	assert_int_equal(f->c.overall, OVERALL_NEUTRAL);
	f->options.selected = selected;
	judge(f);
	assert_int_equal(f->c.count, 1);
	assert_int_equal(f->c.overall, OVERALL_REGRESSION);
	f->options.selected = NULL;
	f->options.reference = false;
	judge(f);
	assert_int_equal(f->c.overall, OVERALL_REGRESSION);
}

static void looks_widen_the_interval(void **state)
{
	struct fixture *f = *state;

	run_in_order(f, "ABABABABABAB", DECODE, 100, 103);
	f->options.looks = STATS_LOOKS;
	assert_int_equal(judge(f)->paired.verdict, PAIRED_TOO_FEW);
	assert_true(fabs(f->c.metrics->paired.confidence - 0.99) < 1e-12);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(neighbours_in_time_are_pairs_where_the_sides_take_turns),
		TEST(a_failed_runs_partner_pairs_with_nobody),
		TEST(blocks_pair_their_own_runs_in_any_order_of_the_files),
		TEST(two_runs_in_one_place_are_no_design),
		TEST(blocks_of_two_designs_are_not_one),
		TEST(start_times_that_are_equal_are_no_turns),
		TEST(runs_that_took_turns_are_decided_by_pairs),
		TEST(runs_without_turns_are_decided_by_separation),
		TEST(noise_raises_the_margin_of_both_rules),
		TEST(from_zero_there_is_no_ratio_and_a_regression_all_the_same),
		TEST(zero_on_both_sides_is_neutral),
		TEST(the_same_runs_on_both_sides_are_equivalent),
		TEST(one_run_a_side_is_shown_and_never_a_verdict_by_pairs),
		TEST(a_side_without_a_usable_run_is_neutral_without_metrics),
		TEST(an_absolute_floor_counts_under_both_rules),
		TEST(better_and_worse_is_a_tradeoff),
		TEST(a_claim_among_many_metrics_needs_more_pairs),
		TEST(only_what_is_asked_for_or_gated_decides),
		TEST(the_reference_knows_only_its_own_metrics_and_those_asked_for),
		TEST(looks_widen_the_interval),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
