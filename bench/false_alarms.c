/* What a rule claims where nothing changed, and whether it finds what did: trials of a made-up machine, judged by
 * compare() as the product judges.
 *
 * Prints one row per noise, change, number of pairs and rule, separated by tabs: how many trials, how many of them
 * claimed a difference, how many one beyond the margin, and the pairs used. false_alarms.py makes the table. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "judge/compare.h"

#define PAIRS_MOST 60
#define RUNS_MOST (2 * PAIRS_MOST)
#define TYPICAL_S 10.0
#define MEMORY 0.95 /* of the machine's speed from one run to the next, in the AR(1) noise */
#define NORMAL_975 1.959963984540054

static uint64_t random_state;

/* splitmix64 (Steele, Lea and Flood 2014) */
static uint64_t random_bits(void)
{
	uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* In (0, 1). */
static double uniform(void)
{
	return ((double)(random_bits() >> 11) + 0.5) * 0x1p-53;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* Each fills n logarithms of times, in the order in which the runs are made. */
static void independent(double *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = 0.01 * normal();
}

static void drift(double *x, size_t n)
{
	double level = 0.03 * normal();

	for (size_t i = 0; i < n; i++) {
		x[i] = level + 0.01 * normal();
		level = MEMORY * level + 0.03 * sqrt(1 - MEMORY * MEMORY) * normal();
	}
}

static void trend(double *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = 0.03 * (double)i / (double)(n - 1) + 0.01 * normal();
}

/* Student's t of 2 degrees of freedom: it has no variance. */
static void heavy(double *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = 0.01 * normal() / sqrt(-log(uniform()));
}

/* A fast mode, and one 5% slower in three runs of ten. */
static void bimodal(double *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = 0.01 * normal() + (uniform() < 0.3 ? 0.05 : 0);
}

static const struct noise {
	const char *name;
	void (*fill)(double *x, size_t n);
	double step; /* of the clock, in seconds; 0: as fine as can be */
} noises[] = {
	{"independent", independent, 0},
	{"drift", drift, 0},
	{"trend", trend, 0},
	{"heavy tails", heavy, 0},
	{"ties", independent, 0.1},
	{"bimodal", bimodal, 0},
};

/* Made once, filled anew for each trial. */
struct machine {
	const struct noise *noise;
	double change; /* side B takes 1 + change as long */
	struct metric_set metrics;
	size_t metric;
	struct arms sides[2];
	double times[2][PAIRS_MOST];
};

static void machine_release(struct machine *m)
{
	metric_set_release(&m->metrics);
	arms_release(&m->sides[0]);
	arms_release(&m->sides[1]);
}

static void out_of_memory(void)
{
	fputs("bench_false_alarms: out of memory\n", stderr);
	exit(3);
}

static void machine_init(struct machine *m)
{
	*m = (struct machine){0};
	if (metric_set_init(&m->metrics, NULL) < 0)
		out_of_memory();
	m->metric = metric_find(&m->metrics, "wall_s");
	for (size_t i = 0; i < RUNS_MOST; i++) {
		struct arm *arm = arms_add(&m->sides[i / PAIRS_MOST]);

		if (!arm || !(arm->source = strdup(i < PAIRS_MOST ? "a" : "b")) || !(arm->status = strdup("ok")) ||
		    arm_set(arm, m->metric, TYPICAL_S) < 0)
			out_of_memory();
	}
}

/* The runs of n pairs, in an order that the coin gives: blocks of ABBA or BAAB; or all of A, then all of B. */
static void run_all(struct machine *m, size_t n, bool blocked)
{
	double log_times[RUNS_MOST];
	size_t done[2] = {0};
	bool second_first = false;

	m->noise->fill(log_times, 2 * n);
	for (size_t i = 0; i < 2 * n; i++) {
		bool outer = i % 4 == 0 || i % 4 == 3;
		double time;
		struct arm *arm;
		size_t side;

		if (i % 4 == 0)
			second_first = random_bits() >> 63;
		side = blocked ? i >= n : outer == second_first;
		time = TYPICAL_S * exp(log_times[i]) * (side ? 1 + m->change : 1);
		if (m->noise->step > 0)
			time = round(time / m->noise->step) * m->noise->step;
		m->times[side][done[side]] = time;
		arm = &m->sides[side].items[done[side]++];
		arm->values[m->metric] = time;
		arm->block = (int)(i / 4);
		arm->position = (int)(i % 4);
	}
}

struct verdicts {
	enum separation_verdict separation;
	enum paired_verdict paired;
};

/* By the first n pairs. */
static struct verdicts judge(struct machine *m, size_t n, size_t looks)
{
	const struct compare_options options = {.rule = RULE_PAIRED, .confidence = 0.95, .looks = looks};
	struct arms a = {m->sides[0].items, n, n}, b = {m->sides[1].items, n, n};
	CLEANUP(comparison_release) struct comparison c = {0};

	if (compare(&m->metrics, &a, &b, &options, &c, NULL) < 0)
		out_of_memory();
	if (c.count != 1 || c.pairs != n) {
		fprintf(stderr, "bench_false_alarms: of %zu pairs compare() found %zu\n", n, c.pairs);
		exit(3);
	}
	return (struct verdicts){c.metrics[0].separation, c.metrics[0].paired.verdict};
}

/* Student's quantile at 97.5%: Abramowitz and Stegun 26.7.5, within 0.001 from 7 degrees of freedom on. */
static double student_975(double freedom)
{
	double z = NORMAL_975, v = freedom;

	return z + (pow(z, 3) + z) / (4 * v) + (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * v * v) +
	       (3 * pow(z, 7) + 19 * pow(z, 5) + 17 * pow(z, 3) - 15 * z) / (384 * v * v * v);
}

static bool welch(const double *a, const double *b, size_t n)
{
	double count = (double)n;
	double va = pow(stats_deviation(a, n), 2) / count, vb = pow(stats_deviation(b, n), 2) / count;
	double freedom = (va + vb) * (va + vb) / ((va * va + vb * vb) / (count - 1));

	return fabs(stats_mean(a, n) - stats_mean(b, n)) > student_975(freedom) * sqrt(va + vb);
}

/* The normal limit with correction for ties and continuity. */
static bool mann_whitney(const double *a, const double *b, size_t n)
{
	double all[RUNS_MOST], u = 0, ties = 0, count = (double)n, variance;

	for (size_t i = 0; i < n; i++) {
		all[i] = a[i];
		all[n + i] = b[i];
		for (size_t j = 0; j < n; j++)
			u += a[i] < b[j] ? 1 : a[i] > b[j] ? 0 : 0.5;
	}
	stats_sort(all, 2 * n);
	for (size_t i = 0, j; i < 2 * n; i = j) {
		for (j = i; j < 2 * n && all[j] <= all[i]; j++)
			;
		ties += pow((double)(j - i), 3) - (double)(j - i);
	}
	variance = count * count / 12 * (2 * count + 1 - ties / (2 * count * (2 * count - 1)));
	return fabs(u - count * count / 2) - 0.5 > NORMAL_975 * sqrt(variance);
}

struct tally {
	size_t claimed, beyond, pairs;
};

static void tally_paired(struct tally *t, enum paired_verdict v, size_t pairs)
{
	bool beyond = v == PAIRED_BETTER || v == PAIRED_WORSE;

	t->claimed += beyond || v == PAIRED_SMALL;
	t->beyond += beyond;
	t->pairs += pairs;
}

static void print_row(const struct machine *m, const char *pairs, const char *rule, size_t trials, struct tally t)
{
	printf("%s\t%g\t%s\t%s\t%zu\t%zu\t%zu\t%zu\n", m->noise->name, m->change, pairs, rule, trials, t.claimed,
	       t.beyond, t.pairs);
}

static void try_fixed(struct machine *m, size_t n, size_t trials)
{
	struct tally separation = {0}, paired = {0}, t_test = {0}, ranks = {0};
	char pairs[24];

	for (size_t i = 0; i < trials; i++) {
		struct verdicts v;

		run_all(m, n, false);
		v = judge(m, n, 1);
		separation.beyond += v.separation == SEPARATION_BETTER || v.separation == SEPARATION_WORSE;
		tally_paired(&paired, v.paired, n);
		run_all(m, n, true);
		t_test.claimed += welch(m->times[0], m->times[1], n);
		ranks.claimed += mann_whitney(m->times[0], m->times[1], n);
	}
	separation.claimed = separation.beyond; /* it claims nothing within its floor */
	separation.pairs = t_test.pairs = ranks.pairs = n * trials;
	snprintf(pairs, sizeof pairs, "%zu", n);
	print_row(m, pairs, "separation", trials, separation);
	print_row(m, pairs, "paired", trials, paired);
	print_row(m, pairs, "Welch", trials, t_test);
	print_row(m, pairs, "Mann-Whitney", trials, ranks);
}

/* bench stops at the first look that says anything; matrix goes on while it is open whether a difference is beyond the
 * margin. */
static void try_sequential(struct machine *m, size_t trials)
{
	struct tally tally = {0};

	for (size_t i = 0; i < trials; i++) {
		enum paired_verdict v = PAIRED_UNDECIDED;
		size_t look = 0;

		run_all(m, stats_looks[STATS_LOOKS - 1], false);
		while ((v == PAIRED_UNDECIDED || v == PAIRED_SMALL) && look < STATS_LOOKS)
			v = judge(m, stats_looks[look++], STATS_LOOKS).paired;
		tally_paired(&tally, v, stats_looks[look - 1]);
	}
	print_row(m, "until decided", "sequential", trials, tally);
}

static const struct noise *noise_find(const char *name)
{
	for (size_t i = 0; i < sizeof noises / sizeof *noises; i++)
		if (strcmp(noises[i].name, name) == 0)
			return &noises[i];
	return NULL;
}

int main(int argc, char **argv)
{
	static const double changes[] = {0, 0.005, 0.01, 0.03};
	static const size_t pairs[] = {8, 20, PAIRS_MOST};
	CLEANUP(machine_release) struct machine m;
	unsigned long trials = 0;

	machine_init(&m);
	if (argc == 1) { /* the names that there are */
		for (size_t i = 0; i < sizeof noises / sizeof *noises; i++)
			puts(noises[i].name);
		return 0;
	}
	errno = 0;
	if (argc == 4) {
		m.noise = noise_find(argv[1]);
		trials = strtoul(argv[2], NULL, 10);
		random_state = strtoull(argv[3], NULL, 10);
	}
	if (!m.noise || !trials || errno) {
		fputs("usage: bench_false_alarms [NOISE TRIALS SEED]\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		m.change = changes[i];
		for (size_t j = 0; j < sizeof pairs / sizeof *pairs; j++)
			try_fixed(&m, pairs[j], trials);
		try_sequential(&m, trials);
	}
	return 0;
}
