/* Graphs that tests make, and the rows of the trees that come of them. */
#ifndef ASSAY_TESTS_GRAPH_ROWS_H
#define ASSAY_TESTS_GRAPH_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/tree.h"

static inline uint32_t node(struct graph *g, const char *name)
{
	uint32_t at;

	assert_int_equal(graph_node(g, "a.c", SIZE_MAX, 1, name, SIZE_MAX, NULL, &at, NULL), 0);
	return at;
}

static inline void begin(struct graph *g)
{
	graph_init(g);
	assert_int_equal(graph_set_unit(g, "s", 1, NULL), 0);
}

static inline void build(struct graph *g, const struct graph_tree_options *o, struct graph_tree *t)
{
	if (!g->finished)
		assert_int_equal(graph_finish(g, NULL), 0);
	assert_int_equal(graph_tree_build(g, o, t, NULL), 0);
}

static const struct graph_tree_options everything = {.root = GRAPH_NONE, .sort = GRAPH_BY_CUMULATIVE};

/* The row at the end of a way of names; the test fails where there is none. */
static inline const struct graph_tree_row *at(const struct graph *g, const struct graph_tree *t,
					      const char *const *names)
{
	uint32_t parent = GRAPH_NONE;

	for (; *names; names++) {
		size_t i = 0;

		while (i < t->count && (t->rows[i].parent != parent || t->rows[i].hidden ||
					strcmp(g->nodes[t->rows[i].node].name, *names) != 0))
			i++;
		if (i == t->count)
			fail_msg("there is no row %s", *names);
		parent = (uint32_t)i;
	}
	return &t->rows[parent];
}

#define AT(...) at(&g, &t, (const char *const[]){__VA_ARGS__, NULL})

static inline void assert_near(double value, double wanted)
{
	if (!(fabs(value - wanted) <= 1e-9 * (1 + fabs(wanted))))
		fail_msg("%.17g is not %.17g", value, wanted);
}

/* No row is above its parent, nor are all of one parent together; nor the roots above the whole. */
static inline void assert_adds_up(const struct graph_tree *t)
{
	double *below = calloc(t->count + 1, sizeof *below);

	assert_non_null(below);
	for (size_t i = 0; i < t->count; i++) {
		const struct graph_tree_row *r = &t->rows[i];

		assert_true(r->share >= 0 && r->share <= 1 && r->share_of_parent >= 0 && r->share_of_parent <= 1);
		assert_true(r->self >= 0 && r->self <= r->total * (1 + 1e-9));
		assert_true(r->parent == GRAPH_NONE || r->parent < i);
		below[r->parent == GRAPH_NONE ? t->count : r->parent] += r->total;
	}
	assert_true(below[t->count] <= t->whole * (1 + 1e-9));
	for (size_t i = 0; i < t->count; i++)
		assert_true(below[i] <= (t->rows[i].total - t->rows[i].self) * (1 + 1e-5) + 1e-12);
	free(below);
}

/* Ways "a b c" with a cost each. */
static inline void way(struct graph *g, const char *names, double self)
{
	uint32_t parent = 0;

	for (const char *c = names; *c; c++)
		assert_int_equal(graph_way(g, parent, node(g, (char[]){*c, 0}), &parent, NULL), 0);
	g->ways[parent].self += self;
	g->ways[parent].calls = 1;
}

#endif
