/* Exact news of the forks and exits below a process, from the kernel's perf events.
 *
 * A dummy event that every descendant inherits records each fork, also of processes too short-lived for any scan of
 * /proc. It has no notion of the tree: it only says what the kernel said. */
#ifndef ASSAY_EXEC_FORKS_H
#define ASSAY_EXEC_FORKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

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
void forks_close(struct forks *f); /* NULL accepted */

/* Takes an event: 1, or 0 when none waits. Events of different CPUs come in any order. */
int forks_next(struct forks *f, struct fork_event *ret);

/* Whether records (perhaps only threads') found no room, so that what forks_next gave is not all. */
bool forks_lost(const struct forks *f);

/* For tests: from now on forks_open fails with this reason; NULL ends that. */
void forks_forbid(const char *reason);

#endif
