/* Which functions of a call graph are in a cycle with each other (strongly connected components). For src/graph and
 * for readers of formats that leave recursion to them. Of a finished graph. */
#ifndef ASSAY_GRAPH_COMPONENTS_H
#define ASSAY_GRAPH_COMPONENTS_H

#include "graph/graph.h"

struct components {
	uint32_t *of;   /* by node: the number of its component */
	uint32_t *size; /* by component: how many nodes */
	size_t count;
};

/* *ret need not be initialised; released also after a failure (no memory). */
int components_find(const struct graph *g, struct components *ret, struct error *err);
void components_release(struct components *c);

#endif
