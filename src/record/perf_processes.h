/* The sampled processes as the kernel's records tell of them: threads with their names, code with its files, forks and
 * execs. Puts images and threads into the segment when their first sample comes.
 *
 * What lost records would have told is looked up in /proc, once, where the process still lives. */
#ifndef ASSAY_RECORD_PERF_PROCESSES_H
#define ASSAY_RECORD_PERF_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/perf_code.h"
#include "record/perf_files.h"
#include "record/perf_records.h"
#include "record/samples_writer.h"

#define PERF_NONE UINT32_MAX

struct perf_process {
	int pid, ppid;
	int64_t t;            /* of its fork or exec */
	bool waits;           /* for its first exec: it does not count yet */
	char *exe;            /* owned; NULL: not known yet */
	struct perf_codes code;
	uint64_t looked_up;   /* when /proc was read for it: records lost by then + 1; 0: never */
	size_t threads;       /* that live, as far as told */
	uint32_t image, anon, unknown; /* ids in the segment; PERF_NONE: not yet */
	uint64_t deliveries, weight, lost;
};

struct perf_thread {
	int tid;
	struct perf_process *process;
	uint32_t id; /* in the segment; PERF_NONE: not yet */
	char name[16];
};

struct perf_processes;

/* `ended` is called for each image that has one in the segment, when it ended. */
struct perf_processes *perf_processes_new(struct samples_writer *writer, struct perf_files *files,
					  void (*ended)(void *context, const struct perf_process *p, int64_t t),
					  void *context);
/* All that is left ends now. NULL accepted. */
void perf_processes_free(struct perf_processes *p, int64_t now);

/* Records of other processes come, too: only this one counts, from its next exec on, and its descendants. */
void perf_processes_only(struct perf_processes *p, int pid, int64_t t);
/* This one is a descendant, though nothing told of its fork. */
void perf_processes_adopt(struct perf_processes *p, int pid, int64_t t);
bool perf_processes_count(const struct perf_processes *p, int pid);

/* Takes note of any record but samples. */
void perf_processes_note(struct perf_processes *p, const struct perf_record *record);

/* The thread of a sample of a process that counts, with its image and itself in the segment. NULL when out of
 * memory. */
struct perf_thread *perf_processes_thread(struct perf_processes *p, int pid, int tid, int64_t t);

/* Records that found no room in a ring, up to now. */
uint64_t perf_processes_lost(const struct perf_processes *p);

/* What is executable at an address; NULL: nothing known. */
const struct perf_code *perf_process_code(struct perf_processes *p, struct perf_process *process, uint64_t address);

/* The module of that code in the segment (NULL: of what is not known). */
uint32_t perf_process_module(struct perf_processes *p, struct perf_process *process, const struct perf_code *code);

#endif
