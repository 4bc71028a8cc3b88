/* What the tree's threads do with the CPUs: time on them and waits for them, from /proc/PID/task/TID/schedstat (that of
 * PID alone is only its first thread).
 *
 * A bounded number of files per call, going round; once round all threads is a look. Threads that end between two looks
 * take their last times with them, so the sums are "at least". */
#ifndef ASSAY_SOURCE_THREADS_H
#define ASSAY_SOURCE_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "source/reading.h"
#include "source/source.h"

#define THREADS_PER_CALL 256
/* Series of single threads: only of those that have used this much, the first OWN_SERIES_MAX of them. */
#define THREAD_SERIES_AFTER_NS INT64_C(50000000)

#define THREAD_CPUS_MAX 1024 /* on machines with more, affinity is not read */

struct thread_known {
	int tid, pid;
	int64_t cpu_ns, wait_ns, slices;
	uint32_t visit; /* the visit of its process at which it was last seen */
	int series;     /* its own; -1: none yet, or OWN_SERIES_NEVER */
};

struct thread_table {
	struct thread_known *items; /* hash by tid, tid 0 where empty */
	size_t count, room;         /* room: a power of two, or 0 */

	/* Sums: time waited; times that a thread was put on a CPU; the CPU time of whichever thread used most of it
	 * from one look to the next, which grows by no more than a second per second. */
	int64_t wait_ns, slices, busiest_ns;

	/* The look under way: where the next call goes on, and what the busiest thread has used so far. */
	size_t process_at, thread_at;
	int pid_at; /* whose threads thread_at counts */
	int64_t grown_ns;
	int64_t began, began_before; /* CLOCK_BOOTTIME, of this look and of the one before */

	/* CPUs that the threads which ran may use, of the look under way; how many these were in the last one, 0: not
	 * known. */
	unsigned long allowed[THREAD_CPUS_MAX / (8 * sizeof(unsigned long))];
	int allowed_count;

	bool looked;       /* a look has ended, at looked_at */
	int64_t looked_at; /* CLOCK_MONOTONIC */
	/* By how much the kernel's figures may be late, and how much of it busiest_ns may still take. */
	int64_t lag_ns, credit_ns;

	int64_t ns_per_tick;
	int own_tids[OWN_SERIES_MAX]; /* those that have, or had, a series */
	size_t own_count;
};

void thread_table_init(struct thread_table *t);
void thread_table_release(struct thread_table *t);

/* Goes on with the look under way, or begins one: visits up to THREADS_PER_CALL threads of the processes that have used
 * CPU time since their last visit. True where the look has ended; the threads' own series have a point then. */
bool thread_table_look(struct thread_table *t, struct source_context *c, int64_t now);

#endif
