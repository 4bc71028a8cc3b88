/* A distribution known by a histogram alone: percentiles of calls that were only added up. Times are ns. */
#ifndef ASSAY_MODEL_REGION_SPREAD_H
#define ASSAY_MODEL_REGION_SPREAD_H

#include <stddef.h>
#include <stdint.h>

#include "model/region_tally.h"

/* One bucket for each ns below 64, then 64 to an octave: finer than what is put in, whose error so remains its own. */
#define REGION_SPREAD_BUCKETS (64 + 58 * 64)

struct region_spread {
	double counts[REGION_SPREAD_BUCKETS];
	double total;
};

/* `count` durations that lie evenly in [low, high). */
void region_spread_add(struct region_spread *s, double low, double high, double count);
void region_spread_add_buckets(struct region_spread *s, const uint64_t *buckets, double ns_per_unit, double max);
void region_spread_add_coarse(struct region_spread *s, const struct region_tally *coarse);

/* Within [min, max]; NaN where it is empty. */
double region_spread_quantile(const struct region_spread *s, double q, double min, double max);

/* Sum of squared differences from the mean. */
double region_spread_m2(const struct region_spread *s, double mean);

#endif
