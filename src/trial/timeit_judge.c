#include "trial/timeit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* A time up to this share of an empty loop's is not to be told from nothing. */
#define NOTHING_SHARE 0.5

void timeit_answer_release(struct timeit_answer *a)
{
	free(a->timings);
	bench_release(&a->bench);
	bench_answer_release(&a->comparisons);
	*a = (struct timeit_answer){0};
}

/* Of an execution: the median over the batches; where they differ in size, that of all together. */
static int overhead_of(const struct timeit *t, const struct timeit_side *s, double *ret, struct error *err)
{
	CLEANUP(free_cleanup) double *values = calloc(s->count + 1, sizeof *values);
	double seconds = 0, executions = 0;

	if (!values)
		return error_set(err, "out of memory for %zu batches", s->count);
	for (size_t i = 0; i < s->count; i++) {
		values[i] = s->empties[i] / (double)s->batches[i].number;
		seconds += s->empties[i];
		executions += (double)s->batches[i].number;
	}
	*ret = t->by_time ? seconds / executions : stats_middle(values, s->count);
	return 0;
}

static int judge_side(const struct timeit *t, const struct timeit_side *s, struct timing *ret, struct error *err)
{
	struct timing_options o = {
		.div_by_number = true,
		.by_time = t->by_time,
		.alone = t->each,
		.resolution_s = t->resolution_s,
		.confidence = t->confidence,
	};

	if (overhead_of(t, s, &o.overhead_s, err) < 0)
		return -1;
	if (timing_of(s->batches, s->count, &o, ret, err) < 0)
		return -1;
	/* An unrolled loop takes so little that two empty ones differ by more than the judge's share of it. */
	if ((t->by_time ? ret->average : ret->median) <= NOTHING_SHARE * o.overhead_s)
		ret->warnings = (ret->warnings & TIMING_UNRESOLVED) | TIMING_NOTHING_LEFT;
	return 0;
}

static int put_runs(const struct timeit_side *s, const struct timing *timing, struct bench_command *c,
		    struct error *err)
{
	c->line = strdup(s->label);
	if (!c->line)
		return error_set(err, "out of memory for a statement");
	for (char *at = c->line; (at = strpbrk(at, "\n\t"));)
		*at = ' ';
	for (size_t i = 0; i < s->count; i++) {
		struct bench_run *run = bench_runs_add(&c->runs);

		if (!run)
			return error_set(err, "out of memory for %zu batches", s->count);
		run->counts = true;
		run->wall_s = fmax(0, s->batches[i].seconds / (double)s->batches[i].number - timing->overhead);
	}
	return 0;
}

/* Batches are to pairs what a command's runs are. */
static int compare(const struct timeit *t, struct timeit_answer *a, struct error *err)
{
	struct bench *b = &a->bench;

	b->commands = calloc(t->count, sizeof *b->commands);
	if (!b->commands)
		return error_set(err, "out of memory for %zu snippets", t->count);
	b->count = t->count;
	b->confidence = t->confidence;
	b->margin = t->margin;
	b->looks = 1;
	b->seed = t->seed;
	b->state = t->state;
	for (size_t i = 0; i < t->count; i++) {
		const struct timing *timing = &a->timings[i];

		if (put_runs(&t->sides[i], timing, &b->commands[i], err) < 0)
			return -1;
		b->clock_s = fmax(b->clock_s, NOTHING_SHARE * timing->overhead);
	}
	return bench_judge(b, &a->comparisons, err);
}

int timeit_judge(const struct timeit *t, struct timeit_answer *ret, struct error *err)
{
	CLEANUP(timeit_answer_release) struct timeit_answer a = {0};

	a.timings = calloc(t->count + 1, sizeof *a.timings);
	if (!a.timings)
		return error_set(err, "out of memory for %zu snippets", t->count);
	for (size_t i = 0; i < t->count; i++)
		if (t->sides[i].count && judge_side(t, &t->sides[i], &a.timings[i], err) < 0)
			return -1;
	if (compare(t, &a, err) < 0)
		return -1;
	*ret = a;
	a = (struct timeit_answer){0};
	return 0;
}
