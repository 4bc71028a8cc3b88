#include "model/region_spread.h"

#include <math.h>

#include "model/regions.h"

#define STEPS 64 /* to an octave */

static size_t bucket_of(double ns)
{
	uint64_t whole;
	unsigned exponent;

	if (!(ns >= STEPS))
		return ns > 0 ? (size_t)ns : 0;
	if (ns >= 9e18)
		return REGION_SPREAD_BUCKETS - 1;
	whole = (uint64_t)ns;
	exponent = 63 - (unsigned)__builtin_clzll(whole);
	return STEPS * (size_t)(exponent - 5) + (size_t)(whole >> (exponent - 6)) - STEPS;
}

static void bounds_of(size_t bucket, double *ret_low, double *ret_high)
{
	int shift = bucket < STEPS ? 0 : (int)(bucket / STEPS) - 1;
	double step = bucket < STEPS ? (double)bucket : (double)(bucket % STEPS + STEPS);

	*ret_low = ldexp(step, shift);
	*ret_high = ldexp(step + 1, shift);
}

void region_spread_add(struct region_spread *s, double low, double high, double count)
{
	size_t first = bucket_of(low), last = bucket_of(high);
	double width = high - low;

	s->total += count;
	if (first == last || !(width > 0)) {
		s->counts[first] += count;
		return;
	}
	for (size_t i = first; i <= last; i++) {
		double from, to;

		bounds_of(i, &from, &to);
		from = i == first ? low : from;
		to = i == last ? high : to;
		if (to > from)
			s->counts[i] += count * (to - from) / width;
	}
}

void region_spread_add_buckets(struct region_spread *s, const uint64_t *buckets, double ns_per_unit, double max)
{
	for (unsigned i = 0; i < REGION_BUCKET_COUNT; i++) {
		uint64_t low, high;

		if (!buckets[i])
			continue;
		region_bucket_bounds(i, &low, &high);
		region_spread_add(s, (double)low * ns_per_unit,
				  fmax((double)low * ns_per_unit, fmin((double)high * ns_per_unit, max)),
				  (double)buckets[i]);
	}
}

void region_spread_add_coarse(struct region_spread *s, const struct region_tally *coarse)
{
	for (size_t i = 0; i < REGION_COARSE_BUCKETS; i++) {
		int64_t low, high;

		if (!coarse->coarse[i])
			continue;
		region_coarse_bounds(i, &low, &high);
		region_spread_add(s, fmax(0, (double)low), (double)high + 1, (double)coarse->coarse[i]);
	}
}

double region_spread_quantile(const struct region_spread *s, double q, double min, double max)
{
	double at = (s->total - 1) * q, before = 0, low, high;

	if (!(s->total > 0))
		return NAN;
	for (size_t i = 0; i < REGION_SPREAD_BUCKETS; i++) {
		if (s->counts[i] > 0 && before + s->counts[i] > at) {
			bounds_of(i, &low, &high);
			return fmin(max, fmax(min, low + (high - low) * (fmax(at, 0) - before) / s->counts[i]));
		}
		before += s->counts[i];
	}
	return max;
}

double region_spread_m2(const struct region_spread *s, double mean)
{
	double m2 = 0;

	for (size_t i = 0; i < REGION_SPREAD_BUCKETS; i++) {
		double low, high, apart;

		bounds_of(i, &low, &high);
		apart = (low + high) / 2 - mean;
		m2 += s->counts[i] * apart * apart;
	}
	return m2;
}
