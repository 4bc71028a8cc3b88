#include "store/region_row_work.h"

#include <stdlib.h>

static const double quantiles[ROW_RANKS / 2] = {0.50, 0.95, 0.99};

struct row_work *row_work_new(unsigned slots, struct region_budget *budget, struct error *err)
{
	struct row_work *w = calloc(1, sizeof *w);
	struct row_slot *room = calloc(slots, sizeof *room);

	if (!w || !room) {
		free(w);
		free(room);
		error_set(err, "out of memory for the statistics of a region");
		return NULL;
	}
	w->slots = room;
	w->slot_count = slots;
	for (unsigned i = 0; i < slots; i++) {
		pthread_mutex_init(&room[i].lock, NULL);
		region_tally_init(&room[i].tally, budget);
	}
	return w;
}

void row_work_free(struct row_work *w)
{
	if (!w)
		return;
	for (unsigned i = 0; i < w->slot_count; i++) {
		region_tally_release(&w->slots[i].tally);
		pthread_mutex_destroy(&w->slots[i].lock);
	}
	for (size_t i = 0; w->seeks && i < ROW_RANKS; i++)
		region_seek_release(&w->seeks[i]);
	free(w->seeks);
	free(w->slots);
	free(w->threads);
	free(w);
}

int row_work_add(struct row_work *w, unsigned worker, const int64_t *starts, const int64_t *ends, const int64_t *gpu,
		 size_t n, int64_t *ret_sum, struct error *err)
{
	struct row_slot *slot = &w->slots[worker % w->slot_count];
	region_int128 before;
	int got;

	pthread_mutex_lock(&slot->lock);
	before = slot->tally.sum;
	got = region_tally_add(&slot->tally, starts, ends, n, err);
	if (gpu)
		region_tally_add_gpu(&slot->tally, gpu, n);
	*ret_sum = (int64_t)(uint64_t)(slot->tally.sum - before);
	pthread_mutex_unlock(&slot->lock);
	return got;
}

/* The ranks of durations that the percentiles of `count` lie between; two for each. */
static void wanted_ranks(uint64_t count, uint64_t *ret)
{
	for (size_t i = 0; i < ROW_RANKS / 2; i++) {
		struct region_quantile q = region_quantile_of(quantiles[i], count);

		ret[2 * i] = q.low;
		ret[2 * i + 1] = q.high;
	}
}

static void find_values(struct row_work *w)
{
	struct region_tally *t = row_work_tally(w);
	uint64_t wanted[ROW_RANKS], sorted[ROW_RANKS];
	int64_t found[ROW_RANKS];
	size_t count = 0;

	wanted_ranks(t->count, wanted);
	/* Those of few calls overlap: 0, 1, 0, 1. */
	for (size_t i = 0; i < ROW_RANKS; i++) {
		size_t at = count;

		while (at > 0 && sorted[at - 1] > wanted[i])
			at--;
		if (at > 0 && sorted[at - 1] == wanted[i])
			continue;
		for (size_t k = count++; k > at; k--)
			sorted[k] = sorted[k - 1];
		sorted[at] = wanted[i];
	}
	region_tally_select(t, sorted, count, found);
	for (size_t i = 0; i < ROW_RANKS; i++)
		for (size_t k = 0; k < count; k++)
			if (sorted[k] == wanted[i])
				w->values[i] = found[k];
}

int row_work_settle(struct row_work *w, bool summarised, struct error *err)
{
	struct region_tally *t = row_work_tally(w);

	if (w->settled)
		return 0;
	for (unsigned i = 1; i < w->slot_count; i++)
		if (region_tally_merge(t, &w->slots[i].tally, err) < 0)
			return -1;
	if (summarised) {
		w->settled = true;
		return region_tally_coarsen(t, err);
	}
	if (!region_tally_is_exact(t))
		return 0;
	if (t->count)
		find_values(w);
	region_tally_forget(t);
	w->settled = true;
	return 0;
}

int row_work_seek(struct row_work *w, struct error *err)
{
	struct region_tally *t = row_work_tally(w);
	uint64_t wanted[ROW_RANKS];

	w->seeks = calloc(ROW_RANKS, sizeof *w->seeks);
	if (!w->seeks)
		return error_set(err, "out of memory for the percentiles of a region");
	wanted_ranks(t->count, wanted);
	for (size_t i = 0; i < ROW_RANKS; i++)
		region_seek_init(&w->seeks[i], wanted[i], region_tally_interval(t, wanted[i]));
	region_tally_forget(t);
	return 0;
}

size_t row_work_bytes(const struct row_work *w)
{
	size_t bytes = 0;

	for (size_t i = 0; i < ROW_RANKS; i++)
		bytes += region_seek_bytes(&w->seeks[i]);
	return bytes;
}

int row_work_begin(struct row_work *w, struct error *err)
{
	for (size_t i = 0; i < ROW_RANKS; i++)
		if (region_seek_begin(&w->seeks[i], err) < 0)
			return -1;
	return 0;
}

void row_work_look(struct row_work *w, const int64_t *starts, const int64_t *ends, size_t n)
{
	pthread_mutex_lock(&w->slots[0].lock);
	for (size_t i = 0; i < ROW_RANKS; i++)
		region_seek_add(&w->seeks[i], starts, ends, n);
	pthread_mutex_unlock(&w->slots[0].lock);
}

void row_work_end(struct row_work *w)
{
	w->settled = true;
	for (size_t i = 0; i < ROW_RANKS; i++) {
		region_seek_end(&w->seeks[i]);
		w->settled &= w->seeks[i].found;
		w->values[i] = w->seeks[i].value;
	}
}

void row_work_percentiles(const struct row_work *w, double *ret_p50, double *ret_p95, double *ret_p99)
{
	double *const ret[] = {ret_p50, ret_p95, ret_p99};
	uint64_t count = w->slots[0].tally.count;

	for (size_t i = 0; i < ROW_RANKS / 2; i++)
		*ret[i] = region_quantile_value(region_quantile_of(quantiles[i], count), w->values[2 * i],
						w->values[2 * i + 1]);
}
