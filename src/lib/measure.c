/* assay_measure_time, and the block of ASSAY_MEASURE: the loops around what is measured. */
#include "lib/measure_batches.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "lib/export.h"
#include "lib/last_error.h"

/* A function as short as can be, to be called as the measured one is. */
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("omit-frame-pointer")))
#endif
__attribute__((noinline, aligned(64))) static void nothing(void *context)
{
	(void)context;
	__asm__ __volatile__("");
}

/* The one loop for the measured function and for the empty one, so that both meet the same code. */
__attribute__((noinline, aligned(64))) static int64_t together(void (*function)(void *), void *context, uint64_t number)
{
	int64_t begin = clock_mono_ns();

	for (; number; number--)
		function(context);
	return clock_mono_ns() - begin;
}

/* The same with something before each execution that does not count. */
__attribute__((noinline, aligned(64))) static int64_t alone(void (*function)(void *), void (*each)(void *),
							    void *context, uint64_t number)
{
	int64_t sum = 0;

	for (; number; number--) {
		int64_t begin;

		each(context);
		begin = clock_mono_ns();
		function(context);
		sum += clock_mono_ns() - begin;
	}
	return sum;
}

static int64_t empty_together(const void *context, uint64_t number)
{
	(void)context;
	return together(nothing, NULL, number);
}

static int64_t empty_alone(const void *context, uint64_t number)
{
	(void)context;
	return alone(nothing, nothing, NULL, number);
}

static int64_t run(const struct measuring *m, void (*function)(void *), void *context, uint64_t number)
{
	return m->options.each ? alone(function, m->options.each, context, number)
			       : together(function, context, number);
}

static void run_batches(struct measuring *m, void (*function)(void *), void *context)
{
	/* What is done to get fresh input would be counted, too. */
	const struct counters *counters = m->options.each ? &(const struct counters){-1, -1} : &m->counters;
	empty_loop empty = m->options.each ? empty_alone : empty_together;
	uint64_t number;

	if (m->options.warmup)
		m->warmup_time = (double)run(m, function, context, m->options.warmup) * 1e-9;
	while ((number = measuring_next(m, empty, NULL))) {
		struct counts before = counters_read(counters), after;
		int64_t ns = run(m, function, context, number);

		after = counters_read(counters);
		measuring_add(m, ns, &before, &after);
	}
}

ASSAY_EXPORT int assay_measure_time(void (*function)(void *), void *context,
				    const struct assay_measure_options *options, struct assay_timing *result)
{
	struct measuring m;
	int saved = errno, got;

	if (!function || !result)
		return last_error_set("assay_measure_time: it needs a function and a place for the result");
	got = measuring_begin(&m, options);
	if (got == 0) {
		run_batches(&m, function, context);
		got = measuring_figures(&m, result);
	}
	measuring_release(&m);
	errno = saved;
	return got;
}

/* A block's own state between two of its batches. */
struct block {
	struct measuring measuring;
	struct assay_timing *result;
	void (*empty)(uint64_t number);
	bool warming, under_way, over; /* over: no batch comes any more */
	struct counts before;
	int64_t begin;
};

static int64_t empty_block(const void *context, uint64_t number)
{
	const struct block *b = context;
	int64_t begin = clock_mono_ns();

	b->empty(number);
	return clock_mono_ns() - begin;
}

static int begin_block(struct block *b, const struct assay_measure_options *options)
{
	if (measuring_begin(&b->measuring, options) < 0)
		return -1;
	if (b->measuring.options.each)
		return last_error_set("ASSAY_MEASURE: each goes with a function: assay_measure_time runs it before "
				      "every call");
	b->warming = b->measuring.options.warmup > 0;
	return 0;
}

ASSAY_EXPORT void assay_measurement_begin(struct assay_measurement *m, struct assay_timing *result,
					  const struct assay_measure_options *options, void (*empty)(uint64_t number))
{
	int saved = errno;
	struct block *b = calloc(1, sizeof *b);

	*m = (struct assay_measurement){0};
	if (result)
		*result = (struct assay_timing){0};
	if (!b) {
		last_error_set("ASSAY_MEASURE: out of memory");
	} else if (begin_block(b, options) < 0) {
		measuring_release(&b->measuring);
		free(b);
	} else {
		b->result = result;
		b->empty = empty;
		m->own = b;
	}
	errno = saved;
}

/* Takes in the batch that has just ended, at `now`; one that was broken off is none, and is the last. */
static void take_in(struct block *b, const struct assay_measurement *m, int64_t now)
{
	struct counts after;

	b->under_way = false;
	if (m->left) {
		b->over = true;
	} else if (b->warming) {
		b->measuring.warmup_time = (double)(now - b->begin) * 1e-9;
		b->warming = false;
	} else {
		after = counters_read(&b->measuring.counters);
		measuring_add(&b->measuring, now - b->begin, &b->before, &after);
	}
}

ASSAY_EXPORT int assay_measurement_more(struct assay_measurement *m)
{
	int64_t now = clock_mono_ns();
	struct block *b = m->own;
	int saved = errno;

	if (!b || b->over)
		return 0;
	if (b->under_way)
		take_in(b, m, now);
	if (!b->over) {
		m->number = b->warming ? b->measuring.options.warmup : measuring_next(&b->measuring, empty_block, b);
		b->over = m->number == 0;
	}
	errno = saved;
	if (b->over)
		return 0;
	m->left = m->number;
	b->under_way = true;
	b->before = counters_read(&b->measuring.counters);
	b->begin = clock_mono_ns();
	return 1;
}

ASSAY_EXPORT void assay_measurement_end(struct assay_measurement *m)
{
	struct block *b = m->own;
	int saved = errno;

	if (!b)
		return;
	/* Where there are none, repeat stays 0 and assay_last_error says so. */
	if (b->result)
		measuring_figures(&b->measuring, b->result);
	measuring_release(&b->measuring);
	free(b);
	m->own = NULL;
	errno = saved;
}
