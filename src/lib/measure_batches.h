/* The batches of one measurement: how many executions the next one has, what those so far took, and what an empty loop
 * takes beside them. It knows neither what is executed nor how; assay_measure_time and the block of ASSAY_MEASURE run
 * their own loops. Times are nanoseconds of CLOCK_MONOTONIC rather than CLOCK_MONOTONIC_RAW: it is the clock of
 * everything that assay records, its second is as long as NTP says, and its pace is changed by 0.05% at most. */
#ifndef ASSAY_LIB_MEASURE_BATCHES_H
#define ASSAY_LIB_MEASURE_BATCHES_H

#include <assay.h>

#include "judge/timing.h"
#include "lib/measure_counters.h"

struct measuring {
	struct assay_measure_options options;
	struct timing_batch *batches;
	size_t count, room;
	struct timing_plan plan;
	uint64_t number;           /* of the batch that is next, or under way */
	int64_t clock_ns;          /* shortest time of no execution: reading the clock, entering the loop */
	double *empty_ns;          /* times of empty_number empty executions, the clock's included */
	size_t empty_count;
	uint64_t empty_number;
	double warmup_time;
	struct counters counters;
};

/* What is executed instead of the statement to see what the loop itself takes; it returns the nanoseconds. */
typedef int64_t (*empty_loop)(const void *context, uint64_t number);

/* NULL options: the defaults. Returns 0; -1 (last_error_set) where they make no sense, or there is no memory. */
int measuring_begin(struct measuring *m, const struct assay_measure_options *options);
void measuring_release(struct measuring *m);

/* The executions of the next batch; 0: it is over. Runs the empty loop some times, so that it meets the same moods of
 * the machine as the statement. */
uint64_t measuring_next(struct measuring *m, empty_loop empty, const void *context);

/* What the batch took, and what the counters said before and after it. */
void measuring_add(struct measuring *m, int64_t ns, const struct counts *before, const struct counts *after);

/* The figures of the batches, once, when no more come. Returns 0; -1 (last_error_set), and *result is untouched. */
int measuring_figures(struct measuring *m, struct assay_timing *result);

#endif
