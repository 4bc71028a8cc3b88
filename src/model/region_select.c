/* The values that sorting would put at some places, without sorting: quickselect. */
#include <math.h>
#include <stdlib.h>

#include "model/region_tally.h"

static void swap(int64_t *a, int64_t *b)
{
	int64_t kept = *a;

	*a = *b;
	*b = kept;
}

static int by_value(const void *a, const void *b)
{
	int64_t x, y;

	x = *(const int64_t *)a;
	y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int64_t median_of_three(int64_t a, int64_t b, int64_t c)
{
	if (a > b)
		swap(&a, &b);
	return c <= a ? a : c >= b ? b : c;
}

#define SORTED_BELOW 24 /* so few are sorted */

/* Puts values[at] in its place within [from, to): smaller ones before it, larger ones behind it. Values that defeat
 * the choice of pivots are sorted after some rounds. */
static void select_one(int64_t *values, size_t from, size_t to, size_t at)
{
	unsigned rounds = 64;

	while (to - from > SORTED_BELOW && rounds-- > 0) {
		size_t eighth = (to - from) / 8, low = from, i = from, high = to;
		int64_t pivot = median_of_three(
			median_of_three(values[from], values[from + eighth], values[from + 2 * eighth]),
			median_of_three(values[from + 3 * eighth], values[from + 4 * eighth],
					values[from + 5 * eighth]),
			median_of_three(values[from + 6 * eighth], values[from + 7 * eighth], values[to - 1]));

		while (i < high) {
			if (values[i] < pivot)
				swap(&values[low++], &values[i++]);
			else if (values[i] > pivot)
				swap(&values[i], &values[--high]);
			else
				i++;
		}
		if (at < low)
			to = low;
		else if (at >= high)
			from = high;
		else
			return;
	}
	qsort(values + from, to - from, sizeof *values, by_value);
}

void region_select(int64_t *values, size_t count, const uint64_t *at, size_t n)
{
	size_t from = 0;

	for (size_t i = 0; i < n; i++) {
		if (at[i] < from)
			continue;
		select_one(values, from, count, (size_t)at[i]);
		from = (size_t)at[i] + 1;
	}
}

struct region_quantile region_quantile_of(double q, uint64_t count)
{
	double at = (double)(count - 1) * q;
	uint64_t low = (uint64_t)floor(at), high;

	if (low >= count - 1)
		return (struct region_quantile){count - 1, count - 1, 0};
	high = low + 1;
	return (struct region_quantile){low, high, at - (double)low};
}

double region_quantile_value(struct region_quantile quantile, int64_t low, int64_t high)
{
	double between = (double)high - (double)low;

	return quantile.part < 0.5 ? (double)low + between * quantile.part
				   : (double)high - between * (1 - quantile.part);
}
