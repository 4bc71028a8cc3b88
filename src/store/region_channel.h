/* The two ends of the socket between the program and the child behind the fence: numbers, texts and bytes. The
 * program's end believes nothing: it waits only while the child does something, and takes no more than it allows. */
#ifndef ASSAY_STORE_REGION_CHANNEL_H
#define ASSAY_STORE_REGION_CHANNEL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

enum channel_end { CHANNEL_GOOD, CHANNEL_CLOSED, CHANNEL_STALLED, CHANNEL_NONSENSE };

struct channel {
	int fd;
	pid_t child;        /* the program's end: whose CPU time tells whether it does something; else 0 */
	uint64_t allowance; /* bytes that may still come */
	struct buf out, in;
	size_t taken; /* bytes of `in` */
	enum channel_end end; /* once it is not good, nothing comes or goes */
};

void channel_init(struct channel *c, int fd, pid_t child, uint64_t allowance);
void channel_release(struct channel *c); /* not the descriptor */

/* Gathered; sent where it has become much, and by channel_flush. */
void channel_put(struct channel *c, const void *bytes, size_t length);
void channel_put_number(struct channel *c, uint64_t number);
void channel_put_text(struct channel *c, const char *text); /* NULL as "" */
int channel_flush(struct channel *c);

/* 0, or -1 where c->end says why. */
int channel_take(struct channel *c, void *bytes, size_t length);
int channel_take_number(struct channel *c, uint64_t limit, uint64_t *ret);

/* Valid UTF-8, owned; NULL where c->end says why. */
char *channel_take_text(struct channel *c);

/* Returns -1: what came makes no sense. */
int channel_nonsense(struct channel *c);

#endif
