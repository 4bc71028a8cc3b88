/* Many readings over a time that nobody knows beforehand, kept for a figure in bounded memory.
 *
 * Time is cut into cells of one width; of each value a cell keeps the smallest and the largest, each with its time, so
 * that no peak is lost by thinning out. When the cells are used up, each two become one. Knows no drawing. */
#ifndef ASSAY_REPORT_MEMORY_COURSE_H
#define ASSAY_REPORT_MEMORY_COURSE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define COURSE_CELLS 1024

struct course_cell {
	int64_t low, high; /* -1: no value in it */
	int64_t low_at, high_at;
};

struct course {
	struct course_cell *cells; /* by cell, then by series; owned */
	size_t series, used;
	int64_t begin, width; /* ns; the first value's time, and that of one cell */
	int64_t last;
};

void course_init(struct course *c);
void course_release(struct course *c);

/* Makes room for this many values per reading, at least 1. `width`: of a cell at first, at least 1 ns. */
int course_open(struct course *c, size_t series, int64_t width, struct error *err);

/* Adds a reading: c->series values, below 0 where not known. One that is older than the first counts as of its time. */
void course_add(struct course *c, int64_t t, const int64_t *values);

const struct course_cell *course_cell(const struct course *c, size_t cell, size_t series);

/* The largest value of a series; -1: it has none. */
int64_t course_largest(const struct course *c, size_t series);

#endif
