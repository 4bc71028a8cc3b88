/* What a graph keeps to itself: its texts, and how nodes, edges and ways are found. For src/graph/graph*.c alone. */
#ifndef ASSAY_GRAPH_GRAPH_HIDDEN_H
#define ASSAY_GRAPH_GRAPH_HIDDEN_H

#include "graph/graph.h"
#include "graph/graph_index.h"

struct graph_text_block;

/* How an edge is found that may be there already. */
struct graph_edges {
	struct graph_index index; /* of the edges of the latest caller; of all where callers are scattered */
	uint32_t latest;          /* GRAPH_NONE: none yet */
	bool scattered;           /* a function's calls stand in several places */
	bool *callers;            /* by node: it was the latest one */
	size_t caller_room;
};

struct graph_hidden {
	struct graph_text_block *blocks; /* texts, which live as long as the graph */
	struct graph_index nodes, ways;
	struct graph_edges edges;
	uint32_t *hashes; /* of each node: its texts are not read again when the index grows */
	uint32_t *lists;  /* of graph_finish: the edges of each node */
	size_t node_room, edge_room, way_room, aside_room;
};

/* What a node, and an edge or a way, is looked up by. */
struct graph_node_key {
	const char *file, *name, *module;
	int64_t line;
};
struct graph_pair_key {
	uint32_t first, second;
};

/* graph->hidden, made where there is none. NULL: out of memory. */
struct graph_hidden *graph_hidden(struct graph *g, struct error *err);

/* A copy that lives as long as the graph, with U+FFFD for each 0 byte. NULL: out of memory. */
char *graph_text(struct graph *g, const char *text, size_t length, struct error *err);

/* Room for one more in an array that the graph owns. */
int graph_room(void **items, size_t count, size_t *room, size_t size, const char *what, struct error *err);

void graph_edges_init(struct graph_edges *e);
void graph_edges_release(struct graph_edges *e);

uint32_t graph_node_hash(const struct graph_node_key *key);

/* Figures and edges of a graph that has ways. */
int graph_figures_of_ways(struct graph *g, struct error *err);

#endif
