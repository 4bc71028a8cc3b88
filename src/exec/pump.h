/* The pumps: a thread for each stream reads what the target wrote, passes it on to the caller at once, and keeps it.
 *
 * A stream whose caller does not read never holds up another one. Nothing that goes wrong here ends the helper: what
 * cannot be passed on or kept is counted and told. */
#ifndef ASSAY_EXEC_PUMP_H
#define ASSAY_EXEC_PUMP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "exec/stream.h"
#include "wire/segment.h"

#define TROUBLES 16 /* more than can come: five for each stream, one for the segment, two for terminals */

/* The output segment and what is to be told to assay: shared by the pumps and the helper's main thread. */
struct recording {
	pthread_mutex_t lock;
	struct segment_writer segment;
	bool lost; /* the segment has stopped, and that was told */
	unsigned appended;
	char troubles[TROUBLES][256];
	int trouble_count, told; /* the main thread has passed on the first `told` of them */
	int wake;                /* eventfd of the main thread */
	atomic_bool draining;    /* the main thread wants to know of every step */
};

/* Makes the segment; path may be NULL. Where it cannot be made that is a trouble, and the rest goes on. */
void recording_open(struct recording *r, const char *path, int wake);

void recording_append(struct recording *r, uint16_t type, const void *payload, size_t length);

/* A sentence for assay, which is also noted in the segment for a later recovery. */
void recording_trouble(struct recording *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Wakes the main thread. */
void recording_wake(struct recording *r);

/* Opens the stream's log and starts its thread. Where no thread can be had, returns -1. */
int pump_start(struct stream *s, struct recording *r, struct error *err);

/* Whether what the command wrote has been passed on and kept, after pump_mark_goal at its end. */
bool pump_is_drained(struct stream *s);
void pump_mark_goal(struct stream *s);

#endif
