/* How long other regions ran inside the calls of each row, from the parents that a file has noted: what turns the
 * total of a row by thread into its exclusive time. The file's own exclusive times are of regions on ranks, and not of
 * threads. */
#ifndef ASSAY_STORE_REGION_INSIDE_H
#define ASSAY_STORE_REGION_INSIDE_H

#include "store/region_by_rank.h"
#include "store/region_file.h"

struct region_inside {
	/* The row of a call; UINT32_MAX: of none that is asked for. thread: -1 unknown. */
	uint32_t (*row_of)(void *context, size_t part, int64_t thread);
	void (*add)(void *context, uint32_t row, int64_t duration); /* of a call that was made in one of the row's */
	void *context;
};

/* Goes through the calls of one rank; ranks must come in ascending order. Returns 0, also where nothing can be known:
 * then *ret_why (owned) is the sentence that says why, and nothing was added; else NULL. Takes 4 bytes of memory for
 * each call of the rank. */
int region_inside_rank(struct region_file *f, struct region_by_rank *by_rank, uint32_t rank,
		       const struct region_inside *in, char **ret_why, struct error *err);

#endif
