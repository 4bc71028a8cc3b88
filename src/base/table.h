/* A table of text cells, drawn aligned for a terminal or as Markdown (where nothing is folded). */
#ifndef ASSAY_BASE_TABLE_H
#define ASSAY_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define TABLE_COLUMNS_MAX 24

struct table {
	char **cells; /* row by row; the first row is the heading */
	size_t columns, count, room;
	size_t widths[TABLE_COLUMNS_MAX]; /* of the widest cell so far */
	size_t fold; /* columns of a line: the last cell is folded to fit, by words; 0: it is not */
	bool failed;
};

void table_init(struct table *t, size_t columns);
void table_release(struct table *t);

/* Adds the next cell; rows fill from left to right. Control characters become blanks: a cell is one line. */
void table_cell(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `align` has one letter per column: l or r. Both need a whole number of rows. Width counts characters, not bytes. */
void table_print(const struct table *t, const char *align, const char *indent, struct buf *out);
void table_print_markdown(const struct table *t, const char *align, struct buf *out);

#endif
