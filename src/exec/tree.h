/* Following the target's process tree: who belongs to it, now.
 *
 * Finds descendants through parent links in /proc, and those that were re-parented through the helper, which is their
 * child subreaper. Counts forks exactly where the kernel's perf events may be used. Reads no resource counters. */
#ifndef ASSAY_EXEC_TREE_H
#define ASSAY_EXEC_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "model/process.h"

struct tree;

/* `command` is the target's pid (not yet past exec), `helper` the subreaper above it. */
int tree_new(pid_t command, pid_t helper, struct process_table *table, struct tree **ret, struct error *err);

/* The same for a process that may have children already, however old they are: its tree is looked for at once. No
 * helper: 0. */
int tree_new_running(pid_t command, pid_t helper, struct process_table *table, struct tree **ret, struct error *err);

void tree_free(struct tree *t);

/* Brings the table up to date: new descendants are added, those that ended are marked dead (not removed). Cheap when
 * nothing changed. Call every 100 ms, and once more when the command has exited. Zombies count as living until their
 * stat has been read by somebody who calls tree_process_gone: it still tells their CPU time. */
void tree_update(struct tree *t, int64_t now);

/* Adds what fork events have told since the last call; does nothing where there are none. So cheap that it may be
 * called every tick, which shows processes that live for a few ticks only. */
void tree_poll(struct tree *t, int64_t now);

/* A kept descriptor said that p is gone (ESRCH) or is a zombie. */
void tree_process_gone(struct tree *t, struct process *p, int64_t now);

struct tree_counts {
	uint64_t processes; /* the command included */
	uint64_t unseen;    /* of these, how many ended before anything of them could be read */
	bool exact;         /* false: at least so many */
	char why[160];      /* why not exact, "" if exact */
};

void tree_counts(struct tree *t, struct tree_counts *ret);

/* Living descendants of the helper, the command left out: how many, and up to `room` of their pids. Scans /proc first,
 * whatever that costs. */
size_t tree_survivors(struct tree *t, pid_t *pids, size_t room);

/* Sends a signal to every living process of the tree, those too that are forked meanwhile. Returns how many got it. */
size_t tree_signal(struct tree *t, int signo);

/* Whether forks can be counted exactly here, or why not and what would grant it; for `doctor`. */
int tree_fork_events_available(struct error *why_not);

#endif
