#include "ingest/graph_callgrind_sums.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "graph/components.h"

/* By component: the own costs of its functions, and the costs of the calls that leave it. */
static double *costs_of(const struct graph *g, const struct components *c, struct error *err)
{
	double *costs = calloc(c->count + 1, sizeof *costs);

	if (!costs) {
		error_set(err, "out of memory for %zu functions", g->node_count);
		return NULL;
	}
	for (size_t i = 0; i < g->node_count; i++)
		costs[c->of[i]] += g->nodes[i].tin;
	for (size_t i = 0; i < g->edge_count; i++) {
		const struct graph_edge *e = &g->edges[i];

		if (c->of[e->caller] != c->of[e->callee])
			costs[c->of[e->caller]] += e->tall > 0 ? e->tall : e->tin;
	}
	return costs;
}

/* In no circle with others a function costs all that there is. Calls of it may cost less: a thread begins in a function
 * that is called as well, and a part of a dump holds only the calls that ended in it. So does one that occurs as deeper
 * ones alone (the record began within it). */
static void sum_node(struct graph_node *n, const struct callgrind_function *f, double most, bool alone)
{
	double cost = f->called ? fmax(f->calls_to_first, f->own_first) : f->own_first + f->calls_of_first;

	n->tall = fmax(f->has_first && !alone ? fmin(cost, most) : most, n->tin);
	n->line = f->line;
}

/* Calls that are not recursive: those to first functions where depths are told apart; else it is known of calls from
 * outside the circle, and of those to itself. */
static void sum_edge(struct graph *g, struct graph_edge *e, const struct components *c, bool separated)
{
	bool inside = c->of[e->caller] == c->of[e->callee];

	if (e->tall <= 0)
		e->tall = e->tin;
	if (inside)
		e->tall = fmin(e->tall, fmin(g->nodes[e->caller].tall, g->nodes[e->callee].tall));
	if (e->caller == e->callee)
		e->nc1 = 0;
	else if (inside && !separated)
		e->nc1 = -1;
}

static int64_t add_calls(int64_t sum, int64_t calls)
{
	if (sum < 0 || calls < 0)
		return -1;
	return __builtin_add_overflow(sum, calls, &sum) ? INT64_MAX : sum;
}

/* Of each function its calls; a share of its own cost for each of its callers, by the cost of the calls from there:
 * a file does not say more. */
static int share_out(struct graph *g, struct error *err)
{
	CLEANUP(free_cleanup) double *whole = calloc(g->node_count + 1, sizeof *whole);
	CLEANUP(free_cleanup) bool *called = calloc(g->node_count + 1, sizeof *called);

	if (!whole || !called)
		return error_set(err, "out of memory for %zu functions", g->node_count);
	for (size_t i = 0; i < g->edge_count; i++) {
		const struct graph_edge *e = &g->edges[i];
		struct graph_node *n = &g->nodes[e->callee];

		whole[e->callee] += e->tall;
		n->nc1 = add_calls(n->nc1, e->nc1);
		n->nc2 = add_calls(n->nc2, e->nc2);
		called[e->callee] = true;
	}
	g->edge_selfs_estimated = true;
	for (size_t i = 0; i < g->edge_count; i++) {
		struct graph_edge *e = &g->edges[i];
		const struct graph_node *n = &g->nodes[e->callee];
		double all = fmax(whole[e->callee], n->tall); /* what is in no call belongs to none */

		e->tin = all > 0 ? n->tin * (e->tall / all) : 0;
	}
	for (size_t i = 0; i < g->node_count; i++)
		if (!called[i])
			g->nodes[i].nc1 = g->nodes[i].nc2 = -1;
	return 0;
}

int callgrind_sums(struct graph *g, const struct callgrind_function *functions, bool separated, struct error *err)
{
	CLEANUP(components_release) struct components c = {0};
	CLEANUP(free_cleanup) double *costs = NULL;
	size_t bounded = 0;

	if (components_find(g, &c, err) < 0)
		return -1;
	costs = costs_of(g, &c, err);
	if (!costs)
		return -1;
	for (size_t i = 0; i < g->node_count; i++) {
		sum_node(&g->nodes[i], &functions[i], costs[c.of[i]], c.size[c.of[i]] == 1);
		bounded += c.size[c.of[i]] > 1 && !(separated && functions[i].has_first);
	}
	for (size_t i = 0; i < g->edge_count; i++)
		sum_edge(g, &g->edges[i], &c, separated && functions[g->edges[i].callee].has_first);
	if (bounded && graph_note(g,
				  "%zu functions call each other in circles, and the file does not tell how deep: what "
				  "they cost with all that they called is an upper bound.",
				  bounded) < 0)
		return error_set(err, "out of memory for a note");
	return share_out(g, err);
}
