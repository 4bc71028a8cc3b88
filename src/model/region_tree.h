/* Which regions were called in which, how often and for how long: one node to each path of names. Times are ns. */
#ifndef ASSAY_MODEL_REGION_TREE_H
#define ASSAY_MODEL_REGION_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define REGION_TREE_ROOT 0u             /* node 0: around all; its total is 0 */
#define REGION_TREE_NODES_MAX (1u << 20)

struct region_tree_node {
	uint32_t region, parent;
	uint32_t first_child, next; /* after region_tree_finish; 0: none */
	uint32_t depth;             /* 1: called in no other region */
	uint64_t calls;
	int64_t total, exclusive;
};

struct region_tree {
	char *path;
	const char *const *names; /* borrowed: by region */
	struct region_tree_node *nodes;
	size_t count, room;
	uint32_t *slots; /* node by hash of parent and region */
	size_t slot_count;
};

void region_tree_init(struct region_tree *t);
void region_tree_release(struct region_tree *t);

/* The node of a region in another one; 0: there is none. */
uint32_t region_tree_find(const struct region_tree *t, uint32_t parent, uint32_t region);

/* The same, made where there is none. 0 with *err: too many, or no memory. */
uint32_t region_tree_node(struct region_tree *t, uint32_t parent, uint32_t region, struct error *err);

/* Counts a call. */
void region_tree_add(struct region_tree *t, uint32_t node, int64_t duration);

/* How the nodes in one node are ordered. */
enum region_tree_order {
	REGION_TREE_BY_TOTAL, /* the largest first */
	REGION_TREE_AS_MADE,
};

/* When all is counted: exclusive times and the order of nodes. */
int region_tree_finish(struct region_tree *t, enum region_tree_order order, struct error *err);

/* The node after this one, parents before children; begin with the root's first child. 0: no more. */
uint32_t region_tree_next(const struct region_tree *t, uint32_t node);

#endif
