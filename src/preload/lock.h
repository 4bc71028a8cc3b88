/* A lock for what is rare and outside the ticks: growing the file, moving to another signal.
 *
 * Who holds it has all signals blocked, so that no handler of this thread can want it too. A forked child resets it. */
#ifndef ASSAY_PRELOAD_LOCK_H
#define ASSAY_PRELOAD_LOCK_H

#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/kernel.h"

struct lock {
	_Atomic uint32_t state; /* 0: free, 1: held, 2: held and awaited */
};

/* Returns the thread's mask of before, for lock_drop. */
static inline uint64_t lock_take(struct lock *l)
{
	uint64_t all = ~UINT64_C(0), mask = 0;
	uint32_t seen = 0;

	kernel_mask(SIG_SETMASK, &all, &mask);
	if (!atomic_compare_exchange_strong(&l->state, &seen, 1))
		while (atomic_exchange(&l->state, 2) != 0)
			KERNEL_4(SYS_futex, &l->state, FUTEX_WAIT_PRIVATE, 2, NULL);
	return mask;
}

static inline void lock_drop(struct lock *l, uint64_t mask)
{
	if (atomic_exchange(&l->state, 0) == 2)
		KERNEL_3(SYS_futex, &l->state, FUTEX_WAKE_PRIVATE, 1);
	kernel_mask(SIG_SETMASK, &mask, NULL);
}

#endif
