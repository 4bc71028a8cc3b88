/* Statistics of many durations in one pass and little memory: sums without rounding, and exact percentiles.
 *
 * It knows no file and no region. Durations are ns. Few of them are kept as they are; from some thousands on those
 * below a millisecond are counted by value. Where the budget of memory that all tallies share is used up, a tally
 * goes on with a coarse histogram: its percentiles then need another pass (model/region_seek.h). */
#ifndef ASSAY_MODEL_REGION_TALLY_H
#define ASSAY_MODEL_REGION_TALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What tallies may keep in all, bytes. Shared between threads. */
struct region_budget {
	_Atomic int64_t left;
};

__extension__ typedef __int128 region_int128;
__extension__ typedef unsigned __int128 region_uint128;

struct region_tally {
	uint64_t count;
	uint64_t backwards; /* that end before they begin */
	int64_t min, max, first_start, last_end;
	region_int128 sum;
	region_uint128 squares;   /* of those below REGION_WIDE */
	long double wide_squares; /* of the others; 0: there are none */
	uint64_t gpu_calls;
	region_int128 gpu_sum;

	struct region_budget *budget;
	int64_t held;       /* bytes of the budget */
	int64_t *values;    /* all durations; with `pages` those that are not in them */
	size_t value_count, value_room;
	uint32_t **pages;   /* by duration / REGION_PAGE: counts by duration */
	uint64_t paged;     /* how many are counted in pages */
	uint64_t *coarse;   /* NULL, or in place of the above: counts by region_coarse_bucket */
};

#define REGION_WIDE (INT64_C(1) << 47) /* ns, 39 hours: the squares of shorter ones are summed up without rounding */

/* end - start, and INT64_MAX or _MIN where that is further than a number holds. */
int64_t region_duration(int64_t start, int64_t end);

/* *t stays within the budget, which must live as long; a coarse histogram is beside it. */
void region_tally_init(struct region_tally *t, struct region_budget *budget);
void region_tally_release(struct region_tally *t);

/* Fails where there is no memory at all. */
int region_tally_add(struct region_tally *t, const int64_t *starts, const int64_t *ends, size_t n, struct error *err);
void region_tally_add_gpu(struct region_tally *t, const int64_t *durations, size_t n); /* those below 0 are none */

/* Takes what is in *from, which is then empty. */
int region_tally_merge(struct region_tally *t, struct region_tally *from, struct error *err);

/* Sum of squared differences from the mean; 0 for less than two. */
double region_tally_m2(const struct region_tally *t);

/* Whether percentiles can be told without another pass. */
bool region_tally_is_exact(const struct region_tally *t);

/* ret[i] is the duration of rank at[i], counted from 0 in ascending order; `at` ascends, each below count. Of an exact
 * tally only; it puts the values in another order. */
void region_tally_select(struct region_tally *t, const uint64_t *at, size_t n, int64_t *ret);

/* Goes over to a coarse histogram, which has what is known so far. */
int region_tally_coarsen(struct region_tally *t, struct error *err);

/* Frees the distribution: sums stay. */
void region_tally_forget(struct region_tally *t);

/* Between what bounds the duration of rank `at` lies, both included, how many are before them and within. */
struct region_interval {
	int64_t low, high;
	uint64_t before, inside;
};
struct region_interval region_tally_interval(const struct region_tally *t, uint64_t at); /* of a coarse one */

/* Coarse buckets: one of all below 0, one for each ns below 16, then 16 to an octave. Bounds are included. */
#define REGION_COARSE_BUCKETS (1 + 16 + 59 * 16)
size_t region_coarse_bucket(int64_t duration);
void region_coarse_bounds(size_t bucket, int64_t *ret_low, int64_t *ret_high);

/* Puts the n values that were picked first in order at their places: values[at[i]] for each i, as sorting would. */
void region_select(int64_t *values, size_t count, const uint64_t *at, size_t n);

/* numpy's linear interpolation at (count - 1) * q: the two ranks that are needed, and how far from the first. */
struct region_quantile {
	uint64_t low, high;
	double part;
};
struct region_quantile region_quantile_of(double q, uint64_t count);
double region_quantile_value(struct region_quantile quantile, int64_t low, int64_t high);

#endif
