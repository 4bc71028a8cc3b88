/* Figures of a comparison for people: changes in percent, values with their unit, and the table of metrics. */
#ifndef ASSAY_REPORT_COMPARISON_FIGURES_H
#define ASSAY_REPORT_COMPARISON_FIGURES_H

#include "base/table.h"
#include "base/units.h"
#include "report/comparison.h"

struct units_text figures_change(double ratio);  /* 1.054 -> "+5.4%"; n/a for NaN */
struct units_text figures_share(double share);   /* 0.003 -> "0.3%" */
struct units_text figures_value(double value, const char *unit); /* "12.3 s", "1,234"; "-" for NaN */
struct units_text figures_difference(double difference, const char *unit); /* "+5 s" */

/* A name on one line of at most so many characters, the middle left out: names often differ at their end. */
void figures_name(struct buf *out, const char *name, size_t columns);

/* Fills *t, which it initialises, with at most `most` rows: first all that count for the verdict. With `ratio` B/A as
 * the reference has it, else the change in percent. Returns how many rows were left out. */
size_t comparison_table(const struct comparison_view *v, size_t most, bool ratio, struct table *t,
			const char **ret_align);

#endif
