#include "report/region_lanes.h"

#include <stdlib.h>

void region_lanes_init(struct region_lanes *l)
{
	*l = (struct region_lanes){0};
}

void region_lanes_release(struct region_lanes *l)
{
	free(l->items);
	free(l->slots);
	region_lanes_init(l);
}

/* The slot of a lane: its own, or the empty one where it belongs. */
static size_t slot_of(const struct region_lanes *l, uint32_t rank, int32_t thread)
{
	uint64_t h = ((uint64_t)rank << 32 | (uint32_t)thread) * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(h >> 32) & (l->slot_count - 1);

	while (l->slots[at] && (l->items[l->slots[at] - 1].rank != rank || l->items[l->slots[at] - 1].thread != thread))
		at = (at + 1) & (l->slot_count - 1);
	return at;
}

static int grow(struct region_lanes *l, struct error *err)
{
	size_t room = l->room ? 2 * l->room : 64;
	struct region_lane *items = reallocarray(l->items, room, sizeof *items);

	if (!items)
		return error_set(err, "out of memory for %zu threads", room);
	l->items = items;
	free(l->slots);
	l->slots = calloc(4 * room, sizeof *l->slots);
	if (!l->slots)
		return error_set(err, "out of memory for %zu threads", room);
	l->slot_count = 4 * room;
	l->room = room;
	for (size_t i = 0; i < l->count; i++)
		l->slots[slot_of(l, items[i].rank, items[i].thread)] = i + 1;
	return 0;
}

int region_lanes_find(struct region_lanes *l, uint32_t rank, int32_t thread, size_t most, size_t *ret,
		      struct error *err)
{
	size_t slot;

	if (l->count == l->room && grow(l, err) < 0)
		return -1;
	slot = slot_of(l, rank, thread);
	*ret = REGION_LANE_NONE;
	if (!l->slots[slot] && l->count >= most)
		return 0;
	if (!l->slots[slot]) {
		l->items[l->count] = (struct region_lane){rank, thread};
		l->slots[slot] = ++l->count;
	}
	*ret = l->slots[slot] - 1;
	return 0;
}
