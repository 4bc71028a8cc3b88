/* Reading a mapped file that somebody else may cut short at any moment: the signal that this would be becomes zeros and
 * a mark. Per thread; one file at a time. */
#ifndef ASSAY_RECORD_RING_GUARD_H
#define ASSAY_RECORD_RING_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Until ring_guard_end, pages of [start, start + length) that the file has no longer read as zeros: the mapping is
 * replaced there by private memory. The start must be at a page. */
void ring_guard_begin(void *start, size_t length);

/* True where that happened: nothing of what was read is to be relied on. */
bool ring_guard_end(void);

#endif
