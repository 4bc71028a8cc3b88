/* The few hottest functions of a run's phase groups, for its summary. */
#ifndef ASSAY_REPORT_HOTSPOTS_SHORT_H
#define ASSAY_REPORT_HOTSPOTS_SHORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "model/run.h"

/* A table with its heading; nothing where the run has no samples. `columns` 0: names are not cut. In Markdown the
 * heading is one of the second level. */
void hotspots_short(const struct run *run, bool markdown, size_t columns, struct buf *out);

#endif
