/* The files of a process' threads, added up per caller and callee. Known to graph_recording.c alone. */
#ifndef ASSAY_STORE_GRAPH_RECORDING_THREAD_H
#define ASSAY_STORE_GRAPH_RECORDING_THREAD_H

#include "store/graph_recording.h"

struct calls_open; /* what was open in one thread */

struct calls_sums {
	double scale; /* nanoseconds per step of the clock; 0: not known */
	struct calls_sum *items;
	uint32_t *index; /* places of items + 1, 0: free */
	size_t count, room, places;
	struct calls_open *open;
	size_t open_count;
	uint64_t last; /* clock of the last event of any thread */
	size_t threads;
	uint64_t dropped, beyond, lost;
};

void calls_sums_init(struct calls_sums *s, double scale);
void calls_sums_release(struct calls_sums *s);

/* Adds one thread's file; what is damaged is left out with a note. */
int calls_sums_open(struct calls_sums *s, const char *path, struct warnings *notes, struct error *err);

/* Ends what was open at `end`, or at the last event where that came later, and hands all over to *ret. */
int calls_sums_finish(struct calls_sums *s, uint64_t end, struct calls_process *ret, struct error *err);

/* This machine's clock of recordings beside CLOCK_MONOTONIC; false: it has none but that. */
bool calls_clock_now(double *ret_clock, double *ret_ns);

#endif
