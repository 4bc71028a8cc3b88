/* Proportional memory (PSS) of the tree: each shared page counted once, in shares, from /proc/PID/smaps_rollup.
 *
 * The kernel walks every page of a process for it and holds the map of its memory meanwhile, so it is read at the start
 * and at new maxima only, not before 1,000 times its last cost have passed, and not at all where it would take long. */
#ifndef ASSAY_SOURCE_PSS_H
#define ASSAY_SOURCE_PSS_H

#include <stdint.h>

#include "source/source.h"

#define PSS_PROCESSES 32 /* of a larger tree, the sum is over so many of the largest (by RSS) */

struct pss {
	int64_t rss_at_last, next;
	double ns_per_byte; /* 0: not measured yet */
	/* Where it was asked for, it may cost more: how long a reading may take, and how often its cost must have
	 * passed before the next. 0: as said above, 50 ms. */
	int64_t longest_ns, factor;
};

/* The sum in bytes if this is a moment to read it, else NaN. `rss` is the tree's RSS now. */
double pss_read(struct pss *s, struct source_context *c, int64_t rss, int64_t now);

/* The same at a moment that somebody else chose. */
double pss_read_now(struct pss *s, struct source_context *c, int64_t rss, int64_t now);

#endif
