/* assay_measure.h: how long a function or a block takes. Part of assay.h, which includes it.
 *
 * C99 and C++. Times are seconds. What is recorded by the rest of the library is untouched by this: it works without a
 * recording, and with -DASSAY_DISABLE. */
#ifndef ASSAY_MEASURE_H
#define ASSAY_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct assay_measure_options {
	uint64_t repeat;      /* batches; ignored with max_time */
	uint64_t number;      /* executions in one batch; with max_time it is chosen */
	uint64_t warmup;      /* executions before the first batch */
	int div_by_number;    /* 1: figures are per execution; 0: per batch */
	double max_time;      /* above 0: growing batches until their total is beyond it; needs div_by_number */
	void (*each)(void *); /* with the context, untimed, before every execution: fresh input. NULL: none */
	size_t context_size;  /* only passed on to the result */
};

#define ASSAY_MEASURE_DEFAULTS {10, 50, 1, 1, 0.0, 0, 0}

struct assay_timing {
	/* Of the batches' times. deviation: of the population. ttime: their sum, after the division; with max_time all
	 * seconds, while repeat is 1, number all executions, and the others are weighted by the batches' numbers. */
	double average, deviation, min_exec, max_exec, ttime, warmup_time;
	uint64_t repeat, number;
	size_t context_size;
	double median, p05, p25, p75, p95;
	double low, high, confidence; /* of the median, exact; NaN where there are too few batches */
	double overhead;              /* of an empty function, per execution; it is subtracted from all of the above */
	double resolution;            /* of the clock */
	double cycles, instructions;  /* per execution; NaN where they are not counted here */
	unsigned warnings;            /* bits; assay_timing_warning has their sentences */
};

/* Calls function(context). Returns 0; -1 where an option makes no sense or there is no memory (assay_last_error says
 * which), and *result is untouched. NULL options: ASSAY_MEASURE_DEFAULTS. */
int assay_measure_time(void (*function)(void *), void *context, const struct assay_measure_options *options,
		       struct assay_timing *result);

/* The sentence of the `index`th warning of *t, from 0; NULL: there are no more. A constant. */
const char *assay_timing_warning(const struct assay_timing *t, unsigned index);

#ifdef __cplusplus
}
#endif

#endif
