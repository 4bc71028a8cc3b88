/* A call graph: functions, who called whom, and where the time went. Plain data and pure functions.
 *
 * It knows neither the formats that it is read from (src/ingest) nor how a terminal looks. Strings may hold any bytes:
 * whoever prints them escapes them. Costs are doubles in `unit`; counts that are not known are -1. */
#ifndef ASSAY_GRAPH_GRAPH_H
#define ASSAY_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define GRAPH_NONE UINT32_MAX

/* Of a .prof file: nc1 primitive calls (those that are not recursive), nc2 all calls, tin the time in the function
 * itself, tall with all that it called (recursion counted once). */
struct graph_node {
	char *file, *name; /* borrowed from the graph, never NULL */
	char *module;      /* library or object; borrowed, NULL: not known */
	int64_t line;      /* 0: not known */
	int64_t nc1, nc2;
	double tin, tall;
	/* After graph_finish: edges, by index into graph.edges, in the order of the file. */
	uint32_t *called_by, *calls_to; /* borrowed from the graph */
	uint32_t called_by_count, calls_to_count;
};

/* The same figures of the calls from one caller alone: nc1 primitive calls, nc2 all calls, as of a node (a .prof file
 * has the two the other way round here; so has --style reference). */
struct graph_edge {
	uint32_t caller, callee;
	int64_t nc1, nc2;
	double tin, tall;
};

/* A function that the file names and that is no part of the graph (the profiler's own end): flat rows alone show it,
 * where it stands in the file. Its node has no edges. */
struct graph_aside {
	uint32_t before; /* the index of the node that follows it in the file */
	struct graph_node node;
};

/* A way from a root: only of inputs that hold stacks. Way 0 is the root of all, with node GRAPH_NONE. A parent stands
 * before its children. */
struct graph_way {
	uint32_t parent, node;
	double self;   /* cost in this function on this very way */
	int64_t calls; /* -1: not known (samples) */
};

struct graph {
	struct graph_node *nodes; /* in the order of the file */
	struct graph_edge *edges;
	struct graph_way *ways;
	struct graph_aside *asides;
	size_t node_count, edge_count, way_count, aside_count;
	char *unit;     /* "s", "ns", "Ir", "samples"; owned */
	const char *source; /* "pstats", "callgrind", ...: which reader made it; a constant, NULL: none did */
	double total;   /* of all costs, after graph_finish: the sum of tin */
	double per_second; /* what makes seconds of a cost: 1 for "s", 1e-9 for "ns"; 0: it is no time */
	char **notes;   /* what a reader must be told */
	size_t note_count;
	bool edge_costs_estimated; /* the file counts calls and no times: tin and tall of edges are the node's, divided
				    * in proportion to nc2 */
	bool edge_selfs_estimated; /* tin of edges is the node's, divided in proportion to their tall */
	bool finished;
	/* Hidden from outside. */
	struct graph_hidden *hidden;
};

void graph_init(struct graph *g);
void graph_release(struct graph *g);

/* The function of that file, line, name and module, made where there is none: figures 0. Texts are copied; `length`
 * SIZE_MAX: up to the 0 (embedded 0 bytes become U+FFFD). Fails when out of memory or beyond 2^31 of them. */
int graph_node(struct graph *g, const char *file, size_t file_length, int64_t line, const char *name,
	       size_t name_length, const char *module, uint32_t *ret, struct error *err);

/* The edge, made where there is none, with figures 0. A pointer into the graph, valid until the next call. NULL with
 * *err. Only while building: not after graph_finish. */
struct graph_edge *graph_edge(struct graph *g, uint32_t caller, uint32_t callee, struct error *err);

/* The same where the caller knows that there is none yet: not looked up, and not found by graph_edge. */
struct graph_edge *graph_edge_new(struct graph *g, uint32_t caller, uint32_t callee, struct error *err);

/* The way below another that leads into `node`, made where there is none, self 0 and calls 0. The first call makes
 * way 0 too, which is the parent of the outermost. */
int graph_way(struct graph *g, uint32_t parent, uint32_t node, uint32_t *ret, struct error *err);

/* A function that is no part of the graph, see struct graph_aside. Texts are copied; figures are the caller's to fill.
 * NULL with *err. */
struct graph_node *graph_aside(struct graph *g, const char *file, size_t file_length, int64_t line, const char *name,
			       size_t name_length, struct error *err);

int graph_set_unit(struct graph *g, const char *unit, double per_second, struct error *err);
/* Out of memory: the note is lost, and -1. */
int graph_note(struct graph *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The last call while building. Where there are ways, the figures of nodes and edges are made of them: tin, tall
 * (recursion counted once), nc2 and nc1 (calls into a function that is not on the way already; -1 where calls are not
 * known). Makes the lists of edges of each node. Fails where there is no memory, or the costs add up to more than a
 * number can hold. */
int graph_finish(struct graph *g, struct error *err);

/* "file:line:function", owned; NULL when out of memory. */
char *graph_key(const struct graph_node *n);

/* The root as the reference's get_root finds it, started at the first node of the file; where that would never end (a
 * function that only calls itself), the node of the largest tall. GRAPH_NONE: no node. */
uint32_t graph_root(const struct graph *g);

/* Nodes whose name, or key, is that text; else whose name has it as a pattern (* ? [...]); the count of all that match,
 * the first `room` of them in *ret. */
size_t graph_find(const struct graph *g, const char *text, uint32_t *ret, size_t room);

/* Renames files (and functions without a file, whose names may hold paths): `basename`, or OLD=NEW, in turn; functions
 * that become one by it are added up (with a note) unless `strict`, which fails and names the key. A graph that was
 * finished is finished afterwards. After a failure it is only good to be released. */
int graph_clean(struct graph *g, const char *const *rules, size_t count, bool strict, struct error *err);

/* The same, but functions that become one stay apart: for lists of functions alone, since nothing can be added to the
 * graph, or found in it, afterwards. */
int graph_rename(struct graph *g, const char *const *rules, size_t count, struct error *err);

#endif
