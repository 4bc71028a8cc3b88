/* How much of a file the page cache holds, without touching a page of it.
 *
 * cachestat(2) (Linux 6.5) tells, and what was evicted; before that, and for file systems that lie over another one,
 * mincore(2) over a mapping. Where neither can be believed the answer is "unknown", never 0 or all. */
#ifndef ASSAY_BASE_PAGECACHE_H
#define ASSAY_BASE_PAGECACHE_H

#include <stdint.h>

#include "base/error.h"

struct pagecache {
	uint64_t size;	/* of the file, bytes */
	double cached;	/* bytes of it that the page cache holds; NaN: unknown */
	double evicted; /* bytes that it held and dropped, as far as the kernel still knows; NaN without cachestat */
	double recently_evicted; /* those of them that would count as refaults if they were read now */
	const char *how;	 /* "cachestat" or "mincore"; NULL: unknown */
};

/* Fails where the file cannot be opened for reading or is not a regular one. */
int pagecache_look(const char *path, struct pagecache *ret, struct error *err);

/* The same by mincore alone, whatever the kernel offers. */
int pagecache_look_by_mincore(const char *path, struct pagecache *ret, struct error *err);

#endif
