/* Windows: what a counter did in each phase, from one pass over its points in the order of time.
 *
 * Pure functions; nothing is kept but a few numbers per window, so a day's recording needs no more memory than a
 * second's. */
#ifndef ASSAY_MODEL_WINDOW_H
#define ASSAY_MODEL_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "model/timeline.h"

struct window {
	int64_t start, end;
	/* of a gauge: the time-weighted mean and the extremes over [start, end]; of a counter: what it grew by, points
	 * around the ends being joined by straight lines. NaN where there is nothing to say. */
	double mean, max, min, growth;
	/* inner state */
	double area, width;
};

struct windows {
	struct window *items; /* borrowed; in the order of time: neither starts nor ends go back */
	size_t count;
	size_t first; /* those before it are over */
	enum series_kind kind;
	int64_t last_t;
	double last_value;
	int started;
};

/* Sets the results of each item to NaN; start and end must be set. */
void windows_begin(struct windows *w, enum series_kind kind, struct window *items, size_t count);

/* A point; times must not go back (a point that does is ignored). */
void windows_point(struct windows *w, int64_t t, double value);

/* The last value holds until `t` (for a gauge); then the results stand in the items. */
void windows_end(struct windows *w, int64_t t);

#endif
