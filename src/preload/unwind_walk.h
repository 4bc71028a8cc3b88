/* The state of one walk, shared by the files of the unwinder: stepping (unwind.c), finding out how to step from an
 * address (unwind_learn.c), and what is left where nothing says how (unwind_guess.c). On the stack of a signal handler:
 * small. */
#ifndef ASSAY_PRELOAD_UNWIND_WALK_H
#define ASSAY_PRELOAD_UNWIND_WALK_H

#include "cfi/frame.h"
#include "preload/unwind.h"
#include "preload/unwind_cache.h"
#include "preload/unwind_memory.h"
#include "preload/unwind_module.h"

/* What a call preserves: rbx, rbp, rsp, r12 .. r15, and the return address as rip. */
#define UNWIND_KEPT_VALID (1u << 3 | 1u << 6 | 1u << 7 | 15u << 12 | 1u << 16)
#define UNWIND_ANNOUNCED 128u
#define UNWIND_LOWEST ((uintptr_t)65536)         /* no code lies below: the kernel maps nothing there */
#define UNWIND_HIGHEST ((uintptr_t)1 << 47)

/* What walks remember; mapped once. */
struct unwind_remembered {
	struct unwind_cache_slot slots[UNWIND_CACHE_SLOTS];
	_Atomic uint64_t announced[UNWIND_ANNOUNCED]; /* keys of modules that `met` was called for */
};

struct unwind_walk {
	struct cfi_registers registers; /* of the frame under consideration */
	struct unwind_memory memory;
	const struct unwind_options *options;
	struct unwind_remembered *remembered; /* NULL: none */
	uintptr_t at;       /* the address to look that frame up by */
	size_t doubtful;    /* frames before the first that a weak guess found; 0: there is none */
	uint32_t generation;
	unsigned searches;
	unsigned result;
	bool exact;         /* `at` is the next instruction, not the end of a call: the frame was interrupted */
	bool may_learn;     /* unwind tables can be read: no module is being unloaded */
};

/* How to step from the code at `at` to its caller; remembered for the next time. Announces its module. */
uint64_t unwind_learn(struct unwind_walk *w, uintptr_t at, bool exact);

static inline struct unwind_cache_slot *unwind_walk_slot(const struct unwind_walk *w, uintptr_t at)
{
	return unwind_cache_slot(w->remembered->slots, unwind_cache_key(w->generation, at));
}

static inline uint64_t unwind_step_from(struct unwind_walk *w, uintptr_t at, bool exact)
{
	uint64_t step;

	if (w->remembered && at < UNWIND_HIGHEST &&
	    unwind_cache_get(unwind_walk_slot(w, at), unwind_cache_key(w->generation, at), &step))
		return step;
	return unwind_learn(w, at, exact);
}

/* What is left of unwind_can_return_to where `address` is not simply behind a call. */
bool unwind_can_return_oddly_to(struct unwind_walk *w, uint64_t step, uintptr_t cfa, uintptr_t address,
				uint64_t *ret_next);

/* Whether `address` can be where the frame reached by `step` with its CFA at `cfa` returns to; *ret_next: the step from
 * there. */
static inline bool unwind_can_return_to(struct unwind_walk *w, uint64_t step, uintptr_t cfa, uintptr_t address,
					uint64_t *ret_next)
{
	if (cfa > w->registers.value[CFI_RSP] && address) {
		*ret_next = unwind_step_from(w, address - 1, false);
		if (*ret_next & STEP_BEHIND_CALL)
			return true;
	}
	return unwind_can_return_oddly_to(w, step, cfa, address, ret_next);
}

/* Moves to the caller, whose stack pointer is `cfa`. */
static inline void unwind_move(struct unwind_walk *w, uintptr_t cfa, uintptr_t address, uint64_t next)
{
	w->registers.value[CFI_RSP] = cfa;
	w->registers.value[CFI_RIP] = address;
	w->registers.valid &= UNWIND_KEPT_VALID;
	w->exact = unwind_step_kind(next) == STEP_SIGNAL;
	w->at = w->exact ? address : address - 1;
}

/* Steps by the four plain kinds of step. Returns false, with nothing changed, where that leads nowhere sensible. */
bool unwind_step_plainly(struct unwind_walk *w, uint64_t step, uint64_t *ret_next);

/* Steps without tables that can be believed. `frames`: how many the walk has. */
bool unwind_guess(struct unwind_walk *w, uint64_t step, size_t frames, uint64_t *ret_next);

#endif
