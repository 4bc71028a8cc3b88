/* The CPU time of each process beside what was sampled of it, and which of them gave no samples, and why.
 *
 * Fed with the table of processes while they live. Knows rings only by what they counted. */
#ifndef ASSAY_RECORD_SAMPLED_PROCESSES_H
#define ASSAY_RECORD_SAMPLED_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/process.h"
#include "model/warnings.h"
#include "record/samples_writer.h"
#include "record/unsampled.h"
#include "wire/records.h"

struct image;

struct sampled_process {
	int pid; /* 0: empty slot */
	int64_t start_ticks;
	int64_t cpu_ns;       /* as last seen; -1: not known */
	bool has_children;    /* what is told of it when it is reaped holds theirs, too */
	bool has_ring;
	bool looked;          /* `reason` holds */
	int64_t sampled_ns;   /* of images that have ended, dropped ones included */
	int64_t live_ns;      /* of the image that runs now */
	int64_t looked_at_ns; /* what was not accounted for when it was looked at */
	bool exact;           /* cpu_ns is what the kernel told at its end */
	struct image *image;  /* that runs now, for the recorder's use; borrowed, NULL: none */
	const char *exe;      /* of its newest image; owned */
	char name[64];
	char reason[UNSAMPLED_REASON_MAX];
};

struct sampled_processes {
	struct sampled_process *items; /* a hash table */
	size_t count, room;            /* room: a power of two, or 0 */
	struct unsampled_needs needs;  /* borrowed */
	char full[UNSAMPLED_REASON_MAX]; /* the folder of rings had no room at some time; "": it always had */
};

void sampled_processes_init(struct sampled_processes *s, const struct unsampled_needs *needs);
void sampled_processes_release(struct sampled_processes *s);

/* The process of that pid and start; made where it is not there. NULL when out of memory. Invalid after the next
 * one was made. */
struct sampled_process *sampled_process_at(struct sampled_processes *s, int pid, int64_t start_ticks);

/* A new image of the process was found. */
void sampled_process_has_ring(struct sampled_process *p, const char *exe);

/* Brings CPU times up to date, and looks at those that use CPU time without being sampled. */
void sampled_processes_update(struct sampled_processes *s, const struct process_table *table);

/* The last figures of one that is about to leave the table. */
void sampled_processes_forgotten(struct sampled_processes *s, const struct process *p);

void sampled_processes_reaped(struct sampled_processes *s, const struct wire_exit *e);

/* Writes those that used CPU time and were not sampled, and sums them up by reason as warnings. `total_ns`: of the
 * whole run. */
void sampled_processes_report(const struct sampled_processes *s, int64_t total_ns, struct samples_writer *writer,
			      struct warnings *warnings);

#endif
