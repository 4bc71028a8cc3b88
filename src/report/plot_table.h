/* The data behind a figure as rows: CSV (RFC 4180) or JSON {"plot":...,"rows":[{...}]}, from one order of calls.
 *
 * Cells follow each other in the order of the columns. Unknown numbers (NaN) are empty in CSV and null in JSON. */
#ifndef ASSAY_REPORT_PLOT_TABLE_H
#define ASSAY_REPORT_PLOT_TABLE_H

#include <stdint.h>
#include <stdio.h>

#include "report/plot.h"

struct plot_table {
	FILE *out;
	enum plot_data_format format;
	const char *const *columns; /* NULL-ended */
	size_t column, rows;
};

void plot_table_begin(struct plot_table *t, FILE *out, enum plot_data_format format, const char *plot,
		      const char *const *columns);
void plot_table_text(struct plot_table *t, const char *text);
void plot_table_integer(struct plot_table *t, int64_t value);
void plot_table_number(struct plot_table *t, double value);
void plot_table_unknown(struct plot_table *t);

/* Fails where the stream has. */
int plot_table_end(struct plot_table *t, struct error *err);

#endif
