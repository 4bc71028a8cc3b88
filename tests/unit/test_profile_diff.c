#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "judge/profile_diff.h"
#include "judge/shares.h"

#define FUNCTIONS 12

static void assert_near(double got, double wanted, double within)
{
	if (!(fabs(got - wanted) <= within))
		fail_msg("%.12g is not %.12g", got, wanted);
}

/* A profile of one group, from counts per function. Its arrays and names live here. */
struct made {
	struct hotspots h;
	struct hotspot_group group;
	struct hotspot_row rows[FUNCTIONS];
	char names[FUNCTIONS][8];
};

static void make(struct made *m, const char *group, const unsigned *counts, size_t count, double period_s)
{
	*m = (struct made){.group = {.name = (char *)group, .wall_s = NAN}};
	for (size_t i = 0; i < count; i++)
		m->group.weight += counts[i];
	for (size_t i = 0; i < count; i++) {
		struct hotspot_row *row = &m->rows[m->group.self.count];

		if (!counts[i])
			continue;
		snprintf(m->names[i], sizeof m->names[i], "f%zu", i);
		*row = (struct hotspot_row){.name = m->names[i], .weight = counts[i], .deliveries = counts[i]};
		row->share = (double)counts[i] / (double)m->group.weight;
		row->cpu_s = counts[i] * period_s;
		m->group.self.count++;
	}
	m->group.self.items = m->rows;
	m->group.deliveries = m->group.weight;
	m->group.effective = (double)m->group.weight;
	m->group.cpu_s = (double)m->group.weight * period_s;
	m->h.groups = &m->group;
	m->h.group_count = 1;
}

static void compare(struct profile_changes *c, const struct made *a, const struct made *b)
{
	struct error err;

	profile_changes_init(c);
	assert_int_equal(profile_diff(c, &a->h, &b->h, false, 0.95, &err), 0);
}

static double uniform(uint64_t *seed)
{
	*seed += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
	uint64_t z = *seed;

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static void draw(unsigned *counts, const double *shares, size_t n, uint64_t *seed)
{
	memset(counts, 0, FUNCTIONS * sizeof *counts);
	for (size_t i = 0; i < n; i++) {
		double u = uniform(seed);
		size_t f = 0;

		for (; f + 1 < FUNCTIONS && u >= shares[f]; f++)
			u -= shares[f];
		counts[f]++;
	}
}

static const double shares_of_a[FUNCTIONS] = {0.35, 0.2, 0.1, 0.1, 0.08, 0.05, 0.05, 0.03, 0.02, 0.01, 0.005, 0.005};

static void z_and_score_intervals_are_those_of_the_tables(void **state)
{
	struct share_interval i, a, b, d;

	(void)state;
	assert_near(shares_z(0.05), 1.959963984540054, 1e-12);
	assert_near(shares_z(0.01), 2.5758293035489004, 1e-12);
	assert_near(shares_z(1e-9), 6.109410204869, 1e-9);
	/* Newcombe 1998, Table I (81 of 263; 0 of 20) and of the other paper's Table II, method 10: 56/70 - 48/80. */
	i = shares_interval(81.0 / 263, 263, shares_z(0.05));
	assert_near(i.low, 0.2553, 5e-5);
	assert_near(i.high, 0.3662, 5e-5);
	i = shares_interval(0, 20, shares_z(0.05));
	assert_near(i.low, 0, 0);
	assert_near(i.high, 0.1611, 5e-5);
	a = shares_interval(48.0 / 80, 80, shares_z(0.05));
	b = shares_interval(56.0 / 70, 70, shares_z(0.05));
	d = shares_difference(48.0 / 80, a, 56.0 / 70, b);
	assert_near(d.low, 0.0524, 5e-5);
	assert_near(d.high, 0.3339, 5e-5);
	i = shares_interval(0.5, 0, 2);
	assert_true(i.low <= 0 && i.high >= 1);
	i = shares_interval(1, 1e6, 2);
	assert_true(i.low < 1 && i.high >= 1);
}

static void same_against_same_raises_no_more_false_alarms_than_it_may(void **state)
{
	uint64_t seed = 1;
	unsigned alarms = 0, trials = 2000;

	(void)state;
	for (unsigned i = 0; i < trials; i++) {
		unsigned counts[2][FUNCTIONS];
		struct made a, b;
		struct profile_changes c;

		draw(counts[0], shares_of_a, 2000, &seed);
		draw(counts[1], shares_of_a, 500 + 1500 * (i % 2), &seed);
		make(&a, "run", counts[0], FUNCTIONS, 0.005);
		/* Of a quarter of the samples where the program ran as long: at a quarter of the rate. */
		make(&b, "run", counts[1], FUNCTIONS, i % 2 ? 0.005 : 0.02);
		compare(&c, &a, &b);
		alarms += c.changed > 0;
		profile_changes_release(&c);
	}
	print_message("same against same: %.2f%% false alarms\n", 100.0 * alarms / trials);
	assert_true(alarms <= trials / 20);
}

static void five_points_more_are_found_in_2000_samples(void **state)
{
	double shares_of_b[FUNCTIONS];
	uint64_t seed = 2;
	unsigned found = 0, wrong = 0, trials = 400;

	(void)state;
	memcpy(shares_of_b, shares_of_a, sizeof shares_of_b);
	shares_of_b[3] += 0.05;
	shares_of_b[0] -= 0.05;
	for (unsigned i = 0; i < trials; i++) {
		unsigned counts[2][FUNCTIONS];
		struct made a, b;
		struct profile_changes c;

		draw(counts[0], shares_of_a, 2000, &seed);
		draw(counts[1], shares_of_b, 2000, &seed);
		make(&a, "run", counts[0], FUNCTIONS, 0.005);
		make(&b, "run", counts[1], FUNCTIONS, 0.005);
		compare(&c, &a, &b);
		for (size_t k = 0; k < c.changed; k++) {
			found += strcmp(c.items[k].name, "f3") == 0 && c.items[k].share_changed;
			wrong += strcmp(c.items[k].name, "f3") != 0 && strcmp(c.items[k].name, "f0") != 0;
		}
		profile_changes_release(&c);
	}
	print_message("10%% to 15%% in 2,000 samples: found in %.1f%%, others called changed in %.2f%%\n",
		      100.0 * found / trials, 100.0 * wrong / trials);
	assert_true(found > trials * 9 / 10);
	assert_true(wrong <= trials / 20);
}

static void a_program_that_takes_twice_as_long_has_the_same_shares_and_more_cpu_time(void **state)
{
	const unsigned one[] = {1000, 600, 400}, two[] = {2000, 1200, 800};
	struct made a, b;
	struct profile_changes c;

	(void)state;
	make(&a, "run", one, 3, 0.01);
	make(&b, "run", two, 3, 0.01);
	compare(&c, &a, &b);
	assert_int_equal(c.changed, 3);
	assert_string_equal(c.items[0].name, "f0");
	for (size_t i = 0; i < 3; i++) {
		assert_false(c.items[i].share_changed);
		assert_true(c.items[i].cpu_changed);
		assert_true(c.items[i].low < 0 && c.items[i].high > 0);
		assert_true(c.items[i].cpu_low > 0);
	}
	profile_changes_release(&c);
}

static void a_function_that_one_side_lacks_is_compared_with_nothing(void **state)
{
	const unsigned with[] = {500, 500, 0}, without[] = {500, 400, 100};
	struct made a, b;
	struct profile_changes c;

	(void)state;
	make(&a, "run", with, 3, 0.01);
	make(&b, "run", without, 3, 0.01);
	compare(&c, &a, &b);
	assert_int_equal(c.count, 3);
	assert_true(c.changed >= 1);
	for (size_t i = 0; i < c.count; i++) {
		if (strcmp(c.items[i].name, "f2") != 0)
			continue;
		assert_true(c.items[i].share_changed && c.items[i].cpu_changed);
		assert_near(c.items[i].share[0], 0, 0);
		assert_near(c.items[i].share[1], 0.1, 1e-12);
	}
	profile_changes_release(&c);
}

static void functions_of_one_name_in_two_modules_are_two(void **state)
{
	const unsigned counts[] = {500, 500};
	struct made a, b;
	struct profile_changes c;

	(void)state;
	make(&a, "run", counts, 2, 0.01);
	make(&b, "run", counts, 2, 0.01);
	strcpy(a.names[1], "f0");
	strcpy(b.names[1], "f0");
	a.rows[0].module = b.rows[1].module = (char *)"one.so";
	a.rows[1].module = b.rows[0].module = (char *)"two.so";
	compare(&c, &a, &b);
	assert_int_equal(c.count, 2);
	assert_int_equal(c.changed, 0);
	assert_true(c.items[0].share[0] > 0 && c.items[0].share[1] > 0);
	profile_changes_release(&c);
}

static void too_few_samples_say_nothing_and_lone_groups_are_named(void **state)
{
	const unsigned few[] = {20, 9}, many[] = {9, 2000};
	struct made a, b;
	struct profile_changes c;

	(void)state;
	make(&a, "run", few, 2, 0.01);
	make(&b, "run", many, 2, 0.01);
	compare(&c, &a, &b);
	assert_true(c.too_few);
	assert_int_equal(c.changed, 0);
	assert_null(c.only[0]);
	profile_changes_release(&c);
	make(&a, "load", many, 2, 0.01);
	compare(&c, &a, &b);
	assert_int_equal(c.count, 0);
	assert_string_equal(c.only[0], "load");
	assert_string_equal(c.only[1], "run");
	assert_true(c.too_few);
	profile_changes_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(z_and_score_intervals_are_those_of_the_tables),
		cmocka_unit_test(same_against_same_raises_no_more_false_alarms_than_it_may),
		cmocka_unit_test(five_points_more_are_found_in_2000_samples),
		cmocka_unit_test(a_program_that_takes_twice_as_long_has_the_same_shares_and_more_cpu_time),
		cmocka_unit_test(a_function_that_one_side_lacks_is_compared_with_nothing),
		cmocka_unit_test(functions_of_one_name_in_two_modules_are_two),
		cmocka_unit_test(too_few_samples_say_nothing_and_lone_groups_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
