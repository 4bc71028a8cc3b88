/* What watching the memory of a process found: what one reading saw, and the figures of the whole watch.
 *
 * Plain data, which reports show and record/spy makes. Bytes; -1 not known. */
#ifndef ASSAY_MODEL_SPY_RESULT_H
#define ASSAY_MODEL_SPY_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/monitor.h"
#include "model/warnings.h"

enum spy_resource { SPY_RSS, SPY_ANON, SPY_FILE, SPY_SWAP, SPY_PSS, SPY_RESOURCES };
extern const char *const spy_resource_names[SPY_RESOURCES]; /* "rss", "anon", "file", "swap", "pss" */

#define SPY_GPUS_MAX 64

/* What one tick saw; -1 where it was not read at this one. With `tree` sums over the processes that live. */
struct spy_sample {
	int64_t t;
	int64_t bytes[SPY_RESOURCES];
	int64_t gpus[SPY_GPUS_MAX]; /* used on each, by all programs */
	size_t gpu_count;
	size_t processes;
};

enum spy_end {
	SPY_RUNNING,
	SPY_STOPPED, /* the watch was ended, and the process lived on */
	SPY_GONE,    /* the process ended */
};

struct spy_result {
	struct monitor resources[SPY_RESOURCES]; /* n 0: never read; why stands in warnings */
	struct monitor gpus[SPY_GPUS_MAX];
	char gpu_names[SPY_GPUS_MAX][96];
	size_t gpu_count;
	int64_t begin, end; /* CLOCK_MONOTONIC, ns */
	enum spy_end how;
	/* The kernel's own peak of the RSS (VmHWM): at the first and at the last reading; -1. A rise proves that the
	 * peak of the watch is at least the last one, however short it was. With `tree` those of all processes
	 * that were seen, summed: a bound from above only, and `tree_bound` says so. */
	int64_t high_water_begin, high_water_end;
	int64_t high_water_read_at;
	/* The peak RSS: from the samples or from the mark, whichever is larger where the mark speaks of this watch.
	 * `peak_exact`: no value between the ticks can have been larger by more than 2%; else the peak is a bound from
	 * below, and `peak_above` one from above (-1: none is known). */
	int64_t peak, peak_above;
	bool peak_from_mark, peak_exact, tree_bound;
	uint64_t ticks, late_ticks; /* late: more than one delay after their time */
	uint64_t processes, unseen; /* of the tree; unseen: ended before anything of them was read, at least so many */
	struct warnings warnings;   /* what could not be observed, and why */
};

void spy_result_init(struct spy_result *r);
void spy_result_release(struct spy_result *r);

#endif
