/* What the sources share: defining series, reading the files of living processes, and not reading dear files too often. */
#ifndef ASSAY_SOURCE_READING_H
#define ASSAY_SOURCE_READING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "source/source.h"

/* The id of a new series, or -1: out of memory, or no timeline in *c (`doctor` only asks whether a source opens). */
int series_define(struct source_context *c, const struct series_desc *desc);

/* How seldom a dear file is read: never before `factor` times the last cost in CPU time has passed, so that its reading
 * takes no more than 1/factor of a core. */
struct pace {
	int64_t next, began;
};

bool pace_due(struct pace *pace, int64_t now); /* true starts the clock: call pace_done after the reads */
void pace_done(struct pace *pace, int64_t now, int64_t factor);

/* Reads /proc/PID/NAME by the descriptor kept in *place (p->stat_fd or p->statm_fd), opening it where it is not kept.
 * Returns the length, 0 where the process is gone, or -errno. The text ends with 0. */
ssize_t living_read(struct source_context *c, struct process *p, int *place, const char *name, char *text, size_t size);

/* As above, without keeping a descriptor. */
ssize_t living_read_once(const struct process *p, const char *name, char *text, size_t size);

/* It has ended: marks it dead, through the recorder where there is one. */
void living_gone(struct source_context *c, struct process *p, int64_t now);

/* Asks its stat whether it has ended, and if so marks it dead. */
bool living_ended(struct source_context *c, struct process *p, int64_t now);

/* Series of single processes: only of those that have lived for a second, the first OWN_SERIES_MAX of them. A pid that is
 * used again gets no series of its own, since the name is taken. */
#define OWN_SERIES_MAX 64
#define OWN_SERIES_AFTER_NS INT64_C(1000000000)
#define OWN_SERIES_NEVER (-2)

struct own_series {
	int pids[OWN_SERIES_MAX];
	size_t count;
};

/* Brings *id (-1: none yet) up to date; -1 or OWN_SERIES_NEVER stay harmless in timeline_put. `desc` gives the unit, the
 * source and the kind; its name is what follows "process.PID.". */
void own_series_update(struct own_series *own, struct source_context *c, const struct process *p, int *id,
		       const struct series_desc *desc, int64_t now);

#endif
