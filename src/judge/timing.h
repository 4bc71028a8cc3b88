/* What timed batches of a function or statement say: the figures of assay_measure_time and `assay timeit`. Pure.
 *
 * A batch is `number` executions timed together. The fields that the reference document names have its meaning and
 * formulas; the others are ours. Times are seconds. */
#ifndef ASSAY_JUDGE_TIMING_H
#define ASSAY_JUDGE_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct timing_batch {
	uint64_t number;             /* executions, at least 1 */
	double seconds;              /* as measured, the loop's own time included */
	double cycles, instructions; /* of the batch; NaN: not counted */
};

struct timing_options {
	bool div_by_number;  /* else a batch's whole time is one value */
	bool by_time;        /* max_time: batches differ in number, and are weighted by it; needs div_by_number */
	double overhead_s;   /* of an empty statement, per execution; subtracted from each batch, never below 0 */
	double resolution_s; /* the smallest time that the clock tells apart */
	double confidence;   /* of low..high, e.g. 0.95 */
	bool alone;          /* each execution was timed by itself, and a batch's seconds are their sum */
};

/* With by_time only the first two and none of the shape: batches are not alike. Where nothing is left, neither. */
enum timing_warning {
	TIMING_UNRESOLVED = 1,      /* what was timed at once, batch or execution, took less than 100 resolutions */
	TIMING_NOTHING_LEFT = 2,    /* no more than an empty loop takes: the compiler may have removed the statement */
	TIMING_FIRST_SLOW = 4,      /* the first batch is an outlier: more warmup */
	TIMING_OUTLIERS = 8,
	TIMING_DRIFTS = 16,
	TIMING_BIMODAL = 32,
	TIMING_FEW = 64,            /* too few batches for an interval at this confidence */
	TIMING_WARNINGS = 128,      /* one beyond the last */
};

struct timing {
	/* As the reference has them. deviation is that of the population. With by_time they are weighted by number,
	 * repeat is 1, number the sum of all, ttime the sum of all seconds. */
	double average, deviation, min_exec, max_exec, ttime;
	uint64_t repeat, number;
	/* Ours, of the values of the batches. With by_time quantiles are of executions, each taking its batch's mean:
	 * half of the batches are short ones that only sized the others. */
	size_t batches;
	double median, p05, p25, p75, p95;
	double low, high, confidence;   /* of the median, exact sign interval; NaN: too few, or by_time */
	double overhead;                /* subtracted, per execution */
	double resolution;
	double cycles, instructions;    /* per execution, medians, those of the empty loop not subtracted; NaN */
	unsigned warnings;              /* bits of enum timing_warning */
};

/* Fails without a batch, with one of number 0, with a time that is no number or negative, with by_time without
 * div_by_number, or when out of memory. */
int timing_of(const struct timing_batch *batches, size_t count, const struct timing_options *options,
	      struct timing *ret, struct error *err);

/* One sentence for one bit: what is odd, and what helps. NULL for none of them. */
const char *timing_warning_text(enum timing_warning bit);

/* The adaptive plan of max_time, as the reference has it: batches of i and 2i executions, i growing by the time that is
 * left over the time that has passed, until the total is over max_time. Start with zeroes. Returns the number of the
 * next batch, 0 when it is over; `seconds` is what the batch before took (ignored at the first call). Where the clock
 * says 0, i grows tenfold instead of without bound; from the 128th batch on at least twofold, so that a slow beginning
 * cannot fill the memory with short batches. */
struct timing_plan {
	double total;
	uint64_t i;
	unsigned step;
};
#define TIMING_PLAN_BATCHES 256 /* never more of them: i would be beyond 64 bits */
uint64_t timing_plan_next(struct timing_plan *plan, double seconds, double max_time);

#endif
