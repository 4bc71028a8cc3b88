#include "exec/outbox.h"

#include <errno.h>
#include <sys/socket.h>

#define KEPT_FREE 64 /* for what is not an end of a descendant */

bool outbox_waits(const struct outbox *o)
{
	return o->socket >= 0 && !o->held && o->count > 0;
}

void outbox_flush(struct outbox *o)
{
	while (outbox_waits(o)) {
		const struct message *m = &o->ring[(o->first) % OUTBOX_ROOM];
		ssize_t n = send(o->socket, m, sizeof *m, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM))
			return;
		/* Any other failure means that nobody listens; the main loop sees the end of the file. */
		o->first++;
		o->count--;
	}
	if (o->count == 0)
		o->first = 0;
}

void outbox_put(struct outbox *o, const struct message *m)
{
	bool optional = m->type == MESSAGE_EXITED && !m->exit.is_command;

	if (o->socket < 0)
		return;
	if (o->count + (optional ? KEPT_FREE : 0) < OUTBOX_ROOM) {
		o->ring[(o->first + o->count) % OUTBOX_ROOM] = *m;
		o->count++;
	}
	outbox_flush(o);
}
