/* The line that tells how far a benchmark is, on a terminal. */
#ifndef ASSAY_CMD_BENCH_PROGRESS_H
#define ASSAY_CMD_BENCH_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/bench.h"

struct bench_progress {
	const struct bench *bench;
	int64_t started, shown; /* ns; 0: not yet */
	size_t from;            /* the arm that it started with */
	bool there;             /* a line is on the terminal */
};

/* For bench_execution; context is a struct bench_progress. */
void bench_progress_show(void *context, size_t at, size_t of, size_t command);

/* Takes the line away again. */
void bench_progress_clear(struct bench_progress *p);

#endif
