/* Resident memory of a process, from /proc/PID/statm by a kept descriptor: a microsecond. */
#ifndef ASSAY_SOURCE_RESIDENT_H
#define ASSAY_SOURCE_RESIDENT_H

#include "source/source.h"

enum resident {
	RESIDENT_READ,
	RESIDENT_UNREAD, /* not now; what was read before stands */
	RESIDENT_NONE,   /* it has no memory: a zombie, about to end, or only its first thread has ended */
	RESIDENT_GONE,   /* and marked dead */
};

/* Brings p->rss, p->anon and their peaks up to date where it is RESIDENT_READ. `page` is the size of one. */
enum resident resident_read(struct source_context *c, struct process *p, int64_t page, int64_t now);

/* Where the first thread has ended and others go on, their memory is seen only through one of them: from the next
 * reading on. Where all are about to end none has it, so only the first few are asked. */
void resident_through_a_thread(struct source_context *c, struct process *p);

#endif
