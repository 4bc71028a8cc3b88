/* The reading side of the bandwidth probe: what the forked child does, and what it tells in shared memory.
 *
 * It reads in windows of time rather than in passes: each thread notes how many bytes it has read in each window, so
 * that the threads are in lock step without a barrier, and one that loses its CPU lowers that window only. */
#ifndef ASSAY_EXEC_BANDWIDTH_READER_H
#define ASSAY_EXEC_BANDWIDTH_READER_H

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define READER_THREADS_MAX 64
#define READER_WINDOW_NS (20 * NS_PER_MS)
/* Windows that count, behind WARM ones that do not: caches, clock frequency and prefetchers settle meanwhile. */
#define READER_WARM 2
#define READER_ONE 10
#define READER_ALL 15
/* Then all go on reading, so that the parent can look at the pages that they touch without its looks counting. */
#define READER_LOOKED_AT 10
#define READER_WINDOWS (READER_WARM + READER_ALL + READER_LOOKED_AT)

enum reader_stage { READER_FILLS, READER_READS_ONE, READER_READS_ALL, READER_IS_LOOKED_AT, READER_DONE };

/* Anonymous shared memory, zero at first. */
struct reader_board {
	_Atomic int stage;
	_Atomic int threads; /* that read together */
	_Atomic int failed;  /* errno of what kept the first thread from reading, 0: none */
	uint64_t one[READER_WARM + READER_ONE]; /* bytes in each window */
	uint64_t all[READER_THREADS_MAX][READER_WINDOWS];
};

struct reader_plan {
	const cpu_set_t *cpus; /* of this process's affinity mask; `cpus_size` as for CPU_ISSET_S */
	size_t cpus_size;
	int threads;		/* at most READER_THREADS_MAX */
	size_t first_bytes;	/* the first thread's buffer, which it reads whole when it reads alone */
	size_t bytes;		/* of each buffer, when all read */
};

/* Fills the buffers and reads them; returns when all is done, with *board at READER_DONE. To be called in a process of
 * its own. */
void reader_run(const struct reader_plan *plan, struct reader_board *board);

#endif
