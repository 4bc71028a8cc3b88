/* CPU sampling of a run, whatever takes the samples: prepares the target's environment, empties the rings while it
 * runs, and at the end says what could not be sampled, and why. One row of the table in sampling.c per recorder.
 *
 * It writes the samples segment and knows no symbols: names come after the run (profiling.h). */
#ifndef ASSAY_RECORD_SAMPLING_H
#define ASSAY_RECORD_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "exec/tree.h"
#include "model/process.h"
#include "model/warnings.h"
#include "wire/records.h"

#define SAMPLING_HZ_DEFAULT 199
#define SAMPLING_HZ_MAX 10000

struct sampling;

struct sampling_options {
	const char *recorder;     /* "preload" or "perf" */
	unsigned hz;
	const char *rings;        /* folder for ring files; made here, removed at the end when empty */
	const char *segment_path; /* samples.seg */
	const volatile int *hurry; /* set by a signal: the last look is cut short; may be NULL */
};

/* Before launch_prepare. Fails where this recorder cannot work at all here (no sampler library; perf not allowed), with
 * what would help. */
int sampling_new(const struct sampling_options *options, struct warnings *warnings, struct sampling **ret,
		 struct error *err);
void sampling_free(struct sampling *s);

/* What the target's environment needs, "K=V" lines to set, ends with NULL, borrowed from s. LD_PRELOAD is put before
 * what the caller's environment (or `env`, may be NULL) has. */
const char *const *sampling_environment(struct sampling *s, const char *const *env);

/* The command exists and has not exec'd yet. */
int sampling_begin(struct sampling *s, pid_t command, struct error *err);

/* Empties what has come; cheap when nothing has. Call at least every 100 ms; `table` is the tree as known. */
void sampling_poll(struct sampling *s, const struct process_table *table, int64_t now);

/* The helper reaped a process: what it used is now exact. */
void sampling_reaped(struct sampling *s, const struct wire_exit *e, int64_t now);

/* A process of the table is about to be forgotten: these are its last figures. */
void sampling_forgotten(struct sampling *s, const struct process *p);

/* The command (or, with wait_tree, the tree) has ended: the last look. Notes every process that used CPU time and gave
 * no samples, with the reason. */
void sampling_end(struct sampling *s, const struct process_table *table, int64_t now);

/* After assay was killed: makes the segment anew from what is on file there (it may be missing or damaged) and what
 * still lies in the rings. Done again it gives the same. Rings of living processes stay as they are. */
int sampling_recover(const char *rings, const char *segment_path, struct warnings *warnings, struct error *err);

/* Whether rings are left that a recovery could take samples from: of processes that lived on after the one before. */
bool sampling_rings_left(const char *rings);

/* The module's file, opened while it was still there, or -1; borrowed, stays open until sampling_free. */
int sampling_module_fd(const struct sampling *s, uint32_t module);

#endif
