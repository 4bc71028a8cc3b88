/* How often llama-bench ran each test, from when its rows arrived.
 *
 * Between two rows at the same settings lie a short set-up, one warmup (a single token for a generation) and the
 * repetitions, so that the whole part of gap / repetition is their number as long as the rest is less than one
 * repetition. It is taken only where the rest is small, every generation that can be judged says the same and the
 * number fits all rows; no number is better than a wrong one. */
#include "engine/bench_rows.h"

#include <math.h>

#include "base/clock.h"

#define TOKENS_MIN 8                               /* fewer: the warmup is much of a repetition */
#define REPETITION_MIN_NS (0.1 * (double)NS_PER_S) /* shorter: the set-up is */
#define SETUP_MAX 0.25                             /* what the set-up may take, in repetitions */
#define DOUBT_MAX 0.1                              /* how far off the number may be before it is rounded */

enum { SAYS_NOTHING = 0, CONTRADICTS = -1 };

double bench_row_repetition_ns(const struct bench_row *row)
{
	double tokens = (double)row->test.n_prompt + (double)row->test.n_gen;

	return isnan(row->average_ns) ? tokens / row->test.tokens_per_s * (double)NS_PER_S : row->average_ns;
}

bool bench_row_fits(const struct bench_row *row, double measured_ns, int64_t from)
{
	return row->test.n_depth <= 0 && measured_ns <= 1.01 * (double)(row->t - from) + 2e6;
}

/* How far `count`, made from a printed rate, may be off: that is rounded to 0.01, and the mean of the rates is more
 * than the rate of the mean by the square of their spread. */
static double doubt(const struct bench_row *row, double count)
{
	double spread = row->test.deviation / row->test.tokens_per_s;

	return isnan(row->average_ns) ? count * (0.005 / row->test.tokens_per_s + spread * spread) : 0;
}

/* How many repetitions lie between two rows, as far as these two can say: or one of the above. */
static int64_t count_between(const struct bench_row *before, const struct bench_row *row)
{
	double repetition = bench_row_repetition_ns(row);
	double count = (double)(row->t - before->t) / repetition, whole = floor(count);

	if (row->settings != before->settings || row->test.n_prompt > 0 || row->test.n_depth > 0 ||
	    row->test.n_gen < TOKENS_MIN || !(repetition >= REPETITION_MIN_NS) || !(doubt(row, count) <= DOUBT_MAX))
		return SAYS_NOTHING;
	if (count - whole > 1 / (double)row->test.n_gen + SETUP_MAX)
		return CONTRADICTS;
	return (int64_t)whole;
}

/* A single repetition has no deviation; several have one, though a table may round it away. */
static bool deviation_allows(const struct bench_row *row, int64_t count)
{
	if (row->test.deviation > 0)
		return count > 1;
	return count == 1 || row->form == BENCH_MARKDOWN || isnan(row->test.deviation);
}

/* The number that all rows of one run agree on, or -1. The first one began at `from` or later. */
static int64_t infer(const struct bench_row *rows, size_t rows_count, int64_t from)
{
	int64_t count = -1;

	for (size_t i = 1; i < rows_count; i++) {
		int64_t said = count_between(&rows[i - 1], &rows[i]);

		if (said == CONTRADICTS || rows[i].t - rows[i - 1].t < BENCH_TOGETHER_NS ||
		    (said > 0 && count > 0 && said != count))
			return -1;
		if (said > 0)
			count = said;
	}
	for (size_t i = 0; i < rows_count && count > 0; i++) {
		double measured = (double)count * bench_row_repetition_ns(&rows[i]);

		if (rows[i].form == BENCH_JSON || !deviation_allows(&rows[i], count) ||
		    (rows[i].test.n_depth <= 0 && !bench_row_fits(&rows[i], measured, i ? rows[i - 1].t : from)))
			return -1;
	}
	return count;
}

void bench_rows_infer(struct bench_rows *r, int64_t start)
{
	for (size_t first = 0, end; first < r->count; first = end) {
		int64_t count;

		end = first + 1;
		while (end < r->count && r->items[end].run == r->items[first].run)
			end++;
		count = infer(r->items + first, end - first, first ? r->items[first - 1].t : start);
		for (size_t i = first; i < end; i++)
			r->items[i].inferred = count;
	}
}
