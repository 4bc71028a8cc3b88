/* Reading the memory of the interrupted thread without ever faulting.
 *
 * What lies in the ranges that are known to be readable is read at once; for the rest the kernel is asked, page by
 * page, where system calls are allowed. Knows nothing of frames. */
#ifndef ASSAY_PRELOAD_UNWIND_MEMORY_H
#define ASSAY_PRELOAD_UNWIND_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "preload/unwind.h"

struct unwind_memory {
	struct unwind_range known;     /* as the caller of the walk has it */
	struct unwind_range alternate; /* the signal stack that is in use, as the kernel has it */
	struct unwind_range probed;    /* pages that the kernel found readable in this walk */
	bool may_probe;
	bool refused; /* something was wanted that may not be read */
};

void unwind_memory_init(struct unwind_memory *m, const struct unwind_options *options);

/* [low, high) is readable from now on, too: the alternate stack of which `low` is in use. */
void unwind_memory_alternate(struct unwind_memory *m, uintptr_t low, uintptr_t high);

/* For what is in no range so far. Sets m->refused where it may not be read. */
bool unwind_memory_probe(struct unwind_memory *m, uintptr_t at);

static inline bool unwind_range_holds(const struct unwind_range *range, uintptr_t at)
{
	return at >= range->low && at <= range->high - 8;
}

/* Eight bytes that can be read. The stacks of others have what AddressSanitizer poisons in them: no checks here. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static inline uint64_t unwind_load(uintptr_t at)
{
	uint64_t value;

	memcpy(&value, (const void *)at, sizeof value);
	return value;
}

static inline bool unwind_read(struct unwind_memory *m, uintptr_t at, uint64_t *ret_value)
{
	if (!unwind_range_holds(&m->known, at) && !unwind_range_holds(&m->alternate, at) &&
	    !unwind_range_holds(&m->probed, at) && !unwind_memory_probe(m, at))
		return false;
	*ret_value = unwind_load(at);
	return true;
}

#endif
