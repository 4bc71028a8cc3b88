/* What threads only added up, in the modes aggregate and count, and what found no room: from each file into the regions
 * of its rank. Histograms of processes whose clocks tick alike are added bucket by bucket. */
#include "store/region_merging.h"

#include <stdlib.h>

#include "base/cleanup.h"

/* Units this near to each other are the same to a histogram whose buckets are sixteenths of an octave. */
#define SAME_UNIT 1e-3

static int64_t in_ns(uint64_t units, double ns_per_unit)
{
	double ns = (double)units * ns_per_unit;

	return ns < 0x1p62 ? (int64_t)(ns + 0.5) : INT64_C(1) << 62;
}

static int64_t add_ns(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static unsigned bucket_of(double units)
{
	uint64_t d = units < 0x1p40 ? (uint64_t)units : UINT64_C(1) << 40;
	unsigned e, bucket;

	if (d < 16)
		return (unsigned)d;
	e = 63 - (unsigned)__builtin_clzll(d);
	bucket = 16 * (e - 3) + (unsigned)(d >> (e - 4)) - 16;
	return bucket < REGION_BUCKETS ? bucket : REGION_BUCKETS - 1;
}

static double middle_of(unsigned bucket)
{
	uint64_t low, high;

	region_bucket_bounds(bucket, &low, &high);
	if (high == UINT64_MAX) /* the last one holds all above, too */
		return (double)low;
	/* [low, high) in whole units: below 16 a bucket is one value. */
	return ((double)low + (double)(high - 1)) / 2;
}

static void add_buckets(struct merge_part *part, const uint64_t *buckets, double ns_per_unit)
{
	double ratio = ns_per_unit / part->ns_per_unit;

	for (unsigned i = 0; i < REGION_BUCKETS; i++) {
		bool same = ratio > 1 - SAME_UNIT && ratio < 1 + SAME_UNIT;

		if (buckets[i])
			part->buckets[same ? i : bucket_of(middle_of(i) * ratio)] += buckets[i];
	}
}

/* The sum of squared differences from the mean, as far as a histogram tells. */
static double spread(const uint64_t *buckets, double ns_per_unit, double mean)
{
	double sum = 0;

	for (unsigned i = 0; i < REGION_BUCKETS; i++) {
		double apart = middle_of(i) * ns_per_unit - mean;

		sum += buckets[i] ? (double)buckets[i] * apart * apart : 0;
	}
	return sum;
}

static void add_summary(struct merge_part *part, const struct region_sum *sum, double ns_per_unit, int64_t from,
			int64_t to)
{
	struct region_summary *s = &part->summary;
	int64_t shortest = in_ns(sum->shortest, ns_per_unit), longest = in_ns(sum->longest, ns_per_unit);

	if (part->timed == 0) {
		*s = (struct region_summary){.minimum = shortest,
					     .maximum = longest,
					     .first = REGIONS_UNKNOWN,
					     .last = REGIONS_UNKNOWN,
					     .start_minimum = from,
					     .end_maximum = to};
	}
	s->total = add_ns(s->total, in_ns(sum->total, ns_per_unit));
	s->minimum = shortest < s->minimum ? shortest : s->minimum;
	s->maximum = longest > s->maximum ? longest : s->maximum;
	s->start_minimum = from < s->start_minimum ? from : s->start_minimum;
	s->end_maximum = to > s->end_maximum ? to : s->end_maximum;
	part->timed += sum->timed;
	part->exclusive = add_ns(part->exclusive, in_ns(sum->exclusive, ns_per_unit));
	s->mean = (double)s->total / (double)part->timed;
	s->m2 = spread(part->buckets, part->ns_per_unit, s->mean);
}

static int add_timed(struct merge_part *part, const struct merge_process *p, const struct merge_file *f,
		     struct region_calls *c, const struct region_sum *sum, struct region_clocks *clocks,
		     struct error *err)
{
	uint64_t buckets[REGION_BUCKETS];

	if (region_calls_buckets(c, sum->region, buckets, err) < 0)
		return -1;
	if (!part->buckets) {
		part->buckets = calloc(REGION_BUCKETS, sizeof *part->buckets);
		part->ns_per_unit = clocks->ns_per_unit;
		if (!part->buckets)
			return error_set(err, "out of memory for a histogram");
	}
	add_buckets(part, buckets, clocks->ns_per_unit);
	add_summary(part, sum, clocks->ns_per_unit, region_clocks_mono(clocks, p->log->process.mono_ns),
		    region_clocks_at(clocks, f->last));
	return 0;
}

int merge_sums(struct merging *m, struct merge_rank *r, const struct merge_file *f, struct error *err)
{
	CLEANUP(region_calls_cleanup) struct region_calls *c = NULL;
	struct merge_process *p = &r->processes[f->process];
	struct error reason;

	if (f->sum_count == 0)
		return 0;
	if (region_calls_open(f->path, &c, &reason) < 0)
		return merge_damage(m, reason.text, err);
	for (size_t i = 0; i < f->sum_count; i++) {
		const struct region_sum *sum = &f->sums[i];
		struct merge_part *part = merge_part_of(m, r, p, sum->region, err);

		if (!part)
			return -1;
		part->added += sum->calls;
		part->dropped += sum->dropped;
		if (sum->timed && p->clocks.usable && add_timed(part, p, f, c, sum, &p->clocks, &reason) < 0 &&
		    merge_damage(m, reason.text, err) < 0)
			return -1;
	}
	return 0;
}
