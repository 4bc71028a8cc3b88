/* The ring file of this process (wire/sampler.h): making it, its slots, and writing records into a slot's ring.
 *
 * The file is mapped in pieces, as slots are needed: nothing is reserved that is not on disk, since a program may lock
 * all its memory or live under a limit. Only ring_write runs in signal handlers as it is; it makes no system call. */
#ifndef ASSAY_PRELOAD_RING_H
#define ASSAY_PRELOAD_RING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/unwind.h"
#include "wire/sampler.h"

/* A slot, with the sampler's own memory for the thread that has it. */
struct slot {
	struct sampler_slot shared;
	_Atomic int64_t timer;        /* the kernel's number plus 1; 0: none */
	_Atomic uint32_t generation;  /* grows whenever the slot changes hands */
	uint32_t index;
	_Atomic uint32_t name_changed;
	_Atomic uint64_t name[SAMPLER_NAME_BYTES / 8];
	pthread_t thread;
	bool has_thread; /* made by pthread_create or the first one, so `thread` says who it is */
	bool raw;        /* nobody tells us when it ends */
	/* What a new thread is to run. */
	void *(*start)(void *);
	int (*start_int)(void *);
	void *argument;
	unsigned ending; /* rounds of key destructors seen */
	int64_t first_ns; /* of the thread's CPU time: its first tick */
	uint64_t weight_before; /* of the threads that had this slot before */
	/* Of the handler. */
	_Atomic uint32_t busy;
	_Atomic uint32_t missed; /* weight of ticks that came while it was busy */
	uint32_t last_count;
	uint64_t last[SAMPLER_FRAMES_MAX]; /* the stack of the last sample written, outermost first */
	uint64_t frames[SAMPLER_FRAMES_MAX];
};

_Static_assert(sizeof(struct slot) <= SAMPLER_RING_OFFSET, "the sampler's memory of a thread fits before its ring");

/* NULL where there is no file. Mapped only in the process that made it. */
extern struct sampler_header *ring_header;

/* Where the stack of each slot's thread lies; 0, 0: not known. Not in the file, so that a forked child still has it. */
extern struct unwind_range ring_stacks[SAMPLER_SLOTS_MAX];

/* Makes the file of this process in `folder`. Returns 0 or -errno; then nothing of it is left. */
int ring_open(const char *folder, uint32_t hz, int signal);

/* In a forked child: forgets the parent's file, which is not mapped here. */
void ring_forget(void);

/* A free slot for thread `tid` (0: not known yet), or NULL. */
struct slot *ring_take(int tid);
void ring_give(struct slot *s);

/* The slot of that number, or NULL. */
struct slot *ring_slot(uint32_t index);
uint32_t ring_slots(void);

/* Room for `size` bytes (a multiple of 8), or NULL. ring_commit makes it visible. */
struct sampler_record *ring_reserve(struct slot *s, uint32_t size, uint16_t type);
void ring_commit(struct slot *s, const struct sampler_record *record);

/* There is one writer of such a count: no need for a locked instruction. */
static inline void ring_count(_Atomic uint64_t *count, uint64_t more)
{
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + more, memory_order_relaxed);
}

#endif
