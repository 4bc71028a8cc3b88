/* Any bytes as a profile of Python: the reader refuses them with a sentence that names the place, or gives a graph
 * whose lists fit its edges, and that the reference style shows or refuses. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "graph/reference.h"
#include "ingest/graph_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void check(const struct graph *g)
{
	size_t called = 0, calls = 0;

	require(g->finished && g->node_count > 0);
	for (size_t i = 0; i < g->node_count; i++) {
		const struct graph_node *n = &g->nodes[i];

		require(n->nc1 >= 0 && n->nc2 >= 0 && isfinite(n->tin) && isfinite(n->tall));
		for (uint32_t k = 0; k < n->called_by_count; k++)
			require(g->edges[n->called_by[k]].callee == i);
		for (uint32_t k = 0; k < n->calls_to_count; k++)
			require(g->edges[n->calls_to[k]].caller == i);
		called += n->called_by_count;
		calls += n->calls_to_count;
	}
	require(called == g->edge_count && calls == g->edge_count);
	require(graph_root(g) < g->node_count);
}

static void show(const struct graph *g)
{
	struct graph_rows_options o = {.start = GRAPH_NONE};
	struct error err;
	struct buf out;

	for (o.sort = GRAPH_BY_LINE; o.sort <= GRAPH_BY_CUMULATIVE; o.sort++) {
		buf_init(&out);
		err.text[0] = '\0';
		require(graph_reference_text(g, &o, 20, &out, &err) == 0 || err.text[0]);
		err.text[0] = '\0';
		require(graph_reference_json(g, &o, &out, &err) == 0 || err.text[0]);
		err.text[0] = '\0';
		require(graph_reference_rows(g, &o, &out, &err) == 0 || err.text[0]);
		require(graph_reference_flat(g, NULL, &out, &err) == 0);
		buf_release(&out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct graph_reading how = {.source = "input"};
	const char *const rules[] = {"basename", "a=b"};
	struct error err = {""};
	struct graph g;

	graph_init(&g);
	graph_reader_pstats.is((const char *)data, size);
	if (graph_reader_pstats.read((const char *)data, size, &how, &g, &err) == 0) {
		check(&g);
		show(&g);
		require(graph_clean(&g, rules, 2, false, &err) == 0);
		check(&g);
	} else {
		require(strncmp(err.text, "input: ", 7) == 0);
	}
	graph_release(&g);
	return 0;
}
