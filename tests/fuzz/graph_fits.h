/* What a reader of call graphs may make of any bytes: a sentence that names the source, or a graph whose parts fit
 * together and whose figures can be. For the fuzz targets of readers. */
#ifndef ASSAY_FUZZ_GRAPH_FITS_H
#define ASSAY_FUZZ_GRAPH_FITS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ingest/graph_reader.h"

static inline void require(int condition)
{
	if (!condition)
		abort();
}

static inline void require_graph(const struct graph *g)
{
	double slack = 1e-6 * g->total;

	require(g->finished && g->node_count > 0 && g->unit && *g->source);
	for (size_t i = 0; i < g->node_count; i++) {
		const struct graph_node *n = &g->nodes[i];

		require(n->name && n->file && n->line >= 0 && n->nc1 >= -1 && n->nc2 >= -1);
		require(isfinite(n->tin) && isfinite(n->tall) && n->tin >= 0 && n->tall >= n->tin - slack);
	}
	for (size_t i = 0; i < g->edge_count; i++) {
		const struct graph_edge *e = &g->edges[i];

		require(e->caller < g->node_count && e->callee < g->node_count && e->nc2 >= -1);
		require(isfinite(e->tin) && isfinite(e->tall) && e->tin >= 0 && e->tall >= 0);
	}
	for (size_t i = 1; i < g->way_count; i++)
		require(g->ways[i].parent < i && g->ways[i].node < g->node_count && g->ways[i].self >= 0);
}

/* Folded and not, whether the reader claims the bytes or not. */
static inline void require_fitting(const struct graph_reader *reader, const uint8_t *data, size_t size)
{
	reader->is((const char *)data, size);
	for (int fold = 0; fold < 2; fold++) {
		const struct graph_reading how = {"FILE", NULL, fold};
		struct graph g;
		struct error err = {""};

		graph_init(&g);
		if (reader->read((const char *)data, size, &how, &g, &err) == 0)
			require_graph(&g);
		else
			require(strncmp(err.text, "FILE: ", 6) == 0);
		graph_release(&g);
	}
}

#endif
