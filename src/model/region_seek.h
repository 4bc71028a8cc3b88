/* One duration of a known rank, found by passes over the same durations, each of which narrows the interval that it
 * lies in. It follows a coarse tally (model/region_tally.h) and knows no file. */
#ifndef ASSAY_MODEL_REGION_SEEK_H
#define ASSAY_MODEL_REGION_SEEK_H

#include "model/region_tally.h"

struct region_seek {
	uint64_t at; /* the wanted rank among all durations */
	struct region_interval in;
	bool found;
	int64_t value; /* where found */

	int64_t *values; /* of this pass: those within; or NULL and */
	uint64_t *counts; /* how many are in each part of the interval, 1 << shift long */
	size_t value_count, part_count;
	unsigned shift;
};

void region_seek_init(struct region_seek *s, uint64_t at, struct region_interval in);
void region_seek_release(struct region_seek *s);

/* What a pass takes, bytes. Where it is found already: 0, and a pass does nothing. */
size_t region_seek_bytes(const struct region_seek *s);

int region_seek_begin(struct region_seek *s, struct error *err);
void region_seek_add(struct region_seek *s, const int64_t *starts, const int64_t *ends, size_t n);
void region_seek_end(struct region_seek *s); /* afterwards it is found, or the interval is 4096 times narrower */

#endif
