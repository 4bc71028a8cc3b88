#include "store/region_row_figures.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "model/region_spread.h"

static int64_t clamp(region_int128 value)
{
	return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

static bool is_summarised(const struct region_part *part)
{
	return part->summarised && part->timed > 0;
}

/* Means and squares of two sets of calls put together (Chan, Golub and LeVeque 1979). */
struct pooled {
	long double count, mean, m2;
};

static void pool(struct pooled *p, long double count, long double mean, long double m2)
{
	long double all = p->count + count, apart = mean - p->mean;

	if (!(count > 0))
		return;
	p->m2 += m2 + apart * apart * p->count * count / all;
	p->mean += apart * count / all;
	p->count = all;
}

static void add_summary(struct region_row *row, region_int128 *total, const struct region_summary *s, uint64_t timed)
{
	row->timed += timed;
	*total += s->total;
	row->min = s->minimum < row->min ? s->minimum : row->min;
	row->max = s->maximum > row->max ? s->maximum : row->max;
	if (s->start_minimum > 0 && s->end_maximum >= s->start_minimum) {
		row->first_start = s->start_minimum < row->first_start ? s->start_minimum : row->first_start;
		row->last_end = s->end_maximum > row->last_end ? s->end_maximum : row->last_end;
	}
	row->gpu_calls += s->gpu_count;
	row->gpu_total += s->gpu_total;
}

/* NaN where a recording did not add them up, and its calls were not all as long. */
static long double squares_of(const struct region_summary *s)
{
	if (s->minimum == s->maximum)
		return 0;
	return s->m2 >= 0 ? (long double)s->m2 : (long double)NAN;
}

/* Percentiles, and std where summaries have none, from histograms alone. Without one they stay unknown. */
static int approximate(struct row_work *w, const struct row_parts *p, struct region_row *row, double *m2,
		       struct error *err)
{
	CLEANUP(free_cleanup) struct region_spread *spread = calloc(1, sizeof *spread);

	if (!spread)
		return error_set(err, "out of memory for the percentiles of region '%s'", row->name);
	row->p50 = row->p95 = row->p99 = NAN;
	for (size_t i = 0; i < p->count; i++) {
		const struct region_part *part = &p->regions->parts[p->parts[i]];

		if (is_summarised(part) && !part->buckets)
			return 0;
		if (is_summarised(part))
			region_spread_add_buckets(spread, part->buckets, part->ns_per_unit,
						  (double)part->summary.maximum);
	}
	if (row_work_tally(w)->coarse)
		region_spread_add_coarse(spread, row_work_tally(w));
	row->approximate = row->min < row->max; /* between two that are equal there is nothing to guess */
	row->p50 = region_spread_quantile(spread, 0.50, (double)row->min, (double)row->max);
	row->p95 = region_spread_quantile(spread, 0.95, (double)row->min, (double)row->max);
	row->p99 = region_spread_quantile(spread, 0.99, (double)row->min, (double)row->max);
	if (isnan(*m2))
		*m2 = region_spread_m2(spread, row->avg) * ((double)row->timed / spread->total);
	return 0;
}

static int fill_times(struct row_work *w, const struct row_parts *p, bool whole, struct region_row *row,
		      struct error *err)
{
	const struct region_tally *t = row_work_tally(w);
	region_int128 total = t->sum;
	struct pooled pooled = {0};
	bool summarised = false;
	double m2;

	*row = (struct region_row){.name = row->name, .rank = w->rank, .thread = w->thread, .timed = t->count,
				   .min = t->min, .max = t->max, .first_start = t->first_start,
				   .last_end = t->last_end, .gpu_calls = t->gpu_calls, .gpu_total = clamp(t->gpu_sum)};
	if (t->count)
		pool(&pooled, (long double)t->count, (long double)t->sum / (long double)t->count,
		     (long double)region_tally_m2(t));
	for (size_t i = 0; whole && i < p->count; i++) {
		const struct region_part *part = &p->regions->parts[p->parts[i]];

		if (!is_summarised(part))
			continue;
		summarised = true;
		row->std_approximate |= part->summary.minimum < part->summary.maximum && part->buckets;
		add_summary(row, &total, &part->summary, part->timed);
		pool(&pooled, (long double)part->timed, (long double)part->summary.total / (long double)part->timed,
		     squares_of(&part->summary));
	}
	row->avg = row->std = row->p50 = row->p95 = row->p99 = row->exclusive = row->share = NAN;
	row->imbalance = NAN;
	row->gpu_avg = row->gpu_calls ? (double)row->gpu_total / (double)row->gpu_calls : NAN;
	row->total = clamp(total);
	if (row->timed == 0) {
		row->min = row->max = row->first_start = row->last_end = 0;
		return 0;
	}
	row->avg = (double)((long double)total / (long double)row->timed);
	m2 = (double)pooled.m2;
	if (!summarised)
		row_work_percentiles(w, &row->p50, &row->p95, &row->p99);
	else if (approximate(w, p, row, &m2, err) < 0)
		return -1;
	row->std = sqrt(m2 / (double)row->timed);
	return 0;
}

/* Ranks that ran it, and how evenly. Parts of one rank stand side by side. */
static int fill_ranks(const struct row_parts *p, struct region_row *row, struct error *err)
{
	double sum = 0, largest = 0;
	uint64_t with_time = 0;

	row->ranks = calloc(p->count + 1, sizeof *row->ranks);
	if (!row->ranks)
		return error_set(err, "out of memory for %zu ranks", p->count);
	for (size_t i = 0; i < p->count;) {
		uint32_t rank = p->regions->parts[p->parts[i]].rank;
		double total = 0;
		bool ran = false;

		for (; i < p->count && p->regions->parts[p->parts[i]].rank == rank; i++) {
			const struct region_part *part = &p->regions->parts[p->parts[i]];

			ran |= part->calls > 0 || part->count > 0;
			total += (double)atomic_load(&p->totals[p->parts[i]]);
			total += is_summarised(part) ? (double)part->summary.total : 0;
		}
		if (ran)
			row->ranks[row->ranks_with++] = rank;
		if (total > 0) {
			with_time++;
			sum += total;
			largest = fmax(largest, total);
		}
	}
	row->imbalance = with_time < 2 ? 0 : (largest / (sum / (double)with_time) - 1) * 100;
	return 0;
}

int row_figures(struct row_work *w, const struct row_parts *p, bool whole, struct region_row *ret, struct error *err)
{
	region_int128 exclusive = 0;
	bool known = whole;

	if (fill_times(w, p, whole, ret, err) < 0 || fill_ranks(p, ret, err) < 0)
		return -1;
	if (w->rank >= 0)
		ret->imbalance = NAN;
	ret->calls = whole ? 0 : row_work_tally(w)->count;
	for (size_t i = 0; whole && i < p->count; i++) {
		const struct region_part *part = &p->regions->parts[p->parts[i]];

		ret->calls += part->calls > part->count ? part->calls : part->count;
		ret->dropped += part->dropped;
		known &= part->exclusive >= 0 || (part->calls == 0 && part->count == 0);
		exclusive += part->exclusive >= 0 ? part->exclusive : 0;
	}
	if (known && ret->timed)
		ret->exclusive = (double)exclusive;
	return 0;
}
