/* Recordings of calls (wire/graph.h), whole or of killed programs: per process, the calls of all its threads added up.
 *
 * Files are read without trust: what is damaged is left out and named in `notes`. It knows no names of functions. */
#ifndef ASSAY_STORE_GRAPH_RECORDING_H
#define ASSAY_STORE_GRAPH_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/warnings.h"

struct calls_module {
	uint64_t start, end, offset;
	uint64_t device, inode, size; /* size 0: the file is no more, or there was none */
	int64_t mtime_ns;
	char *path; /* owned */
};

struct calls_sum {
	uint64_t caller, callee; /* addresses; caller 0: from outside */
	uint64_t calls, primitive;
	double self_ns, total_ns; /* whole nanoseconds; total of the primitive ones */
};

struct calls_process {
	int pid;
	struct calls_module *modules; /* in the order in which they were noted */
	struct calls_sum *sums;
	size_t module_count, sum_count;
	size_t threads; /* files: threads that ran at once, at the most */
	uint64_t dropped, beyond, lost; /* calls: without room, too deep, ended without a return */
	uint64_t open;  /* calls that were open when the recording ended */
	bool ended;     /* in good order; else it was killed, called _exit, or became another program */
};

struct calls_recording {
	struct calls_process *processes;
	size_t count;
};

void calls_recording_init(struct calls_recording *r);
void calls_recording_release(struct calls_recording *r);

/* All recordings in the folder, in the order of their names; none is no failure. *ret is initialised. */
int calls_recording_read(const char *folder, struct calls_recording *ret, struct warnings *notes, struct error *err);

/* Removes the recordings' files (and no others) from the folder. */
int calls_recording_remove(const char *folder, struct error *err);

#endif
