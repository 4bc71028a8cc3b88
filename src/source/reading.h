/* What the sources share: defining series, reading the files of living processes, and sparing dear ones. */
#ifndef ASSAY_SOURCE_READING_H
#define ASSAY_SOURCE_READING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "source/source.h"

/* The id of a new series, or -1: out of memory, or no timeline in *c (`doctor` only asks whether a source opens). */
int series_define(struct source_context *c, const struct series_desc *desc);

/* How seldom a dear file is read: never before `factor` times its usual cost has passed, so that reading it takes no
 * more than 1/factor of a core; except when a tick must be exact. */
struct pace {
	int64_t next, began;
	int64_t cost; /* ns, near the lowest of late, since others' use of the CPU can only add to it */
};

/* What a file of the whole machine or of a cgroup may take: 0.05% of a core, so that one that takes 50 us is still read
 * every 100 ms. There are a dozen, and most take 3 to 10 us. */
#define PACE_FACTOR 2000

/* If true, call pace_done after the reads. */
bool pace_due(struct pace *pace, const struct source_context *c, int64_t now);
void pace_done(struct pace *pace, int64_t now, int64_t factor);

/* For what changes slowly: not before this has passed, either. Call it after pace_done. */
void pace_at_least(struct pace *pace, int64_t now, int64_t ns);

/* A counter that goes on where what it counts is replaced: a command that moves to another group or network, a device
 * that is made anew. All 0 in the beginning. */
struct running {
	double last, offset;
	bool begun;
	bool elsewhere; /* set it where the next total is of something else, which need not be less */
};

/* The running total after what is read now; it never goes down. */
double running_total(struct running *r, double now);

/* Reads /proc/PID/NAME by the descriptor kept in *place (p->stat_fd or p->statm_fd), opening it where it is not kept.
 * Returns the length, 0 where the process is gone, or -errno. The text ends with 0. */
ssize_t living_read(struct source_context *c, struct process *p, int *place, const char *name, char *text, size_t size);

/* As above, without keeping a descriptor. */
ssize_t living_read_once(const struct process *p, const char *name, char *text, size_t size);

/* It has ended: marks it dead, through the recorder where there is one. */
void living_gone(struct source_context *c, struct process *p, int64_t now);

/* Whether a file last read at `read_at` (0: never) is due after `every`. Processes that began together are spread over
 * time, so that a thousand of them do not fall due at one tick. */
bool reading_is_due(const struct process *p, int64_t read_at, int64_t every, int64_t now);

/* Series of single processes: only of those that have lived for a second, the first OWN_SERIES_MAX of them. A pid that
 * is used again gets no series of its own, since the name is taken. */
#define OWN_SERIES_MAX 64
#define OWN_SERIES_AFTER_NS INT64_C(1000000000)
#define OWN_SERIES_NEVER (-2)

struct own_series {
	int pids[OWN_SERIES_MAX];
	size_t count;
};

/* Brings *id (-1: none yet) up to date; -1 or OWN_SERIES_NEVER stay harmless in timeline_put. `desc` gives the unit,
 * the source and the kind; its name is what follows "process.PID.". */
void own_series_update(struct own_series *own, struct source_context *c, const struct process *p, int *id,
		       const struct series_desc *desc, int64_t now);

#endif
