/* The table of a matrix: a row for each case, a column for each metric, in each cell the ratio of B to A. As Markdown
 * it has the reference tool's columns and more; as text only those in which something stands. */
#ifndef ASSAY_REPORT_MATRIX_TABLE_H
#define ASSAY_REPORT_MATRIX_TABLE_H

#include <stdbool.h>

#include "base/buf.h"
#include "judge/compare.h"

struct matrix_row {
	const char *label;
	const char *skipped; /* why it was not run, NULL: it was */
	const struct comparison *comparison; /* NULL where skipped */
	size_t failed, refused; /* arms that do not count: failed, timed out, traced; not run */
	bool unfinished;
};

struct matrix_view {
	const char *a, *b; /* names of the sides */
	const struct metric_set *metrics;
	const struct matrix_row *rows;
	size_t count;
	bool null, trusted; /* null: both sides are the same; not trusted: a difference was found all the same */
	bool complete;
};

void matrix_table_text(const struct matrix_view *v, struct buf *out);
void matrix_table_markdown(const struct matrix_view *v, struct buf *out);

#endif
