/* How much of a process's memory was touched lately: its pages' accessed bits are cleared through
 * /proc/PID/clear_refs and read again through smaps_rollup a moment later.
 *
 * A page counts whole however little of it was read, so what comes out compares with a program that reads all of each
 * page (the bandwidth probe), and never stands alone.
 *
 * What it costs the process, measured under a hypervisor in pages of 4 KiB: clearing holds its memory map for some
 * 13 ms per GiB, so that page faults wait; and each page that it then touches takes 0.4 us more, once, because the
 * processor sets the bit anew. A reader of 40 GB/s (0.1 us a page) is therefore seen at no more than 10 GB/s. */
#ifndef ASSAY_BASE_TOUCH_H
#define ASSAY_BASE_TOUCH_H

#include <stdint.h>

#include "base/error.h"

struct touch {
	int64_t cleared_at, seen_at; /* ns: the middles of both walks; what lies between is the time looked at */
	double touched, resident;    /* bytes */
	double huge;		     /* of resident: in huge pages, of which one bit tells all */
	int64_t cost_ns;	     /* CPU time that both walks took */
};

/* Clears the bits: *t gets cleared_at and the cost so far. 0, or a negative errno value besides *err: -ESRCH where the
 * process is gone, -EACCES where it is another user's. */
int touch_clear(int pid, struct touch *t, struct error *err);

/* Reads them: the rest of *t. Fails as above. The rate is touched / (seen_at - cleared_at), and only "at least" where
 * touched is near resident. */
int touch_read(int pid, struct touch *t, struct error *err);

#endif
