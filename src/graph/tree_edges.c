/* The tree of a graph that holds edges only, unfolded from the roots down.
 *
 * A function costs, at one place of the tree, what the edge that leads there says, times the part of its caller that
 * belongs to this place. That is exact until the first function with several callers; what it calls in turn is divided
 * among them. The whole tree may be endlessly large, so it is grown level by level, without what is too small to be
 * shown, and within limits. */
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "graph/components.h"
#include "graph/tree_growth.h"

#define NEAR 1e-6 /* relative: sums of a file's rounded figures are not nearer than that */
#define STEPS_MAX 100000000u /* edges and ancestors that are looked at in all */

enum node_flags {
	SHARED = 1,     /* several other functions call it */
	RECURSIVE = 2,  /* it is in a cycle, if only with itself */
	SELF_KNOWN = 4, /* the edges that lead to it tell how much of its own cost belongs to each */
	ENTERED = 8,    /* not all of it is in calls: a thread began there, or the record began within it */
};

struct unfolding {
	const struct graph *g;
	const struct graph_tree_options *o;
	struct tree_growth *t;
	struct components components;
	uint8_t *flags;  /* by node: enum node_flags */
	uint32_t *place; /* by node: where it stands on the way to the vertex that is unfolded... */
	uint32_t *stamp; /* ...if this is that vertex */
	uint64_t steps;
};

static void unfolding_release(struct unfolding *u)
{
	components_release(&u->components);
	free(u->flags);
	free(u->place);
	free(u->stamp);
}

/* What the function costs beyond all calls of it; 0 where it is no more than rounding. */
static double cost_without_call(const struct graph *g, const struct graph_node *n)
{
	double rest = n->tall;

	for (uint32_t i = 0; i < n->called_by_count; i++)
		rest -= g->edges[n->called_by[i]].tall;
	return rest > NEAR * n->tall ? rest : 0;
}

static uint8_t flags_of(const struct unfolding *u, uint32_t node)
{
	const struct graph_node *n = &u->g->nodes[node];
	bool recursive = u->components.size[u->components.of[node]] > 1, known = !u->g->edge_selfs_estimated;
	unsigned callers = 0;
	double self = 0;
	bool entered;

	for (uint32_t i = 0; i < n->called_by_count; i++) {
		const struct graph_edge *e = &u->g->edges[n->called_by[i]];

		callers += e->caller != node;
		recursive |= e->caller == node;
		self += e->tin;
	}
	entered = callers && !recursive && !u->g->edge_costs_estimated && cost_without_call(u->g, n) > 0;
	return (uint8_t)((callers + entered > 1 ? SHARED : 0) | (recursive ? RECURSIVE : 0) | (entered ? ENTERED : 0) |
			 (known && !recursive && fabs(self - n->tin) <= NEAR * fabs(n->tin) ? SELF_KNOWN : 0));
}

static int begin(struct unfolding *u, struct error *err)
{
	size_t room = u->g->node_count + 1;

	if (components_find(u->g, &u->components, err) < 0)
		return -1;
	u->flags = calloc(room, sizeof *u->flags);
	u->place = calloc(room, sizeof *u->place);
	u->stamp = calloc(room, sizeof *u->stamp);
	if (!u->flags || !u->place || !u->stamp)
		return error_set(err, "out of memory for a tree of %zu functions", u->g->node_count);
	for (size_t i = 0; i < u->g->node_count; i++) {
		u->flags[i] = flags_of(u, (uint32_t)i);
		u->stamp[i] = GRAPH_NONE;
	}
	return 0;
}

static double at_most(double value, double most)
{
	return value > most ? most : value > 0 ? value : 0; /* NaN: 0 */
}

/* Which part of the function belongs to that place. */
static double part_of(const struct unfolding *u, const struct tree_vertex *v)
{
	double tall = u->g->nodes[v->node].tall;

	return tall > 0 ? at_most(v->total / tall, 1) : 1;
}

static bool is_divided(const struct unfolding *u, const struct tree_vertex *v)
{
	return (u->flags[v->node] & SHARED) && part_of(u, v) < 1 - NEAR;
}

static int64_t calls_of(int64_t calls, double part)
{
	double some = (double)calls * part;

	return calls <= 0 || part >= 1 ? calls : some < 1 ? 1 : (int64_t)llrint(some);
}

static int add_root(struct unfolding *u, uint32_t node, double total, bool estimated, struct error *err)
{
	const struct graph_node *n = &u->g->nodes[node];
	struct tree_vertex *v;
	uint32_t at;

	if ((u->o->keep && !u->o->keep(u->o->context, u->g, node, NULL)) || tree_growth_is_small(u->t, u->o, total)) {
		u->t->hidden++;
		u->t->hidden_total += total;
		return 0;
	}
	at = tree_growth_add(u->t, GRAPH_NONE, node);
	if (at == GRAPH_NONE)
		return error_set(err, "out of memory for a tree");
	v = &u->t->vertices[at];
	v->total = total;
	v->self = at_most(n->tin, total);
	v->calls = n->nc2;
	v->estimated = v->self_estimated = estimated;
	if (u->o->root == GRAPH_NONE && (u->flags[node] & ENTERED)) {
		v->self = at_most(part_of(u, v) * n->tin, total);
		v->calls = -1;
		v->self_estimated = true;
	}
	return 0;
}

/* Of each component that is called from nowhere else the dearest function: all others can be reached from these. And
 * the functions that have costs without a call. In the order of the file. */
static int find_roots(const struct unfolding *u, uint32_t **ret_roots, size_t *ret_count, struct error *err)
{
	const struct components *c = &u->components;
	CLEANUP(free_cleanup) uint32_t *best = malloc((c->count + 1) * sizeof *best);
	CLEANUP(free_cleanup) uint32_t *roots = malloc((c->count + 1) * sizeof *roots);
	CLEANUP(free_cleanup) bool *called = calloc(c->count + 1, sizeof *called);
	size_t count = 0;

	if (!best || !roots || !called)
		return error_set(err, "out of memory for a tree of %zu functions", u->g->node_count);
	for (size_t i = 0; i < c->count; i++)
		best[i] = GRAPH_NONE;
	for (size_t i = 0; i < u->g->edge_count; i++)
		if (c->of[u->g->edges[i].caller] != c->of[u->g->edges[i].callee])
			called[c->of[u->g->edges[i].callee]] = true;
	for (size_t i = 0; i < u->g->node_count; i++) {
		uint32_t *b = &best[c->of[i]];

		if (*b == GRAPH_NONE || u->g->nodes[i].tall > u->g->nodes[*b].tall)
			*b = (uint32_t)i;
	}
	if (c->count == 1)
		best[0] = graph_root(u->g); /* all of it is a cycle */
	for (size_t i = 0; i < u->g->node_count; i++)
		if ((!called[c->of[i]] && best[c->of[i]] == i) || (u->flags[i] & ENTERED))
			roots[count++] = (uint32_t)i;
	*ret_roots = roots;
	*ret_count = count;
	roots = NULL;
	return 0;
}

static double root_cost(const struct unfolding *u, uint32_t node)
{
	const struct graph_node *n = &u->g->nodes[node];

	return at_most(u->flags[node] & ENTERED ? cost_without_call(u->g, n) : n->tall, u->t->whole);
}

/* Roots that cost more together than there is (what is in cycles is easily counted twice) are made smaller. */
static int add_roots(struct unfolding *u, struct error *err)
{
	CLEANUP(free_cleanup) uint32_t *roots = NULL;
	const struct graph *g = u->g;
	double sum = 0, scale;
	size_t count = 0;

	if (u->o->root != GRAPH_NONE) {
		u->t->whole = at_most(g->nodes[u->o->root].tall, INFINITY);
		return add_root(u, u->o->root, u->t->whole, false, err);
	}
	if (find_roots(u, &roots, &count, err) < 0)
		return -1;
	u->t->whole = at_most(g->total, INFINITY);
	for (size_t i = 0; i < count; i++)
		sum += root_cost(u, roots[i]);
	scale = sum > u->t->whole ? u->t->whole / sum : 1;
	for (size_t i = 0; i < count; i++)
		if (add_root(u, roots[i], scale * root_cost(u, roots[i]), scale < 1 - NEAR, err) < 0)
			return -1;
	return 0;
}

/* Only functions of the same component can be called again on the way, and they stand together. */
static void mark_way(struct unfolding *u, uint32_t vertex)
{
	const struct tree_vertex *vertices = u->t->vertices;
	uint32_t component = u->components.of[vertices[vertex].node];

	for (uint32_t at = vertex; at != GRAPH_NONE && u->components.of[vertices[at].node] == component;
	     at = vertices[at].parent) {
		u->stamp[vertices[at].node] = vertex;
		u->place[vertices[at].node] = at;
		u->steps++;
	}
}

/* How a vertex's cost is passed on to what it calls. */
struct passing {
	uint32_t vertex;
	double part;  /* of each edge's cost */
	bool estimated;
};

static int add_call(struct unfolding *u, const struct passing *p, const struct graph_edge *e, struct error *err)
{
	const struct graph_node *n = &u->g->nodes[e->callee];
	double total = p->part * at_most(e->tall, INFINITY);
	struct tree_vertex *v;
	uint32_t at;

	if ((u->o->keep && !u->o->keep(u->o->context, u->g, e->callee, e)) || tree_growth_is_small(u->t, u->o, total)) {
		u->t->vertices[p->vertex].hidden++;
		u->t->vertices[p->vertex].hidden_total += total;
		return 0;
	}
	at = tree_growth_add(u->t, p->vertex, e->callee);
	if (at == GRAPH_NONE)
		return error_set(err, "out of memory for a tree");
	v = &u->t->vertices[at];
	v->total = total;
	v->calls = calls_of(e->nc2, p->part);
	v->estimated = p->estimated || (u->g->edge_costs_estimated && (u->flags[e->callee] & SHARED));
	v->self_estimated = v->estimated;
	if (u->flags[e->callee] & SELF_KNOWN) {
		v->self = at_most(p->part * e->tin, total);
	} else {
		v->self = at_most(part_of(u, v) * n->tin, total);
		v->self_estimated |= is_divided(u, v);
	}
	return 0;
}

/* Calls that come back belong to the row that they come back to, which has their cost already. */
static void fold_call(struct unfolding *u, const struct passing *p, const struct graph_edge *e)
{
	struct tree_vertex *v = &u->t->vertices[u->place[e->callee]];
	bool is_root = v->parent == GRAPH_NONE; /* it has all calls of the function */
	const struct tree_vertex *caller = &u->t->vertices[p->vertex];
	bool divided = caller->estimated || is_divided(u, caller);

	v->recursive = true;
	if (is_root || v->calls < 0 || e->nc2 <= 0)
		return;
	v->calls_estimated |= p->estimated;
	if (__builtin_add_overflow(v->calls, calls_of(e->nc2, divided ? part_of(u, caller) : 1), &v->calls))
		v->calls = INT64_MAX;
}

static struct passing passing_of(struct unfolding *u, uint32_t vertex)
{
	const struct tree_vertex *v = &u->t->vertices[vertex];
	const struct graph_node *n = &u->g->nodes[v->node];
	double rest = v->total - v->self, below = n->tall - n->tin, sum = 0;
	struct passing p = {.vertex = vertex, .part = 1, .estimated = v->estimated || is_divided(u, v)};

	if (below > 0)
		p.part = at_most(rest / below, 1);
	if (p.part > 1 - NEAR)
		p.part = 1;
	for (uint32_t i = 0; i < n->calls_to_count; i++) {
		const struct graph_edge *e = &u->g->edges[n->calls_to[i]];

		if (u->stamp[e->callee] != vertex)
			sum += p.part * at_most(e->tall, INFINITY);
	}
	/* Calls whose costs hold each other, as in a cycle, are more together than their caller. */
	if (sum > rest * (1 + NEAR)) {
		p.part *= at_most(rest / sum, 1);
		p.estimated = true;
	}
	return p;
}

static int unfold(struct unfolding *u, uint32_t vertex, struct error *err)
{
	const struct graph_node *n = &u->g->nodes[u->t->vertices[vertex].node];
	struct passing p;

	if (u->o->depth && u->t->vertices[vertex].depth >= u->o->depth) {
		u->t->vertices[vertex].cut = n->calls_to_count > 0;
		return 0;
	}
	if (n->calls_to_count && (u->t->count >= GRAPH_TREE_ROWS_MAX || u->steps > STEPS_MAX)) {
		u->t->vertices[vertex].cut = u->t->too_large = true;
		return 0;
	}
	mark_way(u, vertex);
	p = passing_of(u, vertex);
	u->steps += 2 * (uint64_t)n->calls_to_count;
	for (uint32_t i = 0; i < n->calls_to_count; i++) {
		const struct graph_edge *e = &u->g->edges[n->calls_to[i]];

		if (u->stamp[e->callee] == vertex)
			fold_call(u, &p, e);
		else if (add_call(u, &p, e, err) < 0)
			return -1;
	}
	return 0;
}

int tree_grow_edges(const struct graph *g, const struct graph_tree_options *o, struct tree_growth *t, struct error *err)
{
	CLEANUP(unfolding_release) struct unfolding u = {.g = g, .o = o, .t = t};

	if (begin(&u, err) < 0 || add_roots(&u, err) < 0)
		return -1;
	for (uint32_t i = 0; i < t->count; i++)
		if (unfold(&u, i, err) < 0)
			return -1;
	return 0;
}
