/* Exact news of the forks and exits below a process, from the kernel's perf events: also of processes too short-lived
 * for any scan of /proc.
 *
 * Who may (CAP_PERFMON, or perf_event_paranoid of 0) listens to the whole machine and picks out the descendants, which
 * costs them nothing. Others attach an event that every descendant inherits, once per CPU: some 3 us per CPU for each
 * fork and thread, and 0.3 us for each switch between threads; past FORKS_CPUS_INHERITED CPUs that is too much. */
#ifndef ASSAY_EXEC_FORKS_H
#define ASSAY_EXEC_FORKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define FORKS_CPUS_INHERITED 16

struct forks;

enum fork_event_type {
	FORK_NEW,   /* `pid` was forked by `ppid`; threads are left out */
	FORK_ENDED, /* the first thread of `pid` has ended, and as a rule the process with it */
};

struct fork_event {
	enum fork_event_type type;
	int pid, ppid;
	int64_t t; /* CLOCK_MONOTONIC */
};

/* Attaches to a process that has no children yet. 0, or -1 with why not and what would grant it. */
int forks_open(pid_t pid, struct forks **ret, struct error *why_not);

/* The same for a process that has run before: only the whole machine can be listened to, for events that were attached
 * now would miss its other threads and its children. forks_know names the descendants that it has already. */
int forks_open_running(pid_t pid, struct forks **ret, struct error *why_not);
void forks_know(struct forks *f, pid_t pid);

void forks_close(struct forks *f); /* NULL accepted */

/* Takes an event, in the order of time: 1, or 0 when no more wait that happened before the first of these calls. */
int forks_next(struct forks *f, struct fork_event *ret);

/* Whether records (perhaps only threads') found no room, so that what forks_next gave is not all. */
bool forks_lost(const struct forks *f);

/* For tests: from now on forks_open fails with this reason; NULL ends that. And: it attaches to the process only. */
void forks_forbid(const char *reason);
void forks_forbid_machine(bool forbidden);

#endif
