/* Finding the tree's processes in /proc by their parents, without asking again about those that were judged.
 *
 * The fallback where fork events are not to be had, and the check on them where they are. */
#ifndef ASSAY_EXEC_SCAN_H
#define ASSAY_EXEC_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/procfs.h"
#include "exec/pidset.h"
#include "model/process.h"

struct undecided {
	int pid, ppid;
	int64_t start_ticks;
};

struct scan {
	int proc_fd;
	int helper; /* its children belong to the tree; 0: none */
	struct process_table *table;
	struct pidset present; /* seen in the scan under way */
	struct pidset judged;  /* not of the tree */
	struct pidset ended;   /* of the tree, counted, and zombies */
	struct undecided *undecided; /* their parent was not known when they were seen */
	size_t undecided_count, undecided_room;
	int64_t now;
	bool rejudge; /* all are asked for their parents anew */
	bool failed;  /* out of memory: some may have been missed */
	/* Called for each process that is new in the table. */
	void (*added)(void *context, struct process *p);
	void *context;
};

int scan_init(struct scan *s, int helper, struct process_table *table, struct error *err);
void scan_release(struct scan *s);

/* One pass over /proc: adds new descendants to the table and marks those dead that are no longer there. With `rejudge`,
 * those that were judged before are judged again: their pids may have been used again since. */
void scan_run(struct scan *s, int64_t now, bool rejudge);

/* Reads the stat of a process; returns its open descriptor (the file then belongs to this process for good), or -1. The
 * text must hold 512 bytes and outlive *ret. */
int scan_open_stat(int pid, char *text, struct proc_stat *ret);

/* Adds a process whose stat was just read, and keeps the descriptor. NULL (and closed) when out of memory. */
struct process *scan_add(struct scan *s, int pid, int ppid, const struct proc_stat *stat, int fd, int64_t now);

/* Reads the command line of a process, where it can. */
void scan_read_command(struct process *p);

/* Whether it is still there, as a zombie or better; and whether it still runs, which a zombie does not. */
bool scan_is_there(const struct process *p);
bool scan_runs(const struct process *p);

#endif
