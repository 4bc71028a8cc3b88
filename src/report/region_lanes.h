/* The threads of the ranks of a file, numbered in the order in which they are met. A thread that the file does not tell
 * is -1: one lane of its rank. */
#ifndef ASSAY_REPORT_REGION_LANES_H
#define ASSAY_REPORT_REGION_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct region_lane {
	uint32_t rank;
	int32_t thread;
};

struct region_lanes {
	struct region_lane *items;
	size_t count, room;
	size_t *slots, slot_count; /* by hash: index + 1 */
};

#define REGION_LANE_NONE SIZE_MAX

void region_lanes_init(struct region_lanes *l);
void region_lanes_release(struct region_lanes *l);

/* The number of a thread, which it gets here where it is new: REGION_LANE_NONE where there are `most` already. */
int region_lanes_find(struct region_lanes *l, uint32_t rank, int32_t thread, size_t most, size_t *ret,
		      struct error *err);

#endif
