/* What a graph of stacks says of its functions and calls: figures of nodes and edges from those of its ways. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "graph/graph_hidden.h"

/* For each way: the cost of it and all below, its edge (GRAPH_NONE of an outermost one), and how the tree is walked.
 * Counters of nodes and edges say how often each stands on the way that is walked. */
struct walk {
	double *totals;
	uint32_t *edges, *first_child, *next_sibling, *nodes_open, *edges_open;
};

static void walk_release(struct walk *w)
{
	free(w->totals);
	free(w->edges);
	free(w->first_child);
	free(w->next_sibling);
	free(w->nodes_open);
	free(w->edges_open);
}

/* Makes the edges, in the order of the ways, and the tree's links. Backwards, so that children keep their order. */
static int prepare(struct graph *g, struct walk *w, struct error *err)
{
	size_t count = g->way_count;

	w->totals = calloc(count, sizeof *w->totals);
	w->edges = calloc(count, sizeof *w->edges);
	w->first_child = calloc(count, sizeof *w->first_child);
	w->next_sibling = calloc(count, sizeof *w->next_sibling);
	w->nodes_open = calloc(g->node_count + 1, sizeof *w->nodes_open);
	if (!w->totals || !w->edges || !w->first_child || !w->next_sibling || !w->nodes_open)
		return error_set(err, "out of memory for %zu stacks", count);
	w->edges[0] = GRAPH_NONE;
	for (size_t i = 1; i < count; i++) {
		const struct graph_way *way = &g->ways[i];
		struct graph_edge *edge = NULL;

		if (way->parent && !(edge = graph_edge(g, g->ways[way->parent].node, way->node, err)))
			return -1;
		w->edges[i] = edge ? (uint32_t)(edge - g->edges) : GRAPH_NONE;
	}
	w->edges_open = calloc(g->edge_count + 1, sizeof *w->edges_open);
	if (!w->edges_open)
		return error_set(err, "out of memory for %zu calls", g->edge_count);
	for (size_t i = count - 1; i > 0; i--) {
		uint32_t parent = g->ways[i].parent;

		w->totals[i] += g->ways[i].self;
		w->totals[parent] += w->totals[i];
		w->next_sibling[i] = w->first_child[parent];
		w->first_child[parent] = (uint32_t)i;
	}
	return 0;
}

static void count_calls(int64_t *nc1, int64_t *nc2, int64_t calls, bool again)
{
	if (calls < 0 || *nc2 < 0) {
		*nc1 = *nc2 = -1;
		return;
	}
	if (__builtin_add_overflow(*nc2, calls, nc2))
		*nc2 = INT64_MAX;
	if (!again && __builtin_add_overflow(*nc1, calls, nc1))
		*nc1 = INT64_MAX;
}

static void enter(struct graph *g, struct walk *w, uint32_t i)
{
	const struct graph_way *way = &g->ways[i];
	struct graph_node *n = &g->nodes[way->node];
	bool again = w->nodes_open[way->node]++ > 0;

	count_calls(&n->nc1, &n->nc2, way->calls, again);
	n->tin += way->self;
	if (!again)
		n->tall += w->totals[i];
	if (w->edges[i] != GRAPH_NONE) {
		struct graph_edge *e = &g->edges[w->edges[i]];

		again = w->edges_open[w->edges[i]]++ > 0;
		count_calls(&e->nc1, &e->nc2, way->calls, again);
		e->tin += way->self;
		if (!again)
			e->tall += w->totals[i];
	}
}

static void leave(const struct graph *g, struct walk *w, uint32_t i)
{
	w->nodes_open[g->ways[i].node]--;
	if (w->edges[i] != GRAPH_NONE)
		w->edges_open[w->edges[i]]--;
}

int graph_figures_of_ways(struct graph *g, struct error *err)
{
	CLEANUP(walk_release) struct walk w = {0};
	uint32_t at;

	if (prepare(g, &w, err) < 0)
		return -1;
	for (size_t i = 0; i < g->node_count; i++) {
		g->nodes[i].nc1 = g->nodes[i].nc2 = 0;
		g->nodes[i].tin = g->nodes[i].tall = 0;
	}
	for (size_t i = 0; i < g->edge_count; i++)
		g->edges[i] = (struct graph_edge){.caller = g->edges[i].caller, .callee = g->edges[i].callee};
	/* Down to the first child, else along to the next sibling of it or of the nearest way above that has one. */
	at = w.first_child[0];
	while (at) {
		enter(g, &w, at);
		if (w.first_child[at]) {
			at = w.first_child[at];
			continue;
		}
		leave(g, &w, at);
		while (at && !w.next_sibling[at]) {
			at = g->ways[at].parent;
			if (at)
				leave(g, &w, at);
		}
		at = w.next_sibling[at];
	}
	return 0;
}
