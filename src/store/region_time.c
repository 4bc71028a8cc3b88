#include "store/region_time.h"

#include <stdlib.h>
#include <string.h>

/* Pieces are no longer than this where the pairs allow it: clocks drift. */
#define PIECE_NS INT64_C(1000000000)
#define PIECES 64 /* ... and short recordings are cut into so many at most: readings have errors */

#define Y_MAX (INT64_C(1) << 61) /* sums and differences of two of them do not overflow */

void region_ramp_init(struct region_ramp *r)
{
	*r = (struct region_ramp){0};
}

void region_ramp_release(struct region_ramp *r)
{
	free(r->knots);
	region_ramp_init(r);
}

int region_ramp_add(struct region_ramp *r, uint64_t x, int64_t y, struct error *err)
{
	if (y < -Y_MAX || y > Y_MAX)
		return 0; /* no time that a clock shows */
	if (r->count == r->room) {
		size_t room = r->room ? 2 * r->room : 16;
		struct region_knot *knots = reallocarray(r->knots, room, sizeof *knots);

		if (!knots)
			return error_set(err, "out of memory for %zu readings of clocks", room);
		r->knots = knots;
		r->room = room;
	}
	r->knots[r->count++] = (struct region_knot){.x = x, .y = y};
	return 0;
}

static int by_x(const void *a, const void *b)
{
	const struct region_knot *one = a, *other = b;

	if (one->x != other->x)
		return (one->x > other->x) - (one->x < other->x);
	return (one->y > other->y) - (one->y < other->y);
}

static double slope_between(const struct region_knot *from, const struct region_knot *to)
{
	return (double)(to->y - from->y) / (double)(to->x - from->x);
}

size_t region_ramp_finish(struct region_ramp *r, int64_t apart, double least, double most)
{
	size_t kept = r->count ? 1 : 0;
	int64_t piece;

	if (r->count > 1)
		qsort(r->knots, r->count, sizeof *r->knots, by_x);
	piece = r->count ? (r->knots[r->count - 1].y - r->knots[0].y) / PIECES : 0;
	if (piece > PIECE_NS)
		piece = PIECE_NS;
	if (piece < apart)
		piece = apart;
	for (size_t i = 1; i < r->count; i++) {
		struct region_knot *last = &r->knots[kept - 1];
		double slope;

		if (r->knots[i].x == last->x || r->knots[i].y - last->y < piece)
			continue;
		slope = slope_between(last, &r->knots[i]);
		if (slope < least || slope > most)
			continue;
		last->slope = slope;
		r->knots[kept++] = r->knots[i];
	}
	r->count = kept;
	r->at = 0;
	if (kept > 1)
		r->knots[kept - 1].slope = r->knots[kept - 2].slope;
	return kept;
}

void region_ramp_set_slope(struct region_ramp *r, double slope)
{
	for (size_t i = 0; i < r->count; i++)
		r->knots[i].slope = slope;
}

double region_ramp_slope(const struct region_ramp *r)
{
	return r->count > 1 ? slope_between(&r->knots[0], &r->knots[r->count - 1]) : 0;
}

static size_t find(const struct region_ramp *r, uint64_t x)
{
	size_t low = 0, high = r->count - 1;

	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;

		if (r->knots[middle].x <= x)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

int64_t region_ramp_y(struct region_ramp *r, uint64_t x)
{
	const struct region_knot *k;
	double distance, y;
	int64_t whole;

	if (r->count == 0)
		return x < (uint64_t)Y_MAX ? (int64_t)x : Y_MAX;
	k = &r->knots[r->at];
	if (x < k->x || (r->at + 1 < r->count && x >= k[1].x)) {
		r->at = find(r, x);
		k = &r->knots[r->at];
	}
	distance = x >= k->x ? (double)(x - k->x) * k->slope : -((double)(k->x - x) * k->slope);
	y = (double)k->y + distance;
	if (y >= (double)Y_MAX)
		return Y_MAX;
	if (y <= -(double)Y_MAX)
		return -Y_MAX;
	/* Not from y: that has no 64 bits. Rounding must not lead past the next knot, which is where time goes on. */
	whole = k->y + (int64_t)(distance + (distance < 0 ? -0.5 : 0.5));
	return r->at + 1 < r->count && whole > k[1].y ? k[1].y : whole;
}
