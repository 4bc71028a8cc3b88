/* The edges of a graph while it is built. Nearly all files have the calls of a function in one place: then those of the
 * latest caller are all that one edge can be among, and they are near in memory. Once a caller comes a second time, all
 * edges are looked up in an index. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph_hidden.h"

#define LATEST_ROOM_MAX 4096 /* of an index that is kept to be filled anew: clearing it costs this much per caller */

static uint32_t hash_of_edge(const void *owner, uint32_t item)
{
	const struct graph_edge *e = &((const struct graph *)owner)->edges[item];

	return graph_hash_pair(e->caller, e->callee);
}

static bool same_edge(const void *owner, uint32_t item, const void *key)
{
	const struct graph_edge *e = &((const struct graph *)owner)->edges[item];
	const struct graph_pair_key *k = key;

	return e->caller == k->first && e->callee == k->second;
}

void graph_edges_init(struct graph_edges *e)
{
	*e = (struct graph_edges){.latest = GRAPH_NONE, .index = {.hash = hash_of_edge, .same = same_edge}};
}

void graph_edges_release(struct graph_edges *e)
{
	graph_index_release(&e->index);
	free(e->callers);
	graph_edges_init(e);
}

static int no_memory(const struct graph *g, struct error *err)
{
	return error_set(err, "out of memory for %zu calls", g->edge_count);
}

static int index_all(const struct graph *g, struct graph_edges *edges, struct error *err)
{
	graph_index_release(&edges->index);
	edges->scattered = true;
	for (size_t i = 0; i < g->edge_count; i++)
		if (!graph_index_add(&edges->index, g, (uint32_t)i))
			return no_memory(g, err);
	return 0;
}

/* Another caller than before. */
static int begin_caller(const struct graph *g, struct graph_edges *edges, uint32_t caller, struct error *err)
{
	if (caller >= edges->caller_room) {
		size_t room = 2 * (size_t)caller + 64;
		bool *callers = reallocarray(edges->callers, room, sizeof *callers);

		if (!callers)
			return no_memory(g, err);
		memset(callers + edges->caller_room, 0, (room - edges->caller_room) * sizeof *callers);
		edges->callers = callers;
		edges->caller_room = room;
	}
	if (edges->callers[caller])
		return index_all(g, edges, err);
	edges->callers[caller] = true;
	edges->latest = caller;
	if (edges->index.room > LATEST_ROOM_MAX)
		graph_index_release(&edges->index);
	else
		graph_index_clear(&edges->index);
	return 0;
}

struct graph_edge *graph_edge_new(struct graph *g, uint32_t caller, uint32_t callee, struct error *err)
{
	struct graph_hidden *h = graph_hidden(g, err);

	if (!h || graph_room((void **)&g->edges, g->edge_count, &h->edge_room, sizeof *g->edges, "calls", err) < 0)
		return NULL;
	g->edges[g->edge_count] = (struct graph_edge){.caller = caller, .callee = callee};
	return &g->edges[g->edge_count++];
}

struct graph_edge *graph_edge(struct graph *g, uint32_t caller, uint32_t callee, struct error *err)
{
	struct graph_hidden *h = graph_hidden(g, err);
	struct graph_pair_key key = {caller, callee};
	struct graph_edge *edge;
	uint32_t found;

	if (!h || (!h->edges.scattered && caller != h->edges.latest && begin_caller(g, &h->edges, caller, err) < 0))
		return NULL;
	found = graph_index_find(&h->edges.index, g, graph_hash_pair(caller, callee), &key);
	if (found != GRAPH_INDEX_NONE)
		return &g->edges[found];
	edge = graph_edge_new(g, caller, callee, err);
	if (edge && !graph_index_add(&h->edges.index, g, (uint32_t)(edge - g->edges))) {
		g->edge_count--;
		no_memory(g, err);
		return NULL;
	}
	return edge;
}
