/* How fast this machine's memory can be read: a measurement of less than a second, in a process of its own, so that its
 * memory and threads are never this one's.
 *
 * It knows nothing of runs, nor where the answer is kept. */
#ifndef ASSAY_EXEC_BANDWIDTH_H
#define ASSAY_EXEC_BANDWIDTH_H

#include "base/error.h"
#include "model/bandwidth.h"

/* Reads buffers far larger than the last-level cache with one thread, then with one on each CPU that this process may
 * use, in rounds of 20 ms, while the parent looks at the pages touched (see base/touch.h). Takes less than a second and
 * at most an eighth of the memory that is available to this process (machine and cgroup). *stop (may be NULL), set by a
 * signal, ends it early with an error. Fails where there is too little memory, or the child dies.
 *
 * The buffers are in small pages, as what programs allocate and map mostly is. Huge ones were as fast within the spread
 * on a Zen 5 (one thread 37 to 44 GB/s instead of 38 to 42). `quiet` is left false: the caller knows. */
int bandwidth_measure(const volatile int *stop, struct bandwidth *ret, struct error *err);

#endif
