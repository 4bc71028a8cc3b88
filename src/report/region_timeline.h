/* The calls of a file in the order of time, by rank and thread, for formats that show calls inside each other. Knows no
 * format.
 *
 * Which call is inside which is a matter of their times here. Calls of one thread that overlap without one being inside
 * the other (those ended by a token) are put into further lanes. All calls are in memory: 32 bytes each. */
#ifndef ASSAY_REPORT_REGION_TIMELINE_H
#define ASSAY_REPORT_REGION_TIMELINE_H

#include "report/region_exporter.h"

#define REGION_TIMELINE_CALLS_MAX ((uint64_t)5000000) /* what viewers can open at all */

struct timeline_call {
	int64_t start, end; /* end is not before start */
	uint32_t region;    /* index into names */
	uint32_t rank;
	int32_t thread;     /* -1: unknown */
	uint32_t lane;
};

/* A thread. */
struct timeline_track {
	size_t first, count; /* of the calls: by start, and of those with one start the longest first */
	uint32_t lanes;      /* above all `lane` of its calls */
};

struct region_timeline {
	struct timeline_call *calls;
	size_t count;
	struct timeline_track *tracks; /* by rank and thread */
	size_t track_count;
};

void region_timeline_init(struct region_timeline *t);
void region_timeline_release(struct region_timeline *t);

/* Reads what the export takes; *t must be initialised. In the lanes below most_lanes - 1 each call lies inside or
 * beside every other one; what does not fit into them shares the last one. Fails above REGION_TIMELINE_CALLS_MAX
 * calls. */
int region_timeline_read(struct region_timeline *t, const struct region_export *e, uint32_t most_lanes,
			 struct error *err);

#endif
