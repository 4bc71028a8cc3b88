/* The processes of the target's tree, as far as they were seen.
 *
 * Pure data: who finds processes (exec/tree) and who reads their counters (the sources) are not known here. A process
 * is (pid, start time), so a pid that is used again is another process. */
#ifndef ASSAY_MODEL_PROCESS_H
#define ASSAY_MODEL_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/usage.h"

struct process {
	int pid, ppid; /* ppid: who forked it, as far as is known */
	int parent;    /* who would wait for it now */
	int64_t start_ticks; /* clock ticks since boot, from field 22 of /proc/PID/stat */
	int64_t first_seen, last_seen;
	bool alive;
	char comm[64];
	char *command;      /* arguments separated by blanks, at most 512 bytes, owned; NULL: not readable or a kernel's
			       zombie */
	bool command_stale; /* it has become another program since `command` was read */

	/* Kept up to date by the sources, counters through usage_read; -1: not known. */
	int64_t user_ns, system_ns;
	int64_t rss, anon, rss_peak, anon_peak; /* bytes */
	int64_t high_water; /* the kernel's own peak of the RSS; only a watch of memory reads it */
	int64_t threads, threads_peak;
	int64_t minor_faults, major_faults;
	int64_t read_bytes, write_bytes; /* at the storage layer */
	int64_t read_chars, write_chars, read_calls, write_calls; /* through system calls */

	/* What spares reads of a process that sleeps: its CPU clock now, and what that was when each file was last read
	 * (-1: not known). `ran`: it is taken to have used CPU time since the tick before. Setting stat_read_at to 0
	 * asks for a reading at the next tick. */
	int64_t clock_ns, clock_at_io, clock_at_threads;
	int64_t stat_read_at, statm_read_at; /* time of the last read, 0: never */
	uint64_t thread_visits;              /* how often its threads have been listed */
	bool ran;

	struct usage_account accounts[USAGE_KINDS];
	bool has_fresh; /* some of them wait for their round to end */

	int cpu_series, rss_series; /* its own series in the timeline, -1: none */

	/* Descriptors of /proc files that are kept open (-1: not open); see process_keep. */
	int stat_fd, statm_fd;
};

struct process_table {
	struct process *items; /* dead ones are kept until process_table_reap */
	size_t count, room;
	size_t alive;          /* how many of them live */
	uint64_t seen;         /* how many there ever were */
	size_t peak_alive;
	uint32_t *slots;       /* hash of the living by pid: position in items + 1, 0 where empty */
	size_t slot_count;     /* a power of two, more than twice the living */
	int64_t used[USAGE_KINDS]; /* by all of them, ended ones too */
	struct usage_account reaper[USAGE_KINDS]; /* of the helper; `inherited` is the last total it told */
	unsigned round;        /* of usage_end_round */
	bool has_fresh;        /* some process has */
	size_t kept, kept_max; /* descriptors that are kept open, and how many may be */
};

void process_table_init(struct process_table *t);
void process_table_release(struct process_table *t); /* closes descriptors */

/* The living process of that pid, or NULL. Fast for any size. */
struct process *process_find(struct process_table *t, int pid);

/* Adds a living process; pointers into the table are invalid afterwards. NULL when out of memory. One of the same pid
 * that was thought to live is dead then: its pid has been used again. */
struct process *process_add(struct process_table *t, int pid, int ppid, int64_t start_ticks, int64_t now);

/* It is gone: closes its descriptors, keeps its figures. */
void process_died(struct process_table *t, struct process *p, int64_t now);

/* Keeps an open descriptor in p->stat_fd or p->statm_fd and returns true, or closes it where the limit of open files
 * leaves no room (then the file is opened for each read). process_unkeep closes what is kept. */
bool process_keep(struct process_table *t, int *place, int fd);
void process_unkeep(struct process_table *t, int *place);

/* Removes the dead, calling `each` for them first (it may be NULL). */
void process_table_reap(struct process_table *t, void (*each)(void *context, const struct process *p), void *context);

#endif
