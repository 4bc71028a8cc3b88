/* The kernel's CPU clock events of a process and all its descendants, and the rings that their records come in: one
 * event and ring per CPU, merged in the order of time.
 *
 * Who may (CAP_PERFMON, or perf_event_paranoid of 0) samples each CPU, whoever uses it, which costs forks nothing and
 * counts the shortest of threads fairly. Others attach events that every descendant inherits: each thread's period then
 * begins anew, so that one which ends before it is over is never seen.
 *
 * Knows how events are opened and what the kernel refuses, not what the records mean. */
#ifndef ASSAY_RECORD_PERF_RINGS_H
#define ASSAY_RECORD_PERF_RINGS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "record/perf_records.h"

struct perf_rings;

/* Whether a process of ours could be sampled here; *err says why not and what would grant it. */
int perf_rings_allowed(unsigned hz, struct error *err);

/* Of a process that has no other threads yet; sampling begins with its next exec, or at once. */
int perf_rings_open(pid_t pid, unsigned hz, struct perf_rings **ret, struct error *err);
void perf_rings_close(struct perf_rings *r); /* NULL accepted */

/* Takes the next record, in the order of time; it stays until the next call. False when no more wait that were written
 * before the first of these calls. What cannot be read as a record is left out and counted. */
bool perf_rings_next(struct perf_rings *r, struct perf_record *ret);

bool perf_rings_machine(const struct perf_rings *r);    /* records of other processes come, too */
bool perf_rings_see_kernel(const struct perf_rings *r); /* its code is sampled, too */
uint64_t perf_rings_unreadable(const struct perf_rings *r);
uint64_t perf_rings_nominal(const struct perf_rings *r); /* ns of CPU time between two samples */

/* For tests: from now on only events that are inherited are opened; false ends that. */
void perf_rings_forbid_machine(bool forbidden);

#endif
