/* One row of the table of statistics while a file's calls are read: its tallies, and the figures that come of them.
 * It knows no file, only calls as they are handed to it. store/region_rows.c has the rows of a table. */
#ifndef ASSAY_STORE_REGION_ROW_WORK_H
#define ASSAY_STORE_REGION_ROW_WORK_H

#include <pthread.h>

#include "model/region_seek.h"
#include "model/region_table.h"
#include "model/region_tally.h"
#include "model/regions.h"

#define ROW_RANKS 6 /* durations that three percentiles lie between */

/* What one worker at a time adds to. */
struct row_slot {
	pthread_mutex_t lock;
	struct region_tally tally;
};

struct row_work {
	uint32_t region;
	int64_t rank, thread; /* -1: all */
	uint64_t expected;    /* calls that it will be given; UINT64_MAX: not known */
	_Atomic uint64_t seen;
	struct row_slot *slots; /* after row_work_join the first one alone counts */
	unsigned slot_count;
	bool settled;                  /* percentiles are found */
	bool looking;                  /* it takes part in this pass */
	struct region_seek *seeks;     /* ROW_RANKS of them, or NULL */
	int64_t values[ROW_RANKS];     /* where settled and any call was seen */
	/* In a table by thread: how long other regions ran inside the calls, where that is known. */
	uint32_t number;
	bool inside_known;
	region_int128 inside;
	/* Rows of one rank, by thread. */
	struct row_work **threads; /* by thread, owned by the table */
	size_t thread_count;
};

/* NULL with *err. slots: how many workers may add at once without waiting for each other. */
struct row_work *row_work_new(unsigned slots, struct region_budget *budget, struct error *err);
void row_work_free(struct row_work *w); /* NULL accepted */

/* Adds calls from any thread; gpu may be NULL. *ret_sum: the sum of their durations, modulo 2^64. */
int row_work_add(struct row_work *w, unsigned worker, const int64_t *starts, const int64_t *ends, const int64_t *gpu,
		 size_t n, int64_t *ret_sum, struct error *err);

/* When no more calls come: joins the slots, and finds percentiles where no other pass is needed. `summarised`: other
 * calls are known by a histogram, so these are made one, too. */
int row_work_settle(struct row_work *w, bool summarised, struct error *err);

/* Passes for rows that are not settled: what one takes in bytes, its begin, each call's durations, its end. */
int row_work_seek(struct row_work *w, struct error *err);
size_t row_work_bytes(const struct row_work *w);
int row_work_begin(struct row_work *w, struct error *err);
void row_work_look(struct row_work *w, const int64_t *starts, const int64_t *ends, size_t n);
void row_work_end(struct row_work *w);

/* p50, p95, p99 of a settled row that has seen calls. */
void row_work_percentiles(const struct row_work *w, double *ret_p50, double *ret_p95, double *ret_p99);

/* Thread k of a row, and after its threads the row itself. */
static inline struct row_work *row_work_one(struct row_work *of, size_t k)
{
	return k < of->thread_count ? of->threads[k] : of;
}

/* The tally of a row that was settled or joined. */
static inline struct region_tally *row_work_tally(struct row_work *w)
{
	return &w->slots[0].tally;
}

#endif
