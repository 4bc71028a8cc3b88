#include "graph/components.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define DONE UINT32_MAX

/* Tarjan's search, with stacks of its own: a file's depth must not be ours. */
struct search {
	const struct graph *g;
	struct components *components;
	struct visited {
		uint32_t number; /* order of the first visit, from 1; 0: not yet; DONE: it is in a component */
		uint32_t low;    /* the least number that is reached from here */
		uint32_t next;   /* how many of its calls have been looked at */
	} *nodes; /* in one place, since most of the time goes to fetching it from memory */
	uint32_t *way;     /* nodes that are being visited */
	uint32_t *waiting; /* visited, and not in a component yet */
	size_t way_count, waiting_count;
	uint32_t numbers;
};

static void search_release(struct search *s)
{
	free(s->nodes);
	free(s->way);
	free(s->waiting);
}

void components_release(struct components *c)
{
	free(c->of);
	free(c->size);
	*c = (struct components){0};
}

static void enter(struct search *s, uint32_t node)
{
	s->nodes[node].number = s->nodes[node].low = ++s->numbers;
	s->way[s->way_count++] = node;
	s->waiting[s->waiting_count++] = node;
}

/* All calls of the node have been looked at. */
static void leave(struct search *s, uint32_t node)
{
	struct components *c = s->components;
	struct visited *v = &s->nodes[node], *above;
	uint32_t member;

	s->way_count--;
	above = s->way_count ? &s->nodes[s->way[s->way_count - 1]] : NULL;
	if (above && v->low < above->low)
		above->low = v->low;
	if (v->low != v->number)
		return;
	do {
		member = s->waiting[--s->waiting_count];
		c->of[member] = (uint32_t)c->count;
		s->nodes[member].number = DONE;
		c->size[c->count]++;
	} while (member != node);
	c->count++;
}

static void visit(struct search *s, uint32_t start)
{
	enter(s, start);
	while (s->way_count) {
		uint32_t node = s->way[s->way_count - 1];
		const struct graph_node *n = &s->g->nodes[node];
		struct visited *v = &s->nodes[node];
		uint32_t callee;

		if (v->next == n->calls_to_count) {
			leave(s, node);
			continue;
		}
		callee = s->g->edges[n->calls_to[v->next++]].callee;
		if (!s->nodes[callee].number)
			enter(s, callee);
		else if (s->nodes[callee].number < v->low)
			v->low = s->nodes[callee].number;
	}
}

int components_find(const struct graph *g, struct components *ret, struct error *err)
{
	CLEANUP(search_release) struct search s = {.g = g, .components = ret};
	size_t n = g->node_count, room = n + 1;

	*ret = (struct components){0};
	ret->of = calloc(room, sizeof *ret->of);
	ret->size = calloc(room, sizeof *ret->size);
	s.nodes = calloc(room, sizeof *s.nodes);
	s.way = calloc(room, sizeof *s.way);
	s.waiting = calloc(room, sizeof *s.waiting);
	if (!ret->of || !ret->size || !s.nodes || !s.way || !s.waiting)
		return error_set(err, "out of memory for a tree of %zu functions", n);
	for (size_t i = 0; i < n; i++)
		if (!s.nodes[i].number)
			visit(&s, (uint32_t)i);
	return 0;
}
