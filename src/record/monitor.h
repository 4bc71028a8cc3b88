/* The monitor: reads all sources on one timer and appends what they say to the monitor segment.
 *
 * It keeps assay's own cost within a budget by stretching the intervals, and tells by how much. It knows the tree and
 * the sources, not the helper, the output or the phases. */
#ifndef ASSAY_RECORD_MONITOR_H
#define ASSAY_RECORD_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "exec/tree.h"
#include "model/process.h"
#include "model/run.h"
#include "model/timeline.h"
#include "model/warnings.h"
#include "wire/records.h"
#include "wire/segment.h"

struct monitor;

/* All borrowed, until monitor_free. */
struct monitor_options {
	const char *segment_path; /* NULL: nothing is kept */
	pid_t command, helper;
	char *const *argv;         /* of the command, ends with NULL */
	const char *command_line;  /* masked: stands for the command in the report where it ended before its own could
				    * be read */
	int64_t interval_ns;
	/* A process of the tree is about to be forgotten: these are its last figures. May be NULL. */
	void (*forgotten)(void *context, const struct process *p);
	void *forgotten_context;
	bool probe; /* looks that cost the target something, though little, are allowed */
};

/* A source that is not here is named in *warnings (borrowed), with its reason. */
int monitor_new(const struct monitor_options *options, struct warnings *warnings, struct monitor **ret,
		struct error *err);

/* Ends in good order: closes the segment. NULL accepted. */
void monitor_free(struct monitor *m);

/* The first reading, just before the command execs. */
void monitor_begin(struct monitor *m, int64_t now);

/* When the next reading is due. */
int64_t monitor_due(const struct monitor *m);

/* Takes the readings that are due. */
void monitor_run(struct monitor *m, int64_t now);

/* The helper has waited for a process: its last figures are exact, however seldom it was read. */
void monitor_reaped(struct monitor *m, const struct wire_exit *e, int64_t now);

/* The last reading: every series gets a point at `end`, when what is measured ended. */
void monitor_end(struct monitor *m, int64_t end);

/* A mark of the markers file. Everything is read at once, as often as the budget allows, so that the figures of a phase
 * are its own. */
void monitor_mark(struct monitor *m, int64_t t, bool has_time, const char *name, size_t length, uint64_t end);

struct tree *monitor_tree(struct monitor *m);
const struct process_table *monitor_processes(const struct monitor *m);

/* Counts, intervals and ticks. */
void monitor_report(struct monitor *m, struct run *run);

#endif
