#include "model/region_tally.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 1024u                   /* durations to a page of counts */
#define PAGES 1024u                  /* pages of a tally: durations below PAGE * PAGES ns are counted by value */
#define PAGED ((uint64_t)PAGE * PAGES)
#define VALUES_MAX 65536u            /* kept as they are before pages begin */
#define PAGED_MAX (UINT32_MAX - 1u)  /* no count of a page can then overflow */
#define BATCH 1024u                  /* durations that are worked on at once */

void region_tally_init(struct region_tally *t, struct region_budget *budget)
{
	*t = (struct region_tally){
		.min = INT64_MAX, .max = INT64_MIN, .first_start = INT64_MAX, .last_end = INT64_MIN, .budget = budget};
}

static bool reserve(struct region_tally *t, size_t bytes)
{
	int64_t wanted = (int64_t)bytes;

	if (atomic_fetch_sub(&t->budget->left, wanted) < wanted) {
		atomic_fetch_add(&t->budget->left, wanted);
		return false;
	}
	t->held += wanted;
	return true;
}

/* Frees what is kept, and gives back what it took of the budget. */
static void drop_kept(struct region_tally *t)
{
	free(t->values);
	for (size_t i = 0; t->pages && i < PAGES; i++)
		free(t->pages[i]);
	free(t->pages);
	t->values = NULL;
	t->pages = NULL;
	t->value_count = t->value_room = 0;
	t->paged = 0;
	atomic_fetch_add(&t->budget->left, t->held);
	t->held = 0;
}

void region_tally_forget(struct region_tally *t)
{
	drop_kept(t);
	free(t->coarse);
	t->coarse = NULL;
}

void region_tally_release(struct region_tally *t)
{
	region_tally_forget(t);
	region_tally_init(t, t->budget);
}

size_t region_coarse_bucket(int64_t duration)
{
	unsigned exponent;

	if (duration < 0)
		return 0;
	if (duration < 16)
		return 1 + (size_t)duration;
	exponent = 63 - (unsigned)__builtin_clzll((unsigned long long)duration);
	return 1 + 16 * (size_t)(exponent - 3) + (size_t)(duration >> (exponent - 4)) - 16;
}

void region_coarse_bounds(size_t bucket, int64_t *ret_low, int64_t *ret_high)
{
	size_t i = bucket - 1;
	unsigned shift = bucket < 17 ? 0 : (unsigned)(i / 16) - 1;
	uint64_t step = bucket < 17 ? i : i % 16 + 16;

	*ret_low = bucket ? (int64_t)(step << shift) : INT64_MIN;
	*ret_high = bucket ? (int64_t)(((step + 1) << shift) - 1) : -1;
}

int region_tally_coarsen(struct region_tally *t, struct error *err)
{
	if (t->coarse)
		return 0;
	t->coarse = calloc(REGION_COARSE_BUCKETS, sizeof *t->coarse);
	if (!t->coarse)
		return error_set(err, "out of memory for the percentiles of a region");
	for (size_t i = 0; i < t->value_count; i++)
		t->coarse[region_coarse_bucket(t->values[i])]++;
	for (size_t i = 0; t->pages && i < PAGES; i++)
		for (size_t k = 0; t->pages[i] && k < PAGE; k++)
			if (t->pages[i][k])
				t->coarse[region_coarse_bucket((int64_t)(i * PAGE + k))] += t->pages[i][k];
	drop_kept(t);
	return 0;
}

/* False: not within the budget. */
static bool room_for_values(struct region_tally *t, size_t n)
{
	size_t room = t->value_room ? t->value_room : 32;
	int64_t *values;

	if (t->value_count + n <= t->value_room)
		return true;
	while (room < t->value_count + n)
		room *= 2;
	if (!reserve(t, (room - t->value_room) * sizeof *values))
		return false;
	values = realloc(t->values, room * sizeof *values);
	if (!values)
		return false;
	t->values = values;
	t->value_room = room;
	return true;
}

static uint32_t *page_of(struct region_tally *t, size_t page)
{
	if (!t->pages[page] && reserve(t, PAGE * sizeof **t->pages))
		t->pages[page] = calloc(PAGE, sizeof **t->pages);
	return t->pages[page];
}

/* Counts by value what is below PAGED, and keeps the rest. False where it stopped: *ret_done were taken. */
static bool page_values(struct region_tally *t, const int64_t *values, size_t n, size_t *ret_done)
{
	size_t i;

	for (i = 0; i < n; i++) {
		uint64_t value = (uint64_t)values[i];

		if (value < PAGED) {
			uint32_t *page = t->pages[value / PAGE];

			if (!page && !(page = page_of(t, (size_t)(value / PAGE))))
				break;
			page[value % PAGE]++;
			t->paged++;
		} else if (room_for_values(t, 1)) {
			t->values[t->value_count++] = values[i];
		} else {
			break;
		}
	}
	*ret_done = i;
	return i == n;
}

/* From kept values to pages. False: not within the budget, and then nothing has changed that was counted. */
static bool begin_pages(struct region_tally *t)
{
	int64_t *values = t->values;
	size_t n = t->value_count, room = t->value_room, done;

	if (!reserve(t, PAGES * sizeof *t->pages))
		return false;
	t->pages = calloc(PAGES, sizeof *t->pages);
	if (!t->pages)
		return false;
	t->values = NULL;
	t->value_count = t->value_room = 0;
	if (page_values(t, values, n, &done)) {
		int64_t bytes = (int64_t)(room * sizeof *values);

		free(values);
		atomic_fetch_add(&t->budget->left, bytes);
		t->held -= bytes;
		return true;
	}
	/* What has been put into pages is among the values, still. */
	free(t->values);
	for (size_t i = 0; i < PAGES; i++)
		free(t->pages[i]);
	free(t->pages);
	t->pages = NULL;
	t->paged = 0;
	t->values = values;
	t->value_count = n;
	t->value_room = room;
	return false;
}

/* Keeps the distribution of n durations, as exactly as there is room. */
static int keep(struct region_tally *t, const int64_t *values, size_t n, struct error *err)
{
	size_t done = 0;

	if (!t->coarse && !t->pages) {
		if (t->value_count + n <= VALUES_MAX && room_for_values(t, n)) {
			memcpy(t->values + t->value_count, values, n * sizeof *values);
			t->value_count += n;
			return 0;
		}
		if (!begin_pages(t) && region_tally_coarsen(t, err) < 0)
			return -1;
	}
	if (t->pages && (t->paged + n > PAGED_MAX || !page_values(t, values, n, &done)) &&
	    region_tally_coarsen(t, err) < 0)
		return -1;
	for (size_t i = done; t->coarse && i < n; i++)
		t->coarse[region_coarse_bucket(values[i])]++;
	return 0;
}

/* Of durations that may be long, or below 0. */
static void add_sums_wide(struct region_tally *t, const int64_t *durations, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t d = durations[i];

		t->sum += d;
		if (d > -REGION_WIDE && d < REGION_WIDE)
			t->squares += (region_uint128)((region_int128)d * d);
		else
			t->wide_squares += (long double)d * (long double)d;
		t->backwards += d < 0;
	}
}

/* A batch of sums fits 64 bits where no duration is longer than 2^26 ns. */
static void add_sums(struct region_tally *t, const int64_t *durations, size_t n, int64_t min, int64_t max)
{
	uint64_t sum = 0, squares = 0;

	if (min < 0 || max >= 1 << 26) {
		add_sums_wide(t, durations, n);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t d = (uint32_t)durations[i];

		sum += d;
		squares += d * d;
	}
	t->sum += sum;
	t->squares += squares;
}

int64_t region_duration(int64_t start, int64_t end)
{
	int64_t d;

	if (__builtin_sub_overflow(end, start, &d))
		return end > start ? INT64_MAX : INT64_MIN;
	return d;
}

#define EARLIEST (-(INT64_C(1) << 62)) /* times between this and its negative can be subtracted */

static int add_batch(struct region_tally *t, const int64_t *starts, const int64_t *ends, size_t n, struct error *err)
{
	int64_t durations[BATCH], first = INT64_MAX, last = INT64_MIN, earliest_end = INT64_MAX;
	int64_t latest_start = INT64_MIN, min = INT64_MAX, max = INT64_MIN;

	for (size_t i = 0; i < n; i++) {
		first = starts[i] < first ? starts[i] : first;
		latest_start = starts[i] > latest_start ? starts[i] : latest_start;
		last = ends[i] > last ? ends[i] : last;
		earliest_end = ends[i] < earliest_end ? ends[i] : earliest_end;
	}
	if (first > EARLIEST && earliest_end > EARLIEST && latest_start < -EARLIEST && last < -EARLIEST)
		for (size_t i = 0; i < n; i++)
			durations[i] = ends[i] - starts[i];
	else
		for (size_t i = 0; i < n; i++)
			durations[i] = region_duration(starts[i], ends[i]);
	for (size_t i = 0; i < n; i++) {
		min = durations[i] < min ? durations[i] : min;
		max = durations[i] > max ? durations[i] : max;
	}
	t->count += n;
	t->first_start = first < t->first_start ? first : t->first_start;
	t->last_end = last > t->last_end ? last : t->last_end;
	t->min = min < t->min ? min : t->min;
	t->max = max > t->max ? max : t->max;
	add_sums(t, durations, n, min, max);
	return keep(t, durations, n, err);
}

int region_tally_add(struct region_tally *t, const int64_t *starts, const int64_t *ends, size_t n, struct error *err)
{
	for (size_t at = 0; at < n; at += BATCH)
		if (add_batch(t, starts + at, ends + at, n - at < BATCH ? n - at : BATCH, err) < 0)
			return -1;
	return 0;
}

void region_tally_add_gpu(struct region_tally *t, const int64_t *durations, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (durations[i] < 0)
			continue;
		t->gpu_calls++;
		t->gpu_sum += durations[i];
	}
}

/* Both by value: a page that is missing here is taken over. */
static void merge_pages(struct region_tally *t, struct region_tally *from)
{
	for (size_t i = 0; i < PAGES; i++) {
		if (!from->pages[i])
			continue;
		if (!t->pages[i]) {
			t->pages[i] = from->pages[i];
			from->pages[i] = NULL;
			t->held += PAGE * (int64_t)sizeof **t->pages;
			from->held -= PAGE * (int64_t)sizeof **t->pages;
			continue;
		}
		for (size_t k = 0; k < PAGE; k++)
			t->pages[i][k] += from->pages[i][k];
	}
	t->paged += from->paged;
}

static int merge_kept(struct region_tally *t, struct region_tally *from, struct error *err)
{
	if (from->pages && !t->pages && !t->coarse && !begin_pages(t) && region_tally_coarsen(t, err) < 0)
		return -1;
	if (from->pages && t->pages && t->paged + from->paged > PAGED_MAX && region_tally_coarsen(t, err) < 0)
		return -1;
	if (t->coarse && region_tally_coarsen(from, err) < 0)
		return -1;
	if (from->coarse && region_tally_coarsen(t, err) < 0)
		return -1;
	for (size_t i = 0; from->coarse && i < REGION_COARSE_BUCKETS; i++)
		t->coarse[i] += from->coarse[i];
	if (from->coarse)
		return 0;
	if (from->pages)
		merge_pages(t, from);
	for (size_t at = 0; at < from->value_count; at += BATCH) {
		size_t n = from->value_count - at < BATCH ? from->value_count - at : BATCH;

		if (keep(t, from->values + at, n, err) < 0)
			return -1;
	}
	return 0;
}

int region_tally_merge(struct region_tally *t, struct region_tally *from, struct error *err)
{
	if (merge_kept(t, from, err) < 0)
		return -1;
	t->count += from->count;
	t->backwards += from->backwards;
	t->min = from->min < t->min ? from->min : t->min;
	t->max = from->max > t->max ? from->max : t->max;
	t->first_start = from->first_start < t->first_start ? from->first_start : t->first_start;
	t->last_end = from->last_end > t->last_end ? from->last_end : t->last_end;
	t->sum += from->sum;
	t->squares += from->squares;
	t->wide_squares += from->wide_squares;
	t->gpu_calls += from->gpu_calls;
	t->gpu_sum += from->gpu_sum;
	region_tally_release(from);
	return 0;
}

/* About the whole number next to the mean everything is a whole number, too, and differences cannot lose anything
 * (modulo 2^128, which the result is far below); what is left is at most half a ns beside the mean. */
double region_tally_m2(const struct region_tally *t)
{
	region_int128 count = (region_int128)t->count, near, rest;
	region_uint128 around;

	if (t->count < 2)
		return 0;
	if (t->wide_squares > 0) {
		long double mean = (long double)t->sum / (long double)t->count;
		long double m2 = t->wide_squares + (long double)t->squares - mean * (long double)t->sum;

		return m2 > 0 ? (double)m2 : 0;
	}
	near = t->sum / count;
	rest = t->sum - near * count;
	around = t->squares - 2 * (region_uint128)near * (region_uint128)t->sum +
		 (region_uint128)count * (region_uint128)near * (region_uint128)near;
	return (double)((long double)around - (long double)rest * (long double)rest / (long double)t->count);
}

bool region_tally_is_exact(const struct region_tally *t)
{
	return !t->coarse;
}

struct region_interval region_tally_interval(const struct region_tally *t, uint64_t at)
{
	struct region_interval found = {0};
	size_t bucket = 0;

	while (bucket + 1 < REGION_COARSE_BUCKETS && found.before + t->coarse[bucket] <= at)
		found.before += t->coarse[bucket++];
	region_coarse_bounds(bucket, &found.low, &found.high);
	found.low = found.low < t->min ? t->min : found.low;
	found.high = found.high > t->max ? t->max : found.high;
	found.inside = t->coarse[bucket];
	return found;
}

/* Durations of ranks below `paged` among those that are counted by value. */
static void select_paged(const struct region_tally *t, const uint64_t *at, size_t n, int64_t *ret)
{
	uint64_t before = 0;
	size_t found = 0;

	for (size_t i = 0; i < PAGES && found < n; i++) {
		for (size_t k = 0; t->pages[i] && k < PAGE && found < n; k++) {
			before += t->pages[i][k];
			while (found < n && at[found] < before)
				ret[found++] = (int64_t)(i * PAGE + k);
		}
	}
}

#define SELECTED_MAX 16u

void region_tally_select(struct region_tally *t, const uint64_t *at, size_t n, int64_t *ret)
{
	uint64_t negative = 0, places[SELECTED_MAX];
	size_t paged = 0, kept = 0;
	bool is_paged[SELECTED_MAX];
	uint64_t in_pages[SELECTED_MAX];
	int64_t values[SELECTED_MAX];

	/* Kept values are before all pages where they are below 0, behind them else. */
	for (size_t i = 0; t->paged && i < t->value_count; i++)
		negative += t->values[i] < 0;
	for (size_t i = 0; i < n; i++) {
		is_paged[i] = t->paged && at[i] >= negative && at[i] < negative + t->paged;
		if (is_paged[i])
			in_pages[paged++] = at[i] - negative;
		else
			places[kept++] = at[i] < negative || !t->paged ? at[i] : at[i] - t->paged;
	}
	if (kept)
		region_select(t->values, t->value_count, places, kept);
	if (paged)
		select_paged(t, in_pages, paged, values);
	for (size_t i = 0, k = 0, p = 0; i < n; i++)
		ret[i] = is_paged[i] ? values[p++] : t->values[places[k++]];
}
