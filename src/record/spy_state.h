/* What a watch of memory holds, for the files record/spy*.c and nobody else. */
#ifndef ASSAY_RECORD_SPY_STATE_H
#define ASSAY_RECORD_SPY_STATE_H

#include "exec/tree.h"
#include "model/process.h"
#include "record/spy.h"
#include "source/gpu_reader.h"
#include "source/pss.h"
#include "source/reading.h"

/* Enough of /proc/PID/auxv to tell two images of a program apart: it holds addresses that are drawn anew by each exec.
 */
struct spy_image {
	char auxv[512];
	ssize_t length; /* below 1: not readable, as of other users' processes */
};

/* The kernel's own peaks. */
struct spy_marks {
	int64_t begin, last; /* of one process, or the sums over those that live; -1 */
	int64_t base;        /* what the mark was when the watch, or the program's image, began */
	int64_t proven;      /* a value that the RSS reached during the watch, for the mark rose to it; -1: none */
	int64_t read_at;
	int64_t ended;       /* sum over the processes of the tree that have ended, as last read */
	bool replaced;       /* the program was replaced by exec: what the old one reached since is not known */
	struct spy_image image;
	int status_fd; /* of the process itself; -1: not open yet */
	struct pace pace;
};

struct spy_gpus {
	struct gpu_reader *reader;
	struct gpu_reading *readings;
	size_t count;
	int64_t next;
	bool told;
};

struct spy {
	struct spy_options o;
	int64_t page;   /* bytes */
	int pidfd;      /* of the process; -1 where the kernel has none */
	bool ended;
	int64_t begin, last; /* times of the first and the last tick; 0: none yet */
	int64_t end;         /* when the end was noticed */
	uint64_t ticks, late_ticks;
	int64_t round_cost, stretched; /* ns that reading all processes takes; the longest delay it led to, 0: none */

	struct process_table processes;
	struct tree *tree; /* NULL: one process only */
	struct source_context context;
	struct warnings warnings;

	struct spy_marks marks;
	struct pss shares;
	int64_t shares_rss; /* the largest RSS at which the shares were read; 0: never */
	struct spy_gpus gpus;
	struct monitor resources[SPY_RESOURCES];
	struct monitor gpu_monitors[SPY_GPUS_MAX];
};

/* Reads status where it is due, or at any rate where context.exact says so: returns the swap, or -1. */
int64_t spy_marks_read(struct spy *s, int64_t now);
void spy_marks_begin(struct spy *s);
void spy_marks_end(struct spy *s);

/* A process of the tree that has ended, before it leaves the table. */
void spy_marks_ended(void *context, const struct process *p);

int spy_gpus_open(struct spy_gpus *g, struct error *err);
void spy_gpus_release(struct spy_gpus *g);

/* Fills s->gpus[0 .. count) with what has come in, -1 where that is nothing. */
void spy_gpus_read(struct spy_gpus *g, struct spy_sample *s, bool exact, struct warnings *warnings);

#endif
