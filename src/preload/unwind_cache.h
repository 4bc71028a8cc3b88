/* What walks remember of one another: for a code address, how to step to its caller, in eight bytes.
 *
 * Any number of threads and handlers read and write at once, without a lock: a slot that two writers tore apart does
 * not match its address and is as good as empty. A new generation makes everything older unfindable. */
#ifndef ASSAY_PRELOAD_UNWIND_CACHE_H
#define ASSAY_PRELOAD_UNWIND_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How to find the CFA, the three low bits of a step. */
enum unwind_step_kind {
	STEP_RSP,      /* stack pointer + offset */
	STEP_RBP,      /* frame pointer + offset */
	STEP_RBX,
	STEP_AT_RBP,   /* the word at frame pointer + offset: realigned frames */
	STEP_ROOT,     /* nowhere: nobody called this */
	STEP_SIGNAL,   /* from the context that the kernel left on the stack */
	STEP_TABLES,   /* too unusual for a step: by the tables, each time */
	STEP_NOTHING,  /* no tables say */
};

/* Bits of a step beside its kind. Six fields of six bits say where rbx, rbp, r12 .. r15 were saved, in words below the
 * CFA (0: nowhere, still in the register); the top 21 bits are the CFA's offset in words, signed. */
#define STEP_BEHIND_CALL ((uint64_t)1 << 3) /* the address is the end of a call, less 1 */
#define STEP_FROM_RBP ((uint64_t)1 << 4)    /* registers were saved in words below the frame pointer, not the CFA */
#define STEP_GUESSED ((uint64_t)1 << 5)     /* read from the code: its unwind data is missing or wrong */
#define STEP_SAVES_SHIFT 6u
#define STEP_SAVES_BITS 6u
#define STEP_SAVES_MASK (((uint64_t)1 << 36) - 1)
#define STEP_BARE ((uint64_t)1 << 42)       /* the tables say so little that the code may be unlike them */
#define STEP_OFFSET_SHIFT 43u
#define STEP_OFFSET_LIMIT ((int64_t)1 << 20) /* in words */
#define STEP_FOREIGN ((uint64_t)1 << STEP_OFFSET_SHIFT) /* with STEP_NOTHING: in no module; never remembered */
#define STEP_BY_HAND ((uint64_t)2 << STEP_OFFSET_SHIFT) /* with STEP_ROOT: a function's very start, less 1: somebody put
							 * it there as a place to return to */

static inline enum unwind_step_kind unwind_step_kind(uint64_t step)
{
	return (enum unwind_step_kind)(step & 7);
}

/* In bytes. */
static inline int64_t unwind_step_offset(uint64_t step)
{
	return ((int64_t)step >> STEP_OFFSET_SHIFT) * 8;
}

#define UNWIND_CACHE_SLOTS 32768u

struct unwind_cache_slot {
	_Atomic uint64_t check, step;
};

/* A generation and an address as one key: addresses have 47 bits. */
static inline uint64_t unwind_cache_key(uint32_t generation, uintptr_t at)
{
	return (uint64_t)at ^ (uint64_t)generation << 47;
}

static inline uint64_t unwind_cache_mix(uint64_t step)
{
	step *= 0x9e3779b97f4a7c15u;
	return step ^ step >> 29;
}

static inline struct unwind_cache_slot *unwind_cache_slot(struct unwind_cache_slot *slots, uint64_t key)
{
	return &slots[(key * 0x9e3779b97f4a7c15u) >> 49];
}

static inline bool unwind_cache_get(struct unwind_cache_slot *slot, uint64_t key, uint64_t *ret_step)
{
	uint64_t step = atomic_load_explicit(&slot->step, memory_order_relaxed);

	if ((atomic_load_explicit(&slot->check, memory_order_acquire) ^ unwind_cache_mix(step)) != key)
		return false;
	*ret_step = step;
	return true;
}

static inline void unwind_cache_put(struct unwind_cache_slot *slot, uint64_t key, uint64_t step)
{
	atomic_store_explicit(&slot->step, step, memory_order_relaxed);
	atomic_store_explicit(&slot->check, key ^ unwind_cache_mix(step), memory_order_release);
}

#endif
