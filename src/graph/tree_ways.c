/* The tree of a graph that holds ways: exact. Ways that differ only in the rounds of a recursion become one. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "graph/graph_index.h"
#include "graph/tree_growth.h"

/* A walk over all ways, depth first. What a way changes on its way down is kept beside it and put back when it is left,
 * so that a way costs the same however deep it lies. */
struct walk {
	const struct graph *g;
	struct tree_growth *t;
	uint32_t root;
	uint32_t *first, *next; /* by way: its first way below, and the next one beside it; 0: none */
	uint32_t *vertex;       /* by way; GRAPH_NONE: outside of the root that was asked for */
	uint32_t *chain;        /* by depth: the vertices from the root to where the walk is */
	uint32_t *last;         /* by node: the vertex that it became last on this way; GRAPH_NONE: none */
	uint32_t *old_chain, *old_last; /* by way: what it replaced */
	struct graph_index index; /* vertices by parent and node */
};

static void walk_release(struct walk *w)
{
	free(w->first);
	free(w->next);
	free(w->vertex);
	free(w->chain);
	free(w->last);
	free(w->old_chain);
	free(w->old_last);
	graph_index_release(&w->index);
}

static uint32_t *new_indices(size_t count, uint32_t value)
{
	uint32_t *indices = malloc((count + 1) * sizeof *indices);

	for (size_t i = 0; indices && i <= count; i++)
		indices[i] = value;
	return indices;
}

static uint32_t hash_vertex(const void *owner, uint32_t item)
{
	const struct tree_growth *t = owner;

	return graph_hash_pair(t->vertices[item].parent, t->vertices[item].node);
}

static bool same_vertex(const void *owner, uint32_t item, const void *key)
{
	const struct tree_growth *t = owner;
	const struct tree_vertex *wanted = key;

	return t->vertices[item].parent == wanted->parent && t->vertices[item].node == wanted->node;
}

static int begin(struct walk *w, struct error *err)
{
	size_t ways = w->g->way_count, nodes = w->g->node_count;

	w->index.hash = hash_vertex;
	w->index.same = same_vertex;
	w->first = new_indices(ways, 0);
	w->next = new_indices(ways, 0);
	w->vertex = new_indices(ways, GRAPH_NONE);
	w->chain = new_indices(nodes, GRAPH_NONE);
	w->last = new_indices(nodes, GRAPH_NONE);
	w->old_chain = new_indices(ways, GRAPH_NONE);
	w->old_last = new_indices(ways, GRAPH_NONE);
	if (!w->first || !w->next || !w->vertex || !w->chain || !w->last || !w->old_chain || !w->old_last)
		return error_set(err, "out of memory for a tree of %zu ways", ways);
	for (size_t i = ways; i-- > 1;) {
		uint32_t parent = w->g->ways[i].parent;

		w->next[i] = w->first[parent];
		w->first[parent] = (uint32_t)i;
	}
	return 0;
}

/* The vertex of that function below that one, made where there is none; GRAPH_NONE: no memory. */
static uint32_t find_or_add(struct walk *w, uint32_t parent, uint32_t node)
{
	struct tree_vertex key = {.parent = parent, .node = node};
	uint32_t at = graph_index_find(&w->index, w->t, graph_hash_pair(parent, node), &key);

	if (at != GRAPH_INDEX_NONE)
		return at;
	at = tree_growth_add(w->t, parent, node);
	return at != GRAPH_NONE && graph_index_add(&w->index, w->t, at) ? at : GRAPH_NONE;
}

/* The vertex of that function at or above that one, GRAPH_NONE: it is not there. */
static uint32_t on_the_way(const struct walk *w, uint32_t vertex, uint32_t node)
{
	uint32_t last = w->last[node];
	const struct tree_vertex *vertices = w->t->vertices;

	if (vertex == GRAPH_NONE || last == GRAPH_NONE || vertices[last].depth > vertices[vertex].depth ||
	    w->chain[vertices[last].depth] != last)
		return GRAPH_NONE;
	return last;
}

/* Returns -1 where there is no memory. */
static int enter(struct walk *w, uint32_t way)
{
	const struct graph_way *g = &w->g->ways[way];
	uint32_t above = w->vertex[g->parent], at = on_the_way(w, above, g->node);
	struct tree_vertex *v;
	bool back = at != GRAPH_NONE;

	if (above == GRAPH_NONE && w->root != GRAPH_NONE && g->node != w->root)
		return 0;
	if (!back) {
		at = find_or_add(w, above, g->node);
		if (at == GRAPH_NONE)
			return -1;
	}
	w->vertex[way] = at;
	v = &w->t->vertices[at];
	v->recursive |= back;
	v->self += g->self;
	v->calls = g->calls < 0 || v->calls < 0 ? -1 : v->calls + g->calls;
	/* One that came back leaves both as they are: putting them back then changes nothing. */
	w->old_chain[way] = w->chain[v->depth];
	w->old_last[way] = w->last[g->node];
	w->chain[v->depth] = at;
	w->last[g->node] = at;
	return 0;
}

static void leave(struct walk *w, uint32_t way)
{
	if (w->vertex[way] == GRAPH_NONE)
		return;
	w->chain[w->t->vertices[w->vertex[way]].depth] = w->old_chain[way];
	w->last[w->g->ways[way].node] = w->old_last[way];
}

static int walk_all(struct walk *w, struct error *err)
{
	uint32_t way = w->first[0];

	while (way) {
		if (enter(w, way) < 0)
			return error_set(err, "out of memory for a tree of %zu ways", w->g->way_count);
		if (w->first[way]) {
			way = w->first[way];
			continue;
		}
		leave(w, way);
		while (!w->next[way] && w->g->ways[way].parent) {
			way = w->g->ways[way].parent;
			leave(w, way);
		}
		way = w->next[way];
	}
	return 0;
}

int tree_grow_ways(const struct graph *g, const struct graph_tree_options *o, struct tree_growth *t, struct error *err)
{
	CLEANUP(walk_release) struct walk w = {.g = g, .t = t, .root = o->root};

	if (begin(&w, err) < 0 || walk_all(&w, err) < 0)
		return -1;
	for (size_t i = t->count; i-- > 0;) {
		struct tree_vertex *v = &t->vertices[i];

		v->total += v->self;
		if (v->parent != GRAPH_NONE)
			t->vertices[v->parent].total += v->total;
		else
			t->whole += v->total;
	}
	return 0;
}
