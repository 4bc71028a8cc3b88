/* Reading what libassay left in a folder: its processes, and their tables. From programs that ended well, were killed,
 * or still run. Nothing is believed. The calls of a thread are store/region_calls.h. */
#ifndef ASSAY_STORE_REGION_SEGMENTS_H
#define ASSAY_STORE_REGION_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/regions.h"

/* A process, without what may be large: its names and threads. */
struct region_log {
	char *folder, *name; /* "regions-PID-NONCE" */
	struct region_process process; /* its texts are zero-ended */
	char *host, *command;          /* "" unknown */
	bool ranked;
	struct region_rank rank; /* the last one; where `ranked` */
	struct region_offset *offsets;
	size_t offset_count;
	struct region_clock_pair *pairs;
	size_t pair_count;
	uint32_t *files; /* numbers of its threads' files, ascending */
	size_t file_count;
	bool closed;     /* its table was ended in good order */
	uint64_t lost;   /* records of its table that found no room */
	char *damage;    /* why not all of its table could be read, a sentence without its full stop; NULL: all */
};

/* All processes of some folders, by start. */
struct region_job {
	struct region_log *logs;
	size_t count;
	char **notes; /* files that could not be read, sentences */
	size_t note_count;
	size_t unnoted; /* more such files: the first ones say enough */
};

void region_job_init(struct region_job *j);
void region_job_release(struct region_job *j);

/* Adds the processes that a folder holds: a folder without recordings none. Fails where it cannot be read. */
int region_job_add_folder(struct region_job *j, const char *folder, struct error *err);

/* After the last folder: puts the processes in order, each once (the same folder may have come by another path). */
void region_job_finish(struct region_job *j);

int region_job_note(struct region_job *j, struct error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

struct region_log_name {
	char *name, *file, *tags; /* valid UTF-8; name NULL: no such id */
	uint32_t line;
};

struct region_log_thread {
	uint32_t index;
	int32_t tid;
	char *name;
	int64_t start, end, cpu; /* ns of its CLOCK_MONOTONIC; -1: not known */
};

struct region_log_fact {
	char *key, *value;
};

/* The rest of a process' table. */
struct region_details {
	struct region_log_name *names; /* by id */
	size_t name_count;             /* the largest id and one */
	struct region_log_thread *threads; /* by index */
	size_t thread_count;
	struct region_log_fact *facts;
	size_t fact_count;
	uint32_t examples[REGION_TROUBLES]; /* id of a region that each kind of wrong use happened to; 0: none */
};

void region_details_init(struct region_details *d);
void region_details_release(struct region_details *d);

/* Reads the table again. What stands behind a damaged place is missing, which l->damage says already. */
int region_details_read(const struct region_log *l, struct region_details *ret, struct error *err);

/* NULL: no such thread. */
const struct region_log_thread *region_details_thread(const struct region_details *d, uint32_t index);

/* "FOLDER/regions-PID-NONCE.table"; owned by the caller, NULL when out of memory. */
char *region_log_table_path(const struct region_log *l);
char *region_log_file_path(const struct region_log *l, uint32_t number);

#endif
