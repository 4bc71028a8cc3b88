/* From one clock to another: linear between pairs of readings, and beyond them as in the nearest piece. Never runs
 * back. */
#ifndef ASSAY_STORE_REGION_TIME_H
#define ASSAY_STORE_REGION_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct region_knot {
	uint64_t x;
	int64_t y;
	double slope; /* y per x, from here on */
};

struct region_ramp {
	struct region_knot *knots; /* none: y is x */
	size_t count, room;
	size_t at; /* where the last one asked for lay: the next is near it */
};

void region_ramp_init(struct region_ramp *r);
void region_ramp_release(struct region_ramp *r);

/* Notes a pair; in any order. */
int region_ramp_add(struct region_ramp *r, uint64_t x, int64_t y, struct error *err);

/* Keeps pairs that lie apart by enough y for a good slope, and whose slopes are within [least, most]. Returns how many
 * are left: with fewer than two there is no slope, and region_ramp_set_slope gives one. */
size_t region_ramp_finish(struct region_ramp *r, int64_t apart, double least, double most);
void region_ramp_set_slope(struct region_ramp *r, double slope);

int64_t region_ramp_y(struct region_ramp *r, uint64_t x);

/* Of the whole, y per x; 0 with fewer than two knots. */
double region_ramp_slope(const struct region_ramp *r);

#endif
