/* What the counters did in each phase: one pass over the monitor segment. */
#ifndef ASSAY_RECORD_FIGURES_H
#define ASSAY_RECORD_FIGURES_H

#include "base/error.h"
#include "model/run.h"
#include "store/segments.h"

/* Fills run->figures, run->whole and the peaks of memory from the points of `reader`, which is read to its end; the
 * phases must stand. A new figure is one row of the table in figures.c. */
int figures_read(struct segment_reader *reader, struct run *run, struct error *err);

#endif
