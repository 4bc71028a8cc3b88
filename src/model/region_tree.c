#include "model/region_tree.h"

#include <stdlib.h>

#include "base/cleanup.h"

void region_tree_init(struct region_tree *t)
{
	*t = (struct region_tree){0};
}

void region_tree_release(struct region_tree *t)
{
	free(t->path);
	free(t->nodes);
	free(t->slots);
	region_tree_init(t);
}

/* The slot of a node: its own, or the empty one where it belongs. */
static size_t slot_of(const struct region_tree *t, uint32_t parent, uint32_t region)
{
	uint64_t hash = (((uint64_t)parent << 32) ^ region) * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(hash >> 32) & (t->slot_count - 1);

	while (t->slots[at] && (t->nodes[t->slots[at]].parent != parent || t->nodes[t->slots[at]].region != region))
		at = (at + 1) & (t->slot_count - 1);
	return at;
}

static int grow(struct region_tree *t, struct error *err)
{
	size_t room = t->room ? 2 * t->room : 64;
	struct region_tree_node *nodes;
	uint32_t *slots;

	if (t->count < t->room)
		return 0;
	if (t->count >= REGION_TREE_NODES_MAX)
		return error_set(err, "there are more than %u paths of regions", REGION_TREE_NODES_MAX);
	nodes = reallocarray(t->nodes, room, sizeof *nodes);
	if (!nodes)
		return error_set(err, "out of memory for %zu paths of regions", room);
	t->nodes = nodes;
	t->room = room;
	slots = calloc(4 * room, sizeof *slots);
	if (!slots)
		return error_set(err, "out of memory for %zu paths of regions", room);
	free(t->slots);
	t->slots = slots;
	t->slot_count = 4 * room;
	if (t->count == 0)
		nodes[t->count++] = (struct region_tree_node){0};
	for (uint32_t i = 1; i < t->count; i++)
		slots[slot_of(t, nodes[i].parent, nodes[i].region)] = i;
	return 0;
}

uint32_t region_tree_find(const struct region_tree *t, uint32_t parent, uint32_t region)
{
	return t->slot_count ? t->slots[slot_of(t, parent, region)] : 0;
}

uint32_t region_tree_node(struct region_tree *t, uint32_t parent, uint32_t region, struct error *err)
{
	uint32_t found = region_tree_find(t, parent, region);

	if (found)
		return found;
	if (grow(t, err) < 0)
		return 0;
	t->slots[slot_of(t, parent, region)] = (uint32_t)t->count;
	t->nodes[t->count] =
		(struct region_tree_node){.region = region, .parent = parent, .depth = t->nodes[parent].depth + 1};
	return (uint32_t)t->count++;
}

/* What is too long to add up stays the longest there is. */
static int64_t sum_of(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

void region_tree_add(struct region_tree *t, uint32_t node, int64_t duration)
{
	t->nodes[node].calls++;
	t->nodes[node].total = sum_of(t->nodes[node].total, duration);
}

struct ordered {
	int64_t total;
	uint32_t node;
};

/* From the last on: the smallest total, and of equal ones that which was made last. */
static int from_last(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? -1 : 1;
	return (x->node < y->node) - (x->node > y->node);
}

int region_tree_finish(struct region_tree *t, enum region_tree_order by, struct error *err)
{
	CLEANUP(free_cleanup) struct ordered *order = calloc(t->count + 1, sizeof *order);

	if (!order)
		return error_set(err, "out of memory for %zu paths of regions", t->count);
	for (size_t i = 0; i < t->count; i++) {
		order[i] = (struct ordered){by == REGION_TREE_BY_TOTAL ? t->nodes[i].total : 0, (uint32_t)i};
		t->nodes[i].exclusive = t->nodes[i].total;
		t->nodes[i].first_child = t->nodes[i].next = 0;
	}
	qsort(order, t->count, sizeof *order, from_last);
	/* Each is put before those that are there. */
	for (size_t i = 0; i < t->count; i++) {
		struct region_tree_node *node = &t->nodes[order[i].node], *parent = &t->nodes[node->parent];

		if (order[i].node == REGION_TREE_ROOT)
			continue;
		node->next = parent->first_child;
		parent->first_child = order[i].node;
		parent->exclusive = sum_of(parent->exclusive, node->total == INT64_MIN ? INT64_MAX : -node->total);
	}
	return 0;
}

uint32_t region_tree_next(const struct region_tree *t, uint32_t node)
{
	if (t->nodes[node].first_child)
		return t->nodes[node].first_child;
	while (node != REGION_TREE_ROOT && !t->nodes[node].next)
		node = t->nodes[node].parent;
	return node == REGION_TREE_ROOT ? 0 : t->nodes[node].next;
}
