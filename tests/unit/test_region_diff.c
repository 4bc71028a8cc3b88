#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "judge/region_diff.h"
#include "judge/stats_ranks.h"

#define ROWS_MOST 400

static void assert_near(double got, double wanted)
{
	if (!(fabs(got - wanted) <= 1e-9 * fmax(1, fabs(wanted))))
		fail_msg("%.17g is not %.17g", got, wanted);
}

/* A table whose rows live here. */
struct made {
	struct region_table table;
	struct region_row rows[ROWS_MOST];
};

static void add(struct made *m, const char *name, uint64_t timed, int64_t total)
{
	m->rows[m->table.count] = (struct region_row){
		.name = (char *)name,
		.rank = -1,
		.thread = -1,
		.calls = timed,
		.timed = timed,
		.total = total,
		.avg = timed ? (double)total / (double)timed : NAN,
		.p99 = NAN,
		.gpu_avg = NAN,
	};
	m->table.rows = m->rows;
	m->table.count++;
}

static const struct region_diff_options usual = {
	.metric = REGION_METRIC_TOTAL, .threshold = NAN, .confidence = 0.95, .margin = 0.01};

static void compare(struct region_diff *d, const struct made *a, const struct made *b, struct region_diff_options o)
{
	struct error err;

	region_diff_init(d);
	if (region_diff(&a->table, 1, &b->table, 1, &o, d, &err) < 0)
		fail_msg("%s", err.text);
}

static void assert_order(const struct region_diff *d, const char *names)
{
	char text[256] = "";

	for (size_t i = 0; i < d->count; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", d->rows[i].name);
	assert_string_equal(text, names);
}

static const struct region_diff_row *row_of(const struct region_diff *d, const char *name)
{
	for (size_t i = 0; i < d->count; i++)
		if (strcmp(d->rows[i].name, name) == 0)
			return &d->rows[i];
	fail_msg("no row of %s", name);
	return NULL;
}

/* solve +50, io -30 (-75%), old and new on one side, idle 0 on both, zero 0 to 5, same unchanged. */
static void make_sides(struct made *a, struct made *b)
{
	*a = *b = (struct made){0};
	add(a, "solve", 1, 100);
	add(b, "solve", 2, 150);
	add(a, "io", 1, 40);
	add(b, "io", 1, 10);
	add(a, "old", 1, 20);
	add(b, "new", 1, 2);
	add(a, "idle", 3, 0);
	add(b, "idle", 3, 0);
	add(a, "zero", 1, 0);
	add(b, "zero", 1, 5);
	add(a, "same", 1, 1000);
	add(b, "same", 1, 1000);
}

static void a_missing_side_counts_as_0_in_the_difference_and_has_no_percentage(void **state)
{
	struct made a, b;
	struct region_diff d;

	(void)state;
	make_sides(&a, &b);
	compare(&d, &a, &b, usual);
	assert_near(row_of(&d, "solve")->delta, 50);
	assert_near(row_of(&d, "solve")->pct, 50);
	assert_true(isnan(row_of(&d, "new")->a));
	assert_near(row_of(&d, "new")->delta, 2);
	assert_true(isnan(row_of(&d, "new")->pct));
	assert_true(isnan(row_of(&d, "old")->b));
	assert_near(row_of(&d, "old")->delta, -20);
	assert_near(row_of(&d, "old")->pct, -100);
	assert_near(row_of(&d, "zero")->delta, 5);
	assert_true(isnan(row_of(&d, "zero")->pct));
	assert_false(d.judged);
	assert_int_equal(row_of(&d, "solve")->verdict, REGION_NOT_JUDGED);
	assert_near(row_of(&d, "solve")->most_total, 150);
	region_diff_release(&d);
}

static void rows_are_sorted_by_magnitude_or_by_name(void **state)
{
	struct region_diff_options o = usual;
	struct made a, b;
	struct region_diff d;

	(void)state;
	make_sides(&a, &b);
	compare(&d, &a, &b, o);
	assert_order(&d, "solve io old zero new idle same");
	region_diff_release(&d);
	o.sort = REGION_SORT_PCT;
	compare(&d, &a, &b, o);
	assert_order(&d, "new old zero io solve idle same");
	region_diff_release(&d);
	o.sort = REGION_SORT_NAME;
	compare(&d, &a, &b, o);
	assert_order(&d, "idle io new old same solve zero");
	region_diff_release(&d);
}

static void a_threshold_never_drops_one_sided_rows(void **state)
{
	struct region_diff_options o = usual;
	struct made a, b;
	struct region_diff d;

	(void)state;
	make_sides(&a, &b);
	o.threshold = 60;
	compare(&d, &a, &b, o);
	assert_order(&d, "io old zero new idle");
	assert_int_equal(d.hidden, 2);
	region_diff_release(&d);
	o.threshold = 1000;
	compare(&d, &a, &b, o);
	assert_order(&d, "old zero new idle");
	region_diff_release(&d);
}

static void a_region_that_timed_no_calls_is_missing_there_but_was_called(void **state)
{
	struct region_diff_options o = usual;
	struct made a = {0}, b = {0};
	struct region_diff d;

	(void)state;
	add(&a, "count", 0, 0);
	a.rows[0].calls = 7;
	add(&b, "count", 2, 30);
	compare(&d, &a, &b, o);
	assert_false(d.rows[0].in_a);
	assert_near(d.rows[0].delta, 30);
	region_diff_release(&d);
	o.metric = REGION_METRIC_CALLS;
	compare(&d, &a, &b, o);
	assert_true(d.rows[0].in_a && d.rows[0].in_b);
	assert_near(d.rows[0].delta, -5);
	region_diff_release(&d);
	o.metric = REGION_METRIC_GPU_TOTAL;
	compare(&d, &a, &b, o);
	assert_false(d.rows[0].in_a || d.rows[0].in_b);
	assert_near(d.rows[0].delta, 0);
	region_diff_release(&d);
}

static void a_metric_that_a_side_does_not_know_gives_no_difference(void **state)
{
	struct region_diff_options o = usual;
	struct made a = {0}, b = {0};
	struct region_diff d;

	(void)state;
	add(&a, "x", 1, 10);
	add(&b, "x", 1, 10);
	b.rows[0].p99 = 10;
	o.metric = REGION_METRIC_P99;
	compare(&d, &a, &b, o);
	assert_true(d.rows[0].in_a && isnan(d.rows[0].a) && isnan(d.rows[0].delta) && isnan(d.rows[0].pct));
	region_diff_release(&d);
}

static void rows_of_single_ranks_are_no_regions(void **state)
{
	struct made a = {0}, b = {0};
	struct region_diff d;

	(void)state;
	add(&a, "x", 1, 10);
	add(&a, "x", 1, 10);
	a.rows[1].rank = 0;
	compare(&d, &a, &b, usual);
	assert_int_equal(d.count, 1);
	region_diff_release(&d);
}

#define RUNS 10

/* A side of RUNS runs; run i of region j takes base + its share of `steps` ns. */
struct side {
	struct made runs[RUNS];
	struct region_table tables[RUNS];
	int64_t started[RUNS];
};

static void make_side(struct side *s, size_t runs, const char *name, int64_t base, int64_t step)
{
	for (size_t i = 0; i < runs; i++) {
		add(&s->runs[i], name, 1, base + step * (int64_t)(i * 7 % RUNS));
		s->tables[i] = s->runs[i].table;
	}
}

static void judge(struct region_diff *d, const struct side *a, size_t a_runs, const struct side *b, size_t b_runs,
		  bool turns)
{
	struct region_diff_options o = usual;
	struct error err;

	region_diff_init(d);
	if (turns) {
		o.started_a = a->started;
		o.started_b = b->started;
	}
	if (region_diff(a->tables, a_runs, b->tables, b_runs, &o, d, &err) < 0)
		fail_msg("%s", err.text);
}

static void repeats_that_took_turns_are_judged_by_pairs(void **state)
{
	static struct side a, b;
	struct region_diff d;

	(void)state;
	for (int i = 0; i < RUNS; i++) {
		a.started[i] = 1000 * i + (i % 2 ? 500 : 0); /* ABBA */
		b.started[i] = 1000 * i + (i % 2 ? 0 : 500);
	}
	make_side(&a, RUNS, "slow", 1000000, 1000);
	make_side(&b, RUNS, "slow", 1100000, 1000);
	make_side(&a, RUNS, "equal", 1000000, 100);
	make_side(&b, RUNS, "equal", 1000100, 100);
	make_side(&a, RUNS, "fast", 1000000, 1000);
	make_side(&b, RUNS, "fast", 900000, 1000);
	judge(&d, &a, RUNS, &b, RUNS, true);
	assert_true(d.judged && d.paired);
	assert_int_equal(d.pairs, RUNS);
	assert_int_equal(d.claims, 2);
	assert_int_equal(row_of(&d, "slow")->verdict, REGION_WORSE);
	assert_int_equal(row_of(&d, "equal")->verdict, REGION_EQUIVALENT);
	assert_int_equal(row_of(&d, "fast")->verdict, REGION_BETTER);
	/* Ten pairs on one side: 2 / 2^10, and there are two claims. */
	assert_near(row_of(&d, "slow")->p_adjusted, 4.0 / 1024);
	assert_true(row_of(&d, "slow")->low > 9 && row_of(&d, "slow")->high < 11);
	region_diff_release(&d);
}

static void repeats_without_an_order_are_judged_by_ranks(void **state)
{
	static struct side a, b;
	struct region_diff d;

	(void)state;
	make_side(&a, RUNS, "slow", 1000000, 1000);
	make_side(&b, RUNS, "slow", 1100000, 1000);
	make_side(&a, RUNS, "noise", 1000000, 100000);
	make_side(&b, RUNS, "noise", 1010000, 100000);
	judge(&d, &a, RUNS, &b, RUNS, false);
	assert_true(d.judged && !d.paired);
	assert_int_equal(row_of(&d, "slow")->verdict, REGION_WORSE);
	/* Wholly apart: 2 of C(20, 10) orders; "noise" is in the family. */
	assert_near(row_of(&d, "slow")->p_adjusted, 2 * 2.0 / 184756);
	assert_int_equal(row_of(&d, "noise")->verdict, REGION_UNDECIDED);
	assert_near(row_of(&d, "slow")->a, 1004500);
	region_diff_release(&d);
	judge(&d, &a, 3, &b, 3, false);
	assert_int_equal(row_of(&d, "slow")->verdict, REGION_TOO_FEW);
	assert_true(isnan(row_of(&d, "slow")->low));
	region_diff_release(&d);
	judge(&d, &a, 1, &b, 4, false);
	assert_int_equal(row_of(&d, "slow")->verdict, REGION_TOO_FEW);
	region_diff_release(&d);
}

static void among_many_regions_a_single_claim_does_not_hold(void **state)
{
	static struct side a, b;
	static char names[ROWS_MOST][8];
	struct region_diff d;

	(void)state;
	/* 2 of C(8, 4) orders is 0.029, alone a claim at 95%. */
	make_side(&a, 4, "slow", 1000000, 1000);
	make_side(&b, 4, "slow", 1100000, 1000);
	judge(&d, &a, 4, &b, 4, false);
	assert_int_equal(row_of(&d, "slow")->verdict, REGION_WORSE);
	region_diff_release(&d);
	for (size_t i = 0; i < 20; i++) {
		snprintf(names[i], sizeof names[i], "n%zu", i);
		make_side(&a, 4, names[i], 1000000, 100000);
		make_side(&b, 4, names[i], 1010000, 100000);
	}
	judge(&d, &a, 4, &b, 4, false);
	assert_int_equal(d.claims, 21);
	assert_int_equal(row_of(&d, "slow")->verdict, REGION_UNDECIDED);
	region_diff_release(&d);
}

static void zeros_have_no_ratio(void **state)
{
	static struct side a, b;
	struct region_diff d;

	(void)state;
	make_side(&a, RUNS, "idle", 0, 0);
	make_side(&b, RUNS, "idle", 0, 0);
	make_side(&a, RUNS, "from_zero", 0, 0);
	make_side(&b, RUNS, "from_zero", 10, 1);
	make_side(&b, RUNS, "new", 10, 1);
	judge(&d, &a, RUNS, &b, RUNS, false);
	assert_int_equal(row_of(&d, "idle")->verdict, REGION_EQUIVALENT);
	assert_int_equal(row_of(&d, "from_zero")->verdict, REGION_BELOW_RESOLUTION);
	assert_int_equal(row_of(&d, "new")->verdict, REGION_ONE_SIDED);
	region_diff_release(&d);
}

static void more_files_than_are_compared_are_refused(void **state)
{
	static struct region_table tables[REGION_RUNS_MOST + 1];
	struct region_diff d = {0};
	struct error err = {""};

	(void)state;
	assert_int_equal(region_diff(tables, REGION_RUNS_MOST + 1, tables, 1, &usual, &d, &err), -1);
	assert_string_equal(err.text, "201 files of a side are more than are compared (200)");
}

/* Published critical values of the two-sided Mann-Whitney test at 5%: U at or below them is significant. */
static void ranks_have_the_published_critical_values(void **state)
{
	static const struct {
		size_t n, m, rank;
	} known[] = {{3, 3, 0}, {4, 4, 1}, {3, 5, 1}, {5, 5, 3}, {5, 8, 7}, {8, 8, 14}, {10, 10, 24}, {20, 20, 128}};
	struct rank_sums r;
	struct error err;

	(void)state;
	rank_sums_init(&r);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		assert_int_equal(rank_sums_prepare(&r, known[i].n, known[i].m, &err), 0);
		assert_int_equal(rank_sums_rank(&r, 0.05), known[i].rank);
	}
	assert_int_equal(rank_sums_prepare(&r, 0, 5, &err), -1);
	rank_sums_release(&r);
}

/* Every order of n and m values is equally likely: counted one by one. */
static void the_distribution_of_u_is_that_of_all_orders(void **state)
{
	enum { N = 5, M = 7, ORDERS = 792 };
	size_t ways[N * M + 1] = {0}, sum = 0;
	struct rank_sums r;

	(void)state;
	for (unsigned mask = 0; mask < 1u << (N + M); mask++) {
		size_t u = 0, above = 0;

		if (__builtin_popcount(mask) != N)
			continue;
		for (unsigned bit = 0; bit < N + M; bit++) {
			if (mask >> bit & 1)
				u += above;
			else
				above++;
		}
		ways[u]++;
	}
	rank_sums_init(&r);
	assert_int_equal(rank_sums_prepare(&r, N, M, NULL), 0);
	for (size_t u = 0; u <= N * M; u++) {
		sum += ways[u];
		assert_near(r.below[u], (double)sum / ORDERS);
	}
	assert_int_equal(rank_sums_prepare(&r, 200, 200, NULL), 0); /* C(400, 200) is no number of a double's digits */
	assert_near(r.below[200 * 200 / 2 - 1] + (r.below[200 * 200 / 2] - r.below[200 * 200 / 2 - 1]) / 2, 0.5);
	rank_sums_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_side_counts_as_0_in_the_difference_and_has_no_percentage),
		cmocka_unit_test(rows_are_sorted_by_magnitude_or_by_name),
		cmocka_unit_test(a_threshold_never_drops_one_sided_rows),
		cmocka_unit_test(a_region_that_timed_no_calls_is_missing_there_but_was_called),
		cmocka_unit_test(a_metric_that_a_side_does_not_know_gives_no_difference),
		cmocka_unit_test(rows_of_single_ranks_are_no_regions),
		cmocka_unit_test(repeats_that_took_turns_are_judged_by_pairs),
		cmocka_unit_test(repeats_without_an_order_are_judged_by_ranks),
		cmocka_unit_test(among_many_regions_a_single_claim_does_not_hold),
		cmocka_unit_test(zeros_have_no_ratio),
		cmocka_unit_test(more_files_than_are_compared_are_refused),
		cmocka_unit_test(ranks_have_the_published_critical_values),
		cmocka_unit_test(the_distribution_of_u_is_that_of_all_orders),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
