#include "graph/reference_walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PIECE ((size_t)64 << 10)

static int compare_places(const struct graph_node *a, const struct graph_node *b)
{
	int by_file = a->file == b->file ? 0 : strcmp(a->file, b->file);

	return by_file ? by_file : (a->line > b->line) - (a->line < b->line);
}

static int by_place(const void *a, const void *b, void *nodes)
{
	const struct graph_node *n = nodes;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int by = compare_places(&n[x], &n[y]);

	return by ? by : (x > y) - (x < y);
}

/* Places are compared once for all functions, and not again for each of their calls. */
static uint32_t *make_ranks(const struct graph *g)
{
	uint32_t *order = reallocarray(NULL, g->node_count + 1, sizeof *order);
	uint32_t *ranks = calloc(g->node_count + 1, sizeof *ranks);

	if (!order || !ranks) {
		free(order);
		free(ranks);
		return NULL;
	}
	for (size_t i = 0; i < g->node_count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, g->node_count, sizeof *order, by_place, g->nodes);
	for (size_t i = 1; i < g->node_count; i++)
		ranks[order[i]] = ranks[order[i - 1]] +
				  (compare_places(&g->nodes[order[i - 1]], &g->nodes[order[i]]) != 0);
	free(order);
	return ranks;
}

/* An item with what it is sorted by; `place` keeps those that are equal in their order. */
struct sorted {
	double key;
	uint32_t item, place;
};

static int by_key(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;
	int by = (x->key > y->key) - (x->key < y->key);

	return by ? by : (x->place > y->place) - (x->place < y->place);
}

static double key_of(const struct reference_walk *w, uint32_t node, double tin, double tall)
{
	if (w->ranks)
		return w->ranks[node];
	return w->o->sort == GRAPH_BY_TIME ? -tin : -tall;
}

static int no_memory(struct error *err)
{
	return error_set(err, "out of memory for the rows of a call graph");
}

static void sort(struct sorted *items, size_t count, uint32_t *ret)
{
	qsort(items, count, sizeof *items, by_key);
	for (size_t i = 0; i < count; i++)
		ret[i] = items[i].item;
}

bool reference_is_root(const struct graph *g, uint32_t node)
{
	return g->nodes[node].called_by_count != 1;
}

/* What can be reached, nearest first: the order among roots that are equal. */
static uint32_t *reached_from(const struct graph *g, uint32_t start, size_t *ret_count)
{
	uint32_t *order = reallocarray(NULL, g->node_count + 1, sizeof *order);
	bool *seen = calloc(g->node_count + 1, sizeof *seen);
	size_t count = 0;

	if (order && seen) {
		order[count++] = start;
		seen[start] = true;
		for (size_t i = 0; i < count; i++) {
			const struct graph_node *n = &g->nodes[order[i]];

			for (uint32_t k = 0; k < n->calls_to_count; k++) {
				uint32_t callee = g->edges[n->calls_to[k]].callee;

				if (!seen[callee])
					order[count++] = callee;
				seen[callee] = true;
			}
		}
	} else {
		free(order);
		order = NULL;
	}
	free(seen);
	*ret_count = count;
	return order;
}

static int find_roots(struct reference_walk *w, uint32_t start, struct error *err)
{
	size_t count;
	uint32_t *order = reached_from(w->g, start, &count);
	struct sorted *items = reallocarray(NULL, w->g->node_count + 1, sizeof *items);
	size_t kept = 0;

	for (size_t i = 0; order && items && i < count; i++) {
		const struct graph_node *n = &w->g->nodes[order[i]];

		if (reference_is_root(w->g, order[i]) &&
		    (!w->o->keep || w->o->keep(w->o->context, w->g, order[i], NULL))) {
			items[kept] = (struct sorted){key_of(w, order[i], n->tin, n->tall), order[i], (uint32_t)kept};
			kept++;
		}
	}
	if (order && items) {
		sort(items, kept, order);
		w->roots = order;
		w->root_count = kept;
	} else {
		free(order);
	}
	free(items);
	return w->roots ? 0 : no_memory(err);
}

int reference_begin(struct reference_walk *w, const struct graph *g, const struct graph_rows_options *o,
		    struct error *err)
{
	uint32_t start = o->start == GRAPH_NONE ? graph_root(g) : o->start;

	w->g = g;
	w->o = o;
	if (o->sort == GRAPH_BY_CALLS)
		return error_set(err, "the reference style sorts by line, time or cumulative time, not by calls");
	if (start == GRAPH_NONE)
		return error_set(err, "there is no function to show");
	if (o->sort == GRAPH_BY_LINE && !(w->ranks = make_ranks(g)))
		return no_memory(err);
	return find_roots(w, start, err);
}

void reference_end(struct reference_walk *w)
{
	free(w->ranks);
	free(w->roots);
	free(w->calls);
	*w = (struct reference_walk){0};
}

int reference_check_edge(const struct graph *g, const struct graph_edge *e, struct error *err)
{
	if (!g->edge_costs_estimated)
		return 0;
	return error_set(err,
			 "the profile has no times for the calls of '%.150s' by '%.150s', only their number (Python's "
			 "'profile' wrote it, not cProfile): the reference style has nothing to show for them, use "
			 "--style tree",
			 g->nodes[e->callee].name, g->nodes[e->caller].name);
}

int reference_calls(struct reference_walk *w, uint32_t node, struct error *err)
{
	const struct graph_node *n = &w->g->nodes[node];
	struct sorted *items = reallocarray(NULL, n->calls_to_count + 1, sizeof *items);
	size_t kept = 0;

	if (w->call_room <= n->calls_to_count) {
		free(w->calls);
		w->call_room = (size_t)n->calls_to_count + 16;
		w->calls = reallocarray(NULL, w->call_room, sizeof *w->calls);
		if (!w->calls)
			w->call_room = 0;
	}
	if (!items || !w->calls) {
		free(items);
		return no_memory(err);
	}
	/* Of a large graph nearly all time goes to fetching from memory: this has several on their way at once. */
	for (uint32_t i = 0; i < n->calls_to_count; i++)
		__builtin_prefetch(&w->g->nodes[w->g->edges[n->calls_to[i]].callee].called_by_count);
	for (uint32_t i = 0; i < n->calls_to_count; i++) {
		const struct graph_edge *e = &w->g->edges[n->calls_to[i]];
		const struct graph_edge *figures = reference_is_root(w->g, e->callee) ? e : NULL;

		if (!w->ranks && reference_check_edge(w->g, e, err) < 0) {
			free(items);
			return -1;
		}
		if (w->o->keep && !w->o->keep(w->o->context, w->g, e->callee, figures))
			continue;
		items[kept] = (struct sorted){key_of(w, e->callee, e->tin, e->tall), n->calls_to[i], i};
		kept++;
	}
	sort(items, kept, w->calls);
	w->call_count = kept;
	free(items);
	return 0;
}

bool reference_may_fail(const struct graph *g)
{
	if (g->edge_costs_estimated)
		return true;
	for (size_t i = 0; i < g->edge_count; i++)
		if (g->edges[i].nc2 <= 0)
			return true;
	return false;
}

int reference_pass_on(FILE *stream, struct buf *out, struct error *err)
{
	if (out->failed)
		return error_set(err, "out of memory for the text of a call graph");
	if (!stream || out->length < PIECE)
		return 0;
	if (fwrite(out->text, 1, out->length, stream) != out->length)
		return error_set(err, "the answer cannot be written: %m");
	buf_clear(out);
	return 0;
}

int reference_digits(int64_t largest, unsigned *ret, struct error *err)
{
	if (largest <= 0)
		return error_set(err,
				 "no function to show has calls that are counted: the reference style has no columns "
				 "for that, use --style tree");
	*ret = (unsigned)(log((double)largest) / log(10) + 1.5);
	return 0;
}
