/* The run directory: its name, its files' names, and that it is never overwritten. The only place that knows them. */
#ifndef ASSAY_STORE_RUNDIR_H
#define ASSAY_STORE_RUNDIR_H

#include <stdint.h>

#include "base/error.h"

struct rundir {
	char *path;     /* absolute */
	char *run_json; /* all owned by the struct */
	char *begin_json;
	char *timeline_h5;
	char *summary_md;
	char *stdout_log, *stderr_log, *terminal_log;
	char *markers_log;
	char *segments; /* the folder */
	char *monitor_seg, *output_seg, *samples_seg;
	char *rings; /* the folder that sampled processes write to, below segments */
	char *profile_json;
	char *regions; /* the folder that processes with libassay record into, below segments */
	char *regions_h5;
	char *calls; /* the folder that processes under --instrument record into, below segments */
	char *calls_graph;
};

void rundir_init(struct rundir *d);
void rundir_release(struct rundir *d);

enum rundir_problem {
	RUNDIR_OK = 0,
	RUNDIR_IN_USE = -1,    /* it exists and is not empty: a user's error, exit 2 */
	RUNDIR_UNUSABLE = -2,  /* cannot be made or written: the run can go on elsewhere */
};

/* Makes the folder for a new run. out NULL: assay-runs/DATE-LABEL below the current folder ("-2", "-3", ... appended
 * while taken); an existing folder is accepted only when empty. Returns enum rundir_problem. */
int rundir_create(struct rundir *d, const char *out, const char *label, int64_t wall_ns, struct error *err);

/* Makes the folder alone, and *ret_path (owned) its path: for a job of several runs, which go into it. Returns enum
 * rundir_problem. */
int rundir_make_default(const char *label, int64_t wall_ns, char **ret_path, struct error *err);

/* The names for an existing folder (or its run.json), for reading. Fails where there is no such folder. */
int rundir_open(struct rundir *d, const char *path, struct error *err);

/* Removes what assay made in a folder whose command never started, and the folder where it is then empty. */
void rundir_discard(const struct rundir *d);

/* Removes what is at a result file's place where it is no regular file: a target may have put a FIFO or a link there,
 * and a result is never written through one. */
void rundir_clear_way(const char *path);

/* A label as part of a file name: anything but letters, digits, '.', '_', '-' becomes one '_'; at most 60 bytes; owned,
 * NULL when out of memory. */
char *rundir_tag(const char *label);

#endif
