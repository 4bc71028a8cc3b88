#include "report/region_nest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LANES_MAX 4096 /* beyond them threads are not told apart: a damaged file may name billions */
#define OPEN_MAX 16384 /* deeper calls are not waited for */
#define SEARCH_MAX 512 /* open calls that are looked at for the one around: others come from damaged files */
#define SWEEP_LEAST 16
#define UNKNOWN_NODE UINT32_MAX

void nest_init(struct nest *n)
{
	*n = (struct nest){0};
	region_lanes_init(&n->threads);
}

void nest_release(struct nest *n)
{
	for (size_t i = 0; i < n->room; i++)
		free(n->lanes[i].open);
	free(n->lanes);
	region_lanes_release(&n->threads);
	nest_init(n);
}

static int find_lane(struct nest *n, uint32_t rank, int32_t thread, size_t *ret, struct error *err)
{
	struct nest_lane *lanes;

	if (region_lanes_find(&n->threads, rank, thread, LANES_MAX, ret, err) < 0)
		return -1;
	if (*ret == REGION_LANE_NONE && region_lanes_find(&n->threads, rank, -1, REGION_LANE_NONE, ret, err) < 0)
		return -1;
	if (n->room == n->threads.room)
		return 0;
	lanes = reallocarray(n->lanes, n->threads.room, sizeof *lanes);
	if (!lanes)
		return error_set(err, "out of memory for %zu threads", n->threads.room);
	memset(lanes + n->room, 0, (n->threads.room - n->room) * sizeof *lanes);
	n->lanes = lanes;
	n->room = n->threads.room;
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
static bool has_ended(const struct nest_entry *e, const struct region_call *c)
{
	return e->end < c->start || (e->end == c->start && (e->call < 0 || e->call != c->parent));
}

/* Forgets what has ended. Where calls overlap without lying in each other, some have ended below others that have not:
 * they are swept out when they may be half of all. */
static void close_ended(struct nest_lane *lane, const struct region_call *c)
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

static const struct nest_entry *around(const struct nest_lane *lane, const struct region_call *c, bool by_number)
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

int nest_enter(struct nest *n, uint32_t rank, const struct region_call *c, bool by_number, size_t *ret_lane,
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

int region_stacks_init(struct region_stacks *s, uint32_t most, struct error *err)
{
	*s = (struct region_stacks){.items = calloc(most, sizeof *s->items)};
	if (!s->items)
		return error_set(err, "out of memory for %" PRIu32 " stacks of calls", most);
	s->most = most;
	return 0;
}

void region_stacks_release(struct region_stacks *s)
{
	for (uint32_t i = 0; i < s->most; i++)
		free(s->items[i].ends);
	free(s->items);
	*s = (struct region_stacks){0};
}

void region_stacks_clear(struct region_stacks *s)
{
	while (s->used > 0)
		s->items[--s->used].depth = 0;
}

static int push(struct region_stack *stack, int64_t end, struct error *err)
{
	if (stack->depth == stack->room) {
		size_t room = stack->room ? 2 * stack->room : 64;
		int64_t *ends = reallocarray(stack->ends, room, sizeof *ends);

		if (!ends)
			return error_set(err, "out of memory for %zu calls inside each other", room);
		stack->ends = ends;
		stack->room = room;
	}
	stack->ends[stack->depth++] = end;
	return 0;
}

int region_stacks_place(struct region_stacks *s, int64_t start, int64_t end, uint32_t *ret, struct error *err)
{
	for (*ret = 0; *ret < s->most; ++*ret) {
		struct region_stack *stack = &s->items[*ret];

		while (stack->depth && stack->ends[stack->depth - 1] <= start)
			stack->depth--;
		if (stack->depth && (end > stack->ends[stack->depth - 1] || stack->depth == REGION_STACK_DEPTH_MAX))
			continue;
		s->used = *ret < s->used ? s->used : *ret + 1;
		return push(stack, end, err);
	}
	return 0;
}
