#include "graph/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "graph/tree_growth.h"

void graph_tree_release(struct graph_tree *t)
{
	free(t->rows);
	*t = (struct graph_tree){0};
}

void tree_growth_release(struct tree_growth *t)
{
	free(t->vertices);
	*t = (struct tree_growth){0};
}

uint32_t tree_growth_add(struct tree_growth *t, uint32_t parent, uint32_t node)
{
	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 256;
		struct tree_vertex *vertices = reallocarray(t->vertices, room, sizeof *vertices);

		if (!vertices)
			return GRAPH_NONE;
		t->vertices = vertices;
		t->room = room;
	}
	t->vertices[t->count] = (struct tree_vertex){
		.node = node, .parent = parent, .depth = parent == GRAPH_NONE ? 0 : t->vertices[parent].depth + 1};
	return (uint32_t)t->count++;
}

bool tree_growth_is_small(const struct tree_growth *t, const struct graph_tree_options *o, double total)
{
	return o->min_share > 0 && total < o->min_share * t->whole;
}

/* A row that is still to come: a vertex's, or the summary of what is hidden below it. */
struct pending {
	uint32_t vertex; /* of a summary GRAPH_NONE: of the roots */
	uint32_t parent; /* the row above */
	bool summary;
};

/* The grown tree on its way to rows. */
struct arranging {
	const struct graph *g;
	const struct graph_tree_options *o;
	struct tree_growth growth;
	bool *shown;       /* by vertex */
	uint32_t *below;   /* by vertex: where the vertices that it calls begin in `order`; the roots' are the last */
	uint32_t *order;   /* the vertices that are shown, those of one parent together and sorted */
	struct pending *waiting; /* the next one last */
};

static void arranging_release(struct arranging *a)
{
	tree_growth_release(&a->growth);
	free(a->shown);
	free(a->below);
	free(a->order);
	free(a->waiting);
}

/* Whether the filter keeps a vertex of a tree of ways, by what it is there. */
static bool is_kept(const struct arranging *a, const struct tree_vertex *v)
{
	struct graph_edge e = {.callee = v->node, .nc1 = v->calls, .nc2 = v->calls, .tin = v->self, .tall = v->total};

	if (!a->o->keep)
		return true;
	if (v->parent == GRAPH_NONE)
		return a->o->keep(a->o->context, a->g, v->node, NULL);
	e.caller = a->growth.vertices[v->parent].node;
	return a->o->keep(a->o->context, a->g, v->node, &e);
}

/* Parents stand before their children. What grew of edges has been chosen already, and is small in the eyes of none. */
static void choose(struct arranging *a)
{
	struct tree_growth *t = &a->growth;

	for (size_t i = 0; i < t->count; i++) {
		struct tree_vertex *v = &t->vertices[i], *parent = NULL;

		if (v->parent != GRAPH_NONE) {
			parent = &t->vertices[v->parent];
			if (!a->shown[v->parent])
				continue;
			if (a->o->depth && v->depth > a->o->depth) {
				parent->cut = true;
				continue;
			}
		}
		a->shown[i] = a->g->way_count == 0 || (!tree_growth_is_small(t, a->o, v->total) && is_kept(a, v));
		if (!a->shown[i] && parent) {
			parent->hidden++;
			parent->hidden_total += v->total;
		} else if (!a->shown[i]) {
			t->hidden++;
			t->hidden_total += v->total;
		}
	}
}

static int compare_numbers(double a, double b)
{
	return a > b ? -1 : a < b;
}

static int compare_places(const struct graph_node *a, const struct graph_node *b)
{
	int files = strcmp(a->file, b->file);

	return files ? files : (a->line > b->line) - (a->line < b->line);
}

/* Equal ones stay in the order of the file. */
static int compare_vertices(const void *left, const void *right, void *context)
{
	const struct arranging *a = context;
	uint32_t i = *(const uint32_t *)left, j = *(const uint32_t *)right;
	const struct tree_vertex *x = &a->growth.vertices[i], *y = &a->growth.vertices[j];
	int got = 0;

	switch (a->o->sort) {
	case GRAPH_BY_LINE:
		got = compare_places(&a->g->nodes[x->node], &a->g->nodes[y->node]);
		break;
	case GRAPH_BY_TIME:
		got = compare_numbers(x->self, y->self);
		break;
	case GRAPH_BY_CUMULATIVE:
		got = compare_numbers(x->total, y->total);
		break;
	case GRAPH_BY_CALLS:
		got = compare_numbers((double)x->calls, (double)y->calls);
		break;
	}
	return got ? got : (i > j) - (i < j);
}

/* Puts those of one parent together, by counting, and sorts them. */
static void arrange(struct arranging *a)
{
	const struct tree_growth *t = &a->growth;
	size_t n = t->count;
	uint32_t shown;

	for (size_t i = 0; i < n; i++)
		if (a->shown[i])
			a->below[(t->vertices[i].parent == GRAPH_NONE ? n : t->vertices[i].parent) + 1]++;
	for (size_t i = 0; i <= n; i++)
		a->below[i + 1] += a->below[i];
	shown = a->below[n + 1];
	/* Filled from behind: then each end is where that parent's begin. */
	for (size_t i = n; i-- > 0;)
		if (a->shown[i])
			a->order[--a->below[(t->vertices[i].parent == GRAPH_NONE ? n : t->vertices[i].parent) + 1]] =
				(uint32_t)i;
	memmove(a->below, a->below + 1, (n + 1) * sizeof *a->below);
	a->below[n + 1] = shown;
	for (size_t i = 0; i <= n; i++)
		if (a->below[i + 1] - a->below[i] > 1)
			qsort_r(a->order + a->below[i], a->below[i + 1] - a->below[i], sizeof *a->order,
				compare_vertices, a);
}

static double share_of(double part, double whole)
{
	double share = whole > 0 ? part / whole : 0;

	return share > 1 ? 1 : share > 0 ? share : 0;
}

static struct graph_tree_row *add_row(struct graph_tree *t)
{
	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 256;
		struct graph_tree_row *rows = reallocarray(t->rows, room, sizeof *rows);

		if (!rows)
			return NULL;
		t->rows = rows;
		t->room = room;
	}
	t->rows[t->count] = (struct graph_tree_row){0};
	return &t->rows[t->count++];
}

static int put_row(struct graph_tree *t, const struct tree_vertex *v, uint32_t parent)
{
	struct graph_tree_row *row = add_row(t);

	if (!row)
		return -1;
	*row = (struct graph_tree_row){
		.node = v->node,
		.parent = parent,
		.depth = v->depth,
		.calls = v->calls,
		.self = v->self,
		.total = v->total,
		.share = share_of(v->total, t->whole),
		.share_of_parent = share_of(v->total, parent == GRAPH_NONE ? t->whole : t->rows[parent].total),
		.estimated = v->estimated,
		.self_estimated = v->self_estimated,
		.calls_estimated = v->estimated || v->calls_estimated,
		.recursive = v->recursive,
		.cut = v->cut,
	};
	t->estimated |= v->estimated || v->self_estimated || v->calls_estimated;
	return 0;
}

static int put_summary(struct graph_tree *t, uint32_t hidden, double total, uint32_t parent)
{
	const struct graph_tree_row *above;
	struct graph_tree_row *row = add_row(t);

	if (!row)
		return -1;
	above = parent == GRAPH_NONE ? NULL : &t->rows[parent];
	*row = (struct graph_tree_row){
		.node = GRAPH_NONE,
		.parent = parent,
		.depth = above ? above->depth + 1 : 0,
		.calls = -1,
		.total = total,
		.share = share_of(total, t->whole),
		.share_of_parent = share_of(total, above ? above->total : t->whole),
		.estimated = above && above->estimated,
		.hidden = hidden,
	};
	return 0;
}

static int put_pending(struct arranging *a, const struct pending *p, struct graph_tree *t)
{
	const struct tree_growth *growth = &a->growth;
	const struct tree_vertex *v = p->vertex == GRAPH_NONE ? NULL : &growth->vertices[p->vertex];

	if (!p->summary)
		return put_row(t, v, p->parent);
	return put_summary(t, v ? v->hidden : growth->hidden, v ? v->hidden_total : growth->hidden_total, p->parent);
}

/* The rows of a vertex's calls follow its own; the summary of those that are hidden comes behind them all. */
static int emit(struct arranging *a, struct graph_tree *t)
{
	const struct tree_growth *growth = &a->growth;
	uint32_t vertex = GRAPH_NONE, row = GRAPH_NONE;
	size_t count = 0;

	for (;;) {
		size_t at = vertex == GRAPH_NONE ? growth->count : vertex;

		if (vertex == GRAPH_NONE ? growth->hidden : growth->vertices[vertex].hidden)
			a->waiting[count++] = (struct pending){vertex, row, true};
		for (uint32_t i = a->below[at + 1]; i-- > a->below[at];)
			a->waiting[count++] = (struct pending){a->order[i], row, false};
		do {
			if (!count)
				return 0;
			if (put_pending(a, &a->waiting[--count], t) < 0)
				return -1;
		} while (a->waiting[count].summary);
		vertex = a->waiting[count].vertex;
		row = (uint32_t)(t->count - 1);
	}
}

int graph_tree_build(const struct graph *g, const struct graph_tree_options *o, struct graph_tree *ret,
		     struct error *err)
{
	CLEANUP(arranging_release) struct arranging a = {.g = g, .o = o};
	size_t room;

	*ret = (struct graph_tree){0};
	if ((g->way_count ? tree_grow_ways : tree_grow_edges)(g, o, &a.growth, err) < 0)
		return -1;
	room = a.growth.count + 2;
	a.shown = calloc(room, sizeof *a.shown);
	a.below = calloc(room, sizeof *a.below);
	a.order = calloc(room, sizeof *a.order);
	a.waiting = calloc(2 * room, sizeof *a.waiting);
	if (!a.shown || !a.below || !a.order || !a.waiting)
		return error_set(err, "out of memory for a tree of %zu rows", a.growth.count);
	choose(&a);
	arrange(&a);
	ret->whole = a.growth.whole;
	ret->too_large = a.growth.too_large;
	if (emit(&a, ret) < 0)
		return error_set(err, "out of memory for a tree of %zu rows", a.growth.count);
	return 0;
}
