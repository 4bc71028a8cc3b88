/* Ring files (wire/sampler.h) from the reader's side: finding them in their folder, checking, mapping and emptying.
 *
 * Nothing in such a file is believed: the process that writes it may be broken, hostile, or gone in the midst of a
 * record, and may cut the file short while it is read. Each record is copied before it is looked at. Knows neither
 * processes nor segments. */
#ifndef ASSAY_RECORD_RINGS_H
#define ASSAY_RECORD_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/sampler.h"

/* A mapped module as the sampled process announced it. */
struct ring_module {
	int64_t t;
	uint64_t start, end, bias;
	char *path; /* owned; "" for the program itself */
	uint8_t build_id[32];
	size_t build_id_length;
	uint32_t id; /* for the reader's use; UINT32_MAX at first */
};

struct ring {
	char *path; /* owned, like all pointers but `header` */
	struct sampler_header *header; /* the mapping */
	size_t bytes;        /* of the mapping */
	uint64_t file_bytes;
	uint32_t unread_slots; /* for which there was no room in this process's memory */
	/* As they were when it was opened; the file's own are not looked at again. */
	int pid, ppid;
	uint32_t hz, slot_max;
	uint64_t start_ticks;
	int64_t mono_ns;
	char *exe;

	uint64_t device, inode;
	uint64_t slot_bytes, slots_at, modules_at, modules_room;
	struct ring_module *modules; /* in the order of t */
	size_t module_count, module_room;
	uint64_t modules_read; /* bytes of the area */
	uint64_t *tails;       /* per slot: what has been read, and is told to the writer by ring_release */
	size_t tail_count;
	bool broken; /* it is not read any more */
};

/* Opens, checks and maps a ring file. What is none, or is cut, is refused with a sentence. */
int ring_open(const char *path, struct ring **ret, struct error *err);
void ring_close(struct ring *r); /* NULL accepted */

const char *ring_name(const struct ring *r); /* the last part of its path */

/* Removes the file, if it still is this one. */
void ring_unlink(const struct ring *r);

/* One sample: copied, its sizes checked. */
struct ring_sample {
	int64_t t;
	int tid;
	uint32_t weight, flags, kept, count;
	const uint64_t *frames; /* `count`, innermost first */
};

/* What is found, in the order of each slot. */
struct ring_sink {
	void *context;
	void (*thread)(void *context, uint32_t slot, int tid, const char *name);
	void (*sample)(void *context, uint32_t slot, const struct ring_sample *s);
	/* A part of the slot's ring made no sense and was passed over: what is kept of the sample before is void. */
	void (*lost)(void *context, uint32_t slot);
};

/* Empties those slots that hold at least `least` bytes, and brings `modules` up to date before a sample is told.
 * Returns whether there was anything. */
bool ring_drain(struct ring *r, uint64_t least, const struct ring_sink *sink);

/* Gives the writer the room of what was drained. Only then may it be overwritten, so call it when what was drained is
 * safe. */
void ring_release(struct ring *r);

/* The module that the address was in at that time, NULL where none is known. */
struct ring_module *ring_module_at(const struct ring *r, int64_t t, uint64_t address);

/* The counts of all slots together. */
struct ring_counts {
	uint64_t deliveries, weight, dropped, dropped_weight, handler_ns, ended_ns, unsampled_ns;
	uint32_t trouble, unarmed, roomless;
	int unarmed_errno;
	bool closed;
};

void ring_count(struct ring *r, struct ring_counts *ret);

/* Calls `each` with the name of every ring file in the open folder, until it returns false. Returns 0 or -errno. */
int rings_each(int folder, bool (*each)(void *context, const char *name), void *context);

bool ring_is_name(const char *name);

#endif
