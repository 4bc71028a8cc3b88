/* One file of regions from what libassay left in a folder (or in several: one per machine): ranks joined on the clock
 * of rank 0, calls grouped by rank and region, parents and exclusive times found. Memory stays bounded whatever the
 * number of calls; what does not fit lies in an unlinked file beside the output. */
#ifndef ASSAY_STORE_REGION_MERGE_H
#define ASSAY_STORE_REGION_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct region_merge_options {
	const char *const *folders; /* each searched for recordings, and rank-N/ folders in it */
	size_t folder_count;
	const char *out;
	bool leave_out_ids;   /* no call_ids and parent_ids */
	const volatile int *stop; /* set by a signal handler: give up; may be NULL */
	void (*progress)(void *context, uint64_t done, uint64_t all); /* NULL: nobody looks */
	void *context;
};

struct region_merge_result {
	uint64_t processes, calls, dropped;
	uint32_t ranks, expected_ranks; /* expected 0: nobody said */
	char *missing;                  /* "2, 5-7"; NULL: none is missing */
	char **notes; /* sentences: killed processes, uncertain clocks, damaged files */
	size_t note_count;
};

void region_merge_result_init(struct region_merge_result *r);
void region_merge_result_release(struct region_merge_result *r);

/* Returns 0; 1 where the folders hold no recording (nothing is written); -1 with *err, and no file. */
int region_merge(const struct region_merge_options *o, struct region_merge_result *ret, struct error *err);

#endif
