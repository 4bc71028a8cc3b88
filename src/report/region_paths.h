/* Exclusive time by path of regions (which region inside which), for formats of stacks. Knows no format.
 *
 * Which call is inside which is what the file says (parent ids). Regions that the export leaves out are as if they had
 * never been marked: what is inside them stands in the next region around them, and their own time is part of that. */
#ifndef ASSAY_REPORT_REGION_PATHS_H
#define ASSAY_REPORT_REGION_PATHS_H

#include "report/region_exporter.h"

#define REGION_PATHS_MAX 1000000

struct region_path {
	uint32_t parent; /* index; 0: none, outermost */
	uint32_t region; /* index into names */
	int64_t self;    /* ns, over all ranks; below 0 where calls in other threads overlap within a call */
};

struct region_paths {
	struct region_path *items; /* the first one stands for the run and has no region */
	size_t count, room;
	uint32_t *slots; /* items by parent and region: index, 0 free */
	size_t slot_count;
};

void region_paths_init(struct region_paths *p);
void region_paths_release(struct region_paths *p);

/* *p must be initialised. Needs 12 bytes for each call of one rank at a time, which lie in an unlinked file below
 * $TMPDIR (or /tmp) where they are many. Without parent ids each region is a path of its own, with all its time. */
int region_paths_read(struct region_paths *p, const struct region_export *e, struct error *err);

#endif
