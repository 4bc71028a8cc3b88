/* Which call lies in which, lane by lane, from calls in the order of time. */
#include "report/plot_calls.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define LANES_MAX 4096   /* beyond them threads are not told apart: a damaged file may name billions */
#define OPEN_MAX 16384   /* deeper calls are not waited for */
#define SEARCH_MAX 512   /* open calls that are looked at for the one around: others come from damaged files */
#define SWEEP_LEAST 16
#define UNKNOWN_NODE UINT32_MAX

void nest_init(struct nest *n)
{
	*n = (struct nest){0};
}

void nest_release(struct nest *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->lanes[i].open);
	free(n->lanes);
	free(n->slots);
	nest_init(n);
}

/* The slot of a lane: its own, or the empty one where it belongs. Slots hold an index + 1. */
static size_t slot_of(const struct nest *n, uint32_t rank, int64_t thread)
{
	uint64_t h = ((uint64_t)rank << 32 ^ (uint64_t)thread) * 0x9e3779b97f4a7c15u;
	size_t at = (size_t)(h >> 32) & (n->slot_count - 1);

	while (n->slots[at] && (n->lanes[n->slots[at] - 1].rank != rank || n->lanes[n->slots[at] - 1].thread != thread))
		at = (at + 1) & (n->slot_count - 1);
	return at;
}

static int grow(struct nest *n, struct error *err)
{
	size_t room = n->room ? 2 * n->room : 64;
	struct nest_lane *lanes = reallocarray(n->lanes, room, sizeof *lanes);

	if (!lanes)
		return error_set(err, "out of memory for %zu lanes", room);
	n->lanes = lanes;
	free(n->slots);
	n->slots = calloc(4 * room, sizeof *n->slots);
	if (!n->slots)
		return error_set(err, "out of memory for %zu lanes", room);
	n->slot_count = 4 * room;
	n->room = room;
	for (size_t i = 0; i < n->count; i++)
		n->slots[slot_of(n, n->lanes[i].rank, n->lanes[i].thread)] = i + 1;
	return 0;
}

static int find_lane(struct nest *n, uint32_t rank, int64_t thread, size_t *ret, struct error *err)
{
	size_t slot;

	if (n->count == n->room && grow(n, err) < 0)
		return -1;
	slot = slot_of(n, rank, thread);
	if (!n->slots[slot] && n->count >= LANES_MAX)
		slot = slot_of(n, rank, -1);
	if (!n->slots[slot]) {
		n->lanes[n->count] = (struct nest_lane){.rank = rank, .thread = n->count < LANES_MAX ? thread : -1};
		n->slots[slot] = ++n->count;
	}
	*ret = n->slots[slot] - 1;
	return 0;
}

static int make_room(struct nest_lane *lane, struct error *err)
{
	size_t room = lane->room ? 2 * lane->room : 16;
	struct nest_entry *open;

	if (lane->open_count < lane->room)
		return 0;
	open = reallocarray(lane->open, room, sizeof *open);
	if (!open)
		return error_set(err, "out of memory for %zu nested calls", room);
	lane->open = open;
	lane->room = room;
	return 0;
}

/* A call of no length is kept for the calls of no length in it. */
static bool has_ended(const struct nest_entry *e, const struct plot_call *c)
{
	return e->end < c->start || (e->end == c->start && (e->call < 0 || e->call != c->parent));
}

/* Forgets what has ended. Where calls overlap without lying in each other, some have ended below others that have not:
 * they are swept out when they may be half of all. */
static void close_ended(struct nest_lane *lane, const struct plot_call *c)
{
	size_t kept = 0;

	while (lane->open_count && has_ended(&lane->open[lane->open_count - 1], c))
		lane->open_count--;
	if (lane->open_count < lane->sweep_at || lane->open_count < SWEEP_LEAST)
		return;
	for (size_t i = 0; i < lane->open_count; i++)
		if (!has_ended(&lane->open[i], c))
			lane->open[kept++] = lane->open[i];
	lane->open_count = kept;
	lane->sweep_at = 2 * kept;
}

static const struct nest_entry *around(const struct nest_lane *lane, const struct plot_call *c, bool by_number)
{
	size_t least = lane->open_count > SEARCH_MAX ? lane->open_count - SEARCH_MAX : 0;

	if (by_number && c->parent < 0)
		return NULL;
	for (size_t i = lane->open_count; by_number && i > least; i--)
		if (lane->open[i - 1].call == c->parent)
			return &lane->open[i - 1];
	for (size_t i = lane->open_count; i > least; i--)
		if (lane->open[i - 1].end >= c->end)
			return &lane->open[i - 1];
	return NULL;
}

int nest_enter(struct nest *n, uint32_t rank, const struct plot_call *c, bool by_number, size_t *ret_lane,
	       struct nest_entry **ret_entry, uint32_t *ret_parent, struct error *err)
{
	const struct nest_entry *parent;
	struct nest_lane *lane;

	if (find_lane(n, rank, c->thread, ret_lane, err) < 0)
		return -1;
	lane = &n->lanes[*ret_lane];
	close_ended(lane, c);
	if (lane->open_count >= OPEN_MAX)
		lane->open_count--;
	if (make_room(lane, err) < 0)
		return -1;
	parent = around(lane, c, by_number);
	*ret_parent = parent ? parent->node : UNKNOWN_NODE;
	n->overlaps += lane->open_count && lane->open[lane->open_count - 1].end < c->end;
	lane->open[lane->open_count] = (struct nest_entry){.end = c->end, .call = c->call};
	*ret_entry = &lane->open[lane->open_count++];
	return 0;
}
