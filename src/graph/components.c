#include "graph/components.h"

#include <stdlib.h>

#include "base/cleanup.h"

/* Tarjan's search, with stacks of its own: a file's depth must not be ours. */
struct search {
	const struct graph *g;
	struct components *components;
	uint32_t *number;  /* order of the first visit, from 1; 0: not yet */
	uint32_t *low;     /* the least number that is reached from here */
	uint32_t *next;    /* how many of its calls have been looked at */
	uint32_t *way;     /* nodes that are being visited */
	uint32_t *waiting; /* visited, and not in a component yet */
	size_t way_count, waiting_count;
	uint32_t numbers;
};

static void search_release(struct search *s)
{
	free(s->number);
	free(s->low);
	free(s->next);
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
	s->number[node] = s->low[node] = ++s->numbers;
	s->way[s->way_count++] = node;
	s->waiting[s->waiting_count++] = node;
}

/* All calls of the node have been looked at. */
static void leave(struct search *s, uint32_t node)
{
	struct components *c = s->components;
	uint32_t member;

	s->way_count--;
	if (s->way_count && s->low[node] < s->low[s->way[s->way_count - 1]])
		s->low[s->way[s->way_count - 1]] = s->low[node];
	if (s->low[node] != s->number[node])
		return;
	do {
		member = s->waiting[--s->waiting_count];
		c->of[member] = (uint32_t)c->count;
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
		uint32_t callee;

		if (s->next[node] == n->calls_to_count) {
			leave(s, node);
			continue;
		}
		callee = s->g->edges[n->calls_to[s->next[node]++]].callee;
		if (!s->number[callee])
			enter(s, callee);
		else if (s->components->of[callee] == GRAPH_NONE && s->number[callee] < s->low[node])
			s->low[node] = s->number[callee];
	}
}

int components_find(const struct graph *g, struct components *ret, struct error *err)
{
	CLEANUP(search_release) struct search s = {.g = g, .components = ret};
	size_t n = g->node_count, room = n + 1;

	*ret = (struct components){0};
	ret->of = calloc(room, sizeof *ret->of);
	ret->size = calloc(room, sizeof *ret->size);
	s.number = calloc(room, sizeof *s.number);
	s.low = calloc(room, sizeof *s.low);
	s.next = calloc(room, sizeof *s.next);
	s.way = calloc(room, sizeof *s.way);
	s.waiting = calloc(room, sizeof *s.waiting);
	if (!ret->of || !ret->size || !s.number || !s.low || !s.next || !s.way || !s.waiting)
		return error_set(err, "out of memory for a tree of %zu functions", n);
	for (size_t i = 0; i < n; i++)
		ret->of[i] = GRAPH_NONE;
	for (size_t i = 0; i < n; i++)
		if (!s.number[i])
			visit(&s, (uint32_t)i);
	return 0;
}
