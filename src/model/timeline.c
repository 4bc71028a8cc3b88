#include "model/timeline.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"

#define SERIES_MAX 100000
#define KEEP_EVERY_NS NS_PER_S

struct timeline_last {
	double value;     /* as last offered */
	int64_t kept_at;  /* when a point was last kept */
	bool any;         /* a value was kept */
	bool force;       /* the next offer is kept whatever it is */
	bool queued;      /* stands in `pending`, at position `slot` */
	size_t slot;
};

void timeline_init(struct timeline *tl, struct timeline_sink sink)
{
	*tl = (struct timeline){.sink = sink};
}

void timeline_release(struct timeline *tl)
{
	free(tl->last);
	free(tl->pending);
	*tl = (struct timeline){0};
}

int timeline_define(struct timeline *tl, const struct series_desc *desc)
{
	uint32_t id = (uint32_t)tl->count;

	if (tl->count == tl->room) {
		size_t room = tl->room ? 2 * tl->room : 64;
		struct timeline_last *last = reallocarray(tl->last, room, sizeof *last);
		struct timeline_point *pending;

		if (!last)
			return -1;
		tl->last = last;
		pending = reallocarray(tl->pending, room, sizeof *pending);
		if (!pending)
			return -1;
		tl->pending = pending;
		tl->room = room;
	}
	if (tl->count >= SERIES_MAX)
		return -1;
	tl->last[tl->count++] = (struct timeline_last){.value = NAN};
	tl->sink.define(tl->sink.context, id, desc);
	return (int)id;
}

void timeline_put(struct timeline *tl, int id, int64_t t, double value)
{
	struct timeline_last *last;

	if (id < 0 || (size_t)id >= tl->count || isnan(value))
		return;
	last = &tl->last[id];
	tl->offered++;
	if (last->queued) {
		tl->pending[last->slot].value = value;
		last->value = value;
		return;
	}
	if (last->any && !last->force && value == last->value && t - last->kept_at < KEEP_EVERY_NS)
		return;
	last->slot = tl->pending_count;
	tl->pending[tl->pending_count++] = (struct timeline_point){.id = (uint32_t)id, .value = value};
	*last = (struct timeline_last){.value = value, .kept_at = t, .any = true, .queued = true, .slot = last->slot};
}

void timeline_flush(struct timeline *tl, int64_t t)
{
	if (tl->pending_count)
		tl->sink.points(tl->sink.context, t, tl->pending, tl->pending_count);
	for (size_t i = 0; i < tl->pending_count; i++)
		tl->last[tl->pending[i].id].queued = false;
	tl->kept += tl->pending_count;
	tl->pending_count = 0;
}

void timeline_keep_all(struct timeline *tl)
{
	for (size_t i = 0; i < tl->count; i++)
		tl->last[i].force = true;
}
