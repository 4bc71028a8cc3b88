/* What a run's report tells of the regions that its program marked (include/assay.h): the largest, and what went wrong.
 *
 * Plain data: all of it is in the file of regions, too. */
#ifndef ASSAY_MODEL_RUN_REGIONS_H
#define ASSAY_MODEL_RUN_REGIONS_H

#include <stddef.h>
#include <stdint.h>

#define RUN_REGIONS_SHOWN 20
#define RUN_REGION_TROUBLES 16 /* room for all kinds of wrong use */

struct run_region {
	char *name; /* owned */
	uint64_t calls;
	double total_s, exclusive_s; /* over all ranks and threads; NaN: not known */
	double mean_s;               /* of the calls with times; NaN: there are none */
	double share;                /* of the time from the first region to the last, per rank; NaN */
};

struct run_regions {
	uint64_t regions, calls, dropped, ranks;
	uint64_t troubles[RUN_REGION_TROUBLES]; /* by enum region_trouble (wire/regions.h) */
	struct run_region top[RUN_REGIONS_SHOWN]; /* the largest total first */
	size_t top_count;
};

void run_regions_init(struct run_regions *r);
void run_regions_release(struct run_regions *r);

#endif
