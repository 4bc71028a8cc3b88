/* How long the tree's threads have waited for a CPU, summed from /proc/PID/task/TID/schedstat (that of PID alone is
 * only its first thread).
 *
 * A bounded number of files per call, going round; threads that end between two visits take their last wait with them,
 * so the sums are "at least". */
#ifndef ASSAY_SOURCE_THREADS_H
#define ASSAY_SOURCE_THREADS_H

#include <stdint.h>

#include "model/process.h"

#define THREADS_PER_CALL 256

struct thread_known {
	int tid, pid;
	int64_t wait_ns, slices;
	uint64_t visit; /* the visit of its process at which it was last seen */
};

struct thread_waits {
	struct thread_known *items; /* hash by tid, tid 0 where empty */
	size_t count, room;         /* room: a power of two, or 0 */
	size_t process_at, thread_at; /* where the next call goes on */
	int64_t wait_ns, slices;    /* sums: time waited, times that a thread was put on a CPU */
};

void thread_waits_init(struct thread_waits *w);
void thread_waits_release(struct thread_waits *w);

/* Visits up to THREADS_PER_CALL threads of the processes that have used CPU time since their last visit. */
void thread_waits_read(struct thread_waits *w, struct process_table *processes);

#endif
