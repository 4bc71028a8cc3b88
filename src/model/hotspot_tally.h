/* Sums per label over the threads of a phase group, and the rows that come out of them.
 *
 * Threads are taken one after the other: only then is it known how much one thread alone spent in a function. Inside
 * src/model only. */
#ifndef ASSAY_MODEL_HOTSPOT_TALLY_H
#define ASSAY_MODEL_HOTSPOT_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/hotspot_names.h"
#include "model/hotspots.h"

struct tally_cell {
	uint64_t weight, deliveries;
	uint64_t now;     /* of the thread that is being added */
	uint64_t busiest; /* the most of any thread */
	uint32_t threads;
	int busiest_tid;
};

struct tally {
	struct tally_cell *cells; /* one per label */
	uint32_t *touched;        /* labels that the thread being added has used */
	size_t count, touched_count;
};

/* For labels 0 .. count-1. *t starts as zeroes. */
int tally_init(struct tally *t, size_t count, struct error *err);
void tally_release(struct tally *t);
void tally_clear(struct tally *t);

void tally_add(struct tally *t, uint32_t label, uint64_t weight, uint64_t deliveries);

/* All that was added since the last call was of this thread. */
void tally_end_thread(struct tally *t, int tid);

/* What the rows' figures relate to. */
struct tally_scale {
	double period_s, wall_s; /* wall_s NaN: not known */
	uint64_t weight;         /* of the group */
	size_t top;              /* rows to keep, 0: all */
};

/* The labels with weight as rows, the heaviest first. *ret must be empty. */
int tally_rows(const struct tally *t, const struct row_names *labels, const struct tally_scale *scale,
	       struct hotspot_rows *ret, struct error *err);

/* The same of the thread whose samples are being added, before tally_end_thread. `scale` is of that thread, and its top
 * small. */
int tally_thread_rows(const struct tally *t, const struct row_names *labels, const struct tally_scale *scale,
		      struct hotspot_rows *ret, struct error *err);

void hotspot_rows_release(struct hotspot_rows *rows);

/* Sorts by weight, then name and module, and keeps the first `top`. */
void hotspot_rows_finish(struct hotspot_rows *rows, size_t top);

#endif
