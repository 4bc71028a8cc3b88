/* A side of a comparison of regions: the tables of its files, when they were recorded, and what a reader must know of
 * them. For `regions diff` and `check`. */
#ifndef ASSAY_CMD_REGION_SIDE_H
#define ASSAY_CMD_REGION_SIDE_H

#include <stdint.h>

#include "judge/region_diff.h"
#include "model/region_query.h"
#include "model/region_table.h"
#include "model/warnings.h"

struct region_side {
	struct region_table *tables;
	int64_t *started; /* wall time of each, ns; INT64_MIN: not known */
	char **ranks;     /* of each, those that were selected: "0-3,8" */
	unsigned *layouts;
	char **files;     /* their real paths, NULL where it could not be told */
	size_t count;
};

void region_side_init(struct region_side *s);
void region_side_release(struct region_side *s);

/* Adds a file, or a run directory that holds one; one that the side has already counts once, as in `assay diff`. What
 * was dropped, is missing or uncertain there goes to *notes. */
int region_side_add(struct region_side *s, const char *path, const struct region_query *q, struct warnings *notes,
		    struct error *err);

/* Notes on what makes the two sides hard to compare: other ranks, other layouts, percentiles from histograms. */
void region_sides_note(const struct region_side *a, const struct region_side *b, const struct region_diff *d,
		       struct warnings *notes);

#endif
