#include "lib/measure_batches.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "judge/stats.h"
#include "lib/export.h"
#include "lib/last_error.h"

#define REPEAT_MOST UINT64_C(1000000)
#define CONFIDENCE 0.95
/* Empty loops before each batch, and the executions of one: some 30 us at most, whatever the batch has. */
#define EMPTY_TRIES 3
#define EMPTY_MOST 20000
#define EMPTY_ALONE_MOST 500 /* each with two readings of the clock */

static int check(const struct assay_measure_options *o)
{
	if (isnan(o->max_time) || o->max_time < 0 || isinf(o->max_time))
		return last_error_set("assay_measure: max_time is %g; it is seconds above 0, or 0 for none",
				      o->max_time);
	if (o->max_time > 0 && !o->div_by_number)
		return last_error_set("assay_measure: div_by_number has to be set where max_time is");
	if (o->max_time > 0)
		return 0;
	if (o->repeat < 1 || o->repeat > REPEAT_MOST)
		return last_error_set("assay_measure: repeat is %llu; there are 1 to 1,000,000 batches",
				      (unsigned long long)o->repeat);
	if (o->number < 1)
		return last_error_set("assay_measure: number is 0; a batch has 1 execution at least");
	return 0;
}

int measuring_begin(struct measuring *m, const struct assay_measure_options *options)
{
	static const struct assay_measure_options defaults = ASSAY_MEASURE_DEFAULTS;

	*m = (struct measuring){.options = options ? *options : defaults, .clock_ns = INT64_MAX};
	counters_open(&m->counters);
	if (check(&m->options) < 0)
		return -1;
	m->room = m->options.max_time > 0 ? TIMING_PLAN_BATCHES : (size_t)m->options.repeat;
	m->batches = calloc(m->room, sizeof *m->batches);
	m->empty_ns = calloc(m->room, EMPTY_TRIES * sizeof *m->empty_ns);
	if (!m->batches || !m->empty_ns)
		return last_error_set("assay_measure: out of memory for the times of %zu batches", m->room);
	return 0;
}

void measuring_release(struct measuring *m)
{
	counters_close(&m->counters);
	free(m->batches);
	free(m->empty_ns);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* An empty loop as long as the batch, where that is not too long, has all of its costs: those per execution, and those
 * per batch, which zero executions have. */
static void run_empty(struct measuring *m, empty_loop empty, const void *context)
{
	uint64_t most = m->options.each ? EMPTY_ALONE_MOST : EMPTY_MOST;
	uint64_t number = m->number < most ? m->number : most;

	if (number != m->empty_number) {
		m->empty_number = number;
		m->empty_count = 0;
	}
	for (int i = 0; i < EMPTY_TRIES; i++) {
		m->clock_ns = least(m->clock_ns, empty(context, 0));
		m->empty_ns[m->empty_count++] = (double)empty(context, number);
	}
}

uint64_t measuring_next(struct measuring *m, empty_loop empty, const void *context)
{
	const struct assay_measure_options *o = &m->options;

	if (m->count == m->room)
		m->number = 0;
	else if (o->max_time > 0)
		m->number = timing_plan_next(&m->plan, m->count ? m->batches[m->count - 1].seconds : 0, o->max_time);
	else
		m->number = o->number;
	if (m->number)
		run_empty(m, empty, context);
	return m->number;
}

void measuring_add(struct measuring *m, int64_t ns, const struct counts *before, const struct counts *after)
{
	struct counts counts = counts_between(before, after);

	m->batches[m->count++] = (struct timing_batch){
		.number = m->number,
		.seconds = (double)ns * 1e-9,
		.cycles = counts.cycles,
		.instructions = counts.instructions,
	};
}

static void convert(const struct timing *t, const struct assay_measure_options *o, double warmup_time,
		    struct assay_timing *result)
{
	*result = (struct assay_timing){
		.average = t->average,
		.deviation = t->deviation,
		.min_exec = t->min_exec,
		.max_exec = t->max_exec,
		.ttime = t->ttime,
		.warmup_time = warmup_time,
		.repeat = t->repeat,
		.number = t->number,
		.context_size = o->context_size,
		.median = t->median,
		.p05 = t->p05,
		.p25 = t->p25,
		.p75 = t->p75,
		.p95 = t->p95,
		.low = t->low,
		.high = t->high,
		.confidence = t->confidence,
		.overhead = t->overhead,
		.resolution = t->resolution,
		.cycles = t->cycles,
		.instructions = t->instructions,
		.warnings = t->warnings,
	};
}

static int figures(const struct timing_batch *batches, size_t count, double overhead_s, double warmup_time,
		   const struct assay_measure_options *o, struct assay_timing *result)
{
	const struct timing_options options = {
		.div_by_number = o->div_by_number != 0,
		.by_time = o->max_time > 0,
		.overhead_s = overhead_s,
		.resolution_s = (double)clock_step_ns() / NS_PER_S,
		.confidence = CONFIDENCE,
		.alone = o->each != NULL,
	};
	struct timing t;
	struct error err;

	if (timing_of(batches, count, &options, &t, &err) < 0)
		return last_error_set("assay_measure: %s", err.text);
	convert(&t, o, warmup_time, result);
	return 0;
}

/* What a batch as such takes leaves its seconds; what an execution takes is subtracted with the figures. Executions
 * that are timed alone have both in each of them. The empty loop's median, not its minimum: a virtual machine has
 * moments in which everything is a third faster, and a minimum finds them. */
int measuring_figures(struct measuring *m, struct assay_timing *result)
{
	double batch_ns = m->options.each ? 0 : (double)m->clock_ns, overhead;

	if (!m->count)
		return last_error_set("assay_measure: the block was left before its first batch was complete");
	stats_sort(m->empty_ns, m->empty_count);
	overhead = fmax(0, stats_median(m->empty_ns, m->empty_count) - batch_ns) * 1e-9 / (double)m->empty_number;
	for (size_t i = 0; i < m->count; i++)
		m->batches[i].seconds = fmax(0, m->batches[i].seconds - batch_ns * 1e-9);
	return figures(m->batches, m->count, overhead, m->warmup_time, &m->options, result);
}

ASSAY_EXPORT int assay_timing_of(const uint64_t *numbers, const double *seconds, size_t count, double overhead,
				 const struct assay_measure_options *options, struct assay_timing *result)
{
	static const struct assay_measure_options defaults = ASSAY_MEASURE_DEFAULTS;
	struct assay_measure_options o = options ? *options : defaults;
	struct timing_batch *batches;
	int got;

	if (!numbers || !seconds || !result || !(overhead >= 0) || isinf(overhead))
		return last_error_set("assay_timing_of: it needs numbers, seconds, a result and an overhead from 0 on");
	batches = count <= REPEAT_MOST ? calloc(count + 1, sizeof *batches) : NULL;
	if (!batches)
		return last_error_set("assay_timing_of: out of memory for the times of %zu batches", count);
	for (size_t i = 0; i < count; i++)
		batches[i] = (struct timing_batch){numbers[i], seconds[i], NAN, NAN};
	o.each = NULL;
	got = figures(batches, count, overhead, 0, &o, result);
	free(batches);
	return got;
}

ASSAY_EXPORT const char *assay_timing_warning(const struct assay_timing *t, unsigned index)
{
	for (unsigned bit = 1; bit < TIMING_WARNINGS; bit <<= 1)
		if (t->warnings & bit && index-- == 0)
			return timing_warning_text((enum timing_warning)bit);
	return NULL;
}

ASSAY_EXPORT uint64_t assay_timing_plan_next(struct assay_timing_plan *plan, double seconds, double max_time)
{
	struct timing_plan inner = {plan->total, plan->i, plan->step};
	uint64_t number = timing_plan_next(&inner, seconds, max_time);

	*plan = (struct assay_timing_plan){inner.total, inner.i, inner.step};
	return number;
}
