/* The figures of a row, once its calls are read: pooled from the calls themselves and from what was only added up. */
#ifndef ASSAY_STORE_REGION_ROW_FIGURES_H
#define ASSAY_STORE_REGION_ROW_FIGURES_H

#include "model/region_table.h"
#include "store/region_row_work.h"

/* The parts that a row is of, and the total of the calls with times of each. */
struct row_parts {
	const struct regions *regions;
	const size_t *parts; /* indexes, by rank */
	size_t count;
	const _Atomic int64_t *totals; /* by part */
};

/* Fills *ret, all but share. `whole`: the row is of all calls of its parts; else (by thread) of those in its tally. */
int row_figures(struct row_work *w, const struct row_parts *p, bool whole, struct region_row *ret, struct error *err);

#endif
