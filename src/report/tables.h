/* The tables of a report, filled once for every form that it takes: text and Markdown.
 *
 * Phases of one name and one answer share a row, so that a thousand repetitions stay readable; run.json has them all.
 */
#ifndef ASSAY_REPORT_TABLES_H
#define ASSAY_REPORT_TABLES_H

#include <stddef.h>

#include "base/table.h"
#include "model/run.h"

/* Each fills *t, which it initialises, heading included, with at most `most` rows, and returns how many rows were left
 * out. The alignment is *ret_align. */
size_t tables_phases(const struct run *run, size_t most, struct table *t, const char **ret_align);

/* phase | limit | confidence | why. Of phases too short to be judged there is none. */
size_t tables_limits(const struct run *run, size_t most, struct table *t, const char **ret_align);

/* The regions that the program marked: region | calls | total | exclusive | per call | share. */
size_t tables_regions(const struct run *run, size_t most, struct table *t, const char **ret_align);

/* Who used the CPU: phase | cores | busiest thread | ... */
size_t tables_threads(const struct run *run, size_t most, struct table *t, const char **ret_align);

#endif
