/* Messages of the helper that assay has not taken yet. Sending never blocks: assay may be slow, stopped or dead. */
#ifndef ASSAY_EXEC_OUTBOX_H
#define ASSAY_EXEC_OUTBOX_H

#include <stdbool.h>

#include "exec/protocol.h"

#define OUTBOX_ROOM 4096

struct outbox {
	int socket; /* -1: assay is gone, everything is dropped */
	bool held;  /* nothing is sent for now */
	unsigned first, count;
	struct message *ring; /* OUTBOX_ROOM of them, touched only as far as messages ever had to wait */
};

/* Puts it last in the line and sends what can be sent. When the line is nearly full, ends of descendants are left out
 * (they are in the segment), so that there is always room for what happens once. */
void outbox_put(struct outbox *o, const struct message *m);

/* Sends what can be sent; call when the socket can be written and outbox_waits. */
void outbox_flush(struct outbox *o);
bool outbox_waits(const struct outbox *o);

#endif
