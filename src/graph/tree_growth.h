/* A call tree while it grows, before it is sorted and cut to what is shown: made of ways (tree_ways.c) or unfolded from
 * edges (tree_edges.c). Inside src/graph only. */
#ifndef ASSAY_GRAPH_TREE_GROWTH_H
#define ASSAY_GRAPH_TREE_GROWTH_H

#include "graph/tree.h"

/* One function at one place of the tree. No function stands below itself: calls that come back are folded. */
struct tree_vertex {
	uint32_t node, parent; /* parent: a vertex before this one; GRAPH_NONE of a root */
	uint32_t depth;
	uint32_t hidden; /* functions called here that are left out */
	double hidden_total;
	double self, total;
	int64_t calls;
	bool estimated, self_estimated, calls_estimated, recursive, cut;
};

struct tree_growth {
	struct tree_vertex *vertices;
	size_t count, room;
	double whole;
	uint32_t hidden; /* roots that are left out */
	double hidden_total;
	bool too_large;
};

void tree_growth_release(struct tree_growth *t);

/* The new vertex below `parent` (GRAPH_NONE: a root), figures 0; GRAPH_NONE where there is no memory. */
uint32_t tree_growth_add(struct tree_growth *t, uint32_t parent, uint32_t node);

/* Whether the options leave it out for what it costs; `total` is of this place. */
bool tree_growth_is_small(const struct tree_growth *t, const struct graph_tree_options *o, double total);

/* *t starts as zeroes. Of ways: all of them. Of edges: with what is small or dropped left out already. */
int tree_grow_ways(const struct graph *g, const struct graph_tree_options *o, struct tree_growth *t, struct error *err);
int tree_grow_edges(const struct graph *g, const struct graph_tree_options *o, struct tree_growth *t,
		    struct error *err);

#endif
