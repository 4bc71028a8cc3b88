/* assay_graph.h: who called whom, how often and how long, in programs compiled with -finstrument-functions. Part of
 * assay.h, which includes it.
 *
 * C99 and C++. Every call is recorded while assay_profile runs. A graph is read-only once it is made: any number of
 * threads may read one at once. Times are seconds. */
#ifndef ASSAY_GRAPH_H
#define ASSAY_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct assay_graph;

/* nc1: calls that are not recursive; nc2: all; tin: seconds in the function itself; tall: with what it called,
 * recursion counted once. Texts live as long as the graph. */
struct assay_graph_node {
	const char *file, *function, *key; /* key: "file:line:function" */
	const char *module;                /* program or library; NULL: not known */
	int64_t line;                      /* 0: not known */
	int64_t nc1, nc2;
	double tin, tall;
	size_t called_by, calls_to; /* how many */
};

struct assay_graph_edge {
	size_t caller, callee; /* nodes */
	int64_t nc1, nc2;
	double tin, tall;
};

/* Calls function(context) and records what it calls, in all threads of this process; the function must return. Returns
 * 0 and the graph; -1 (assay_last_error) and nothing where calls are recorded already (by another assay_profile, or by
 * `assay profile --instrument`: the function is not called then), or where there is no room. Names are found by the
 * installed program `assay` ($ASSAY_PROGRAM, where that is set): without it, -1. */
int assay_profile(void (*function)(void *), void *context, struct assay_graph **graph);
void assay_graph_free(struct assay_graph *graph);

int assay_graph_read(const char *path, struct assay_graph **graph);
int assay_graph_write(const struct assay_graph *graph, const char *path); /* replaces the file whole */

size_t assay_graph_nodes(const struct assay_graph *graph);
size_t assay_graph_root(const struct assay_graph *graph); /* (size_t)-1: no node */
/* The `index`th of what a reader must be told (calls that were not recorded, and why); NULL: there are not so many. */
const char *assay_graph_note(const struct assay_graph *graph, size_t index);
/* Both fill *ret and return 0, or -1 where there is no such node or call. */
int assay_graph_node_at(const struct assay_graph *graph, size_t node, struct assay_graph_node *ret);
/* The `index`th call of a node: from its callers (`down` 0), or to what it calls. */
int assay_graph_edge_at(const struct assay_graph *graph, size_t node, int down, size_t index,
			struct assay_graph_edge *ret);

enum assay_graph_format { ASSAY_GRAPH_TREE, ASSAY_GRAPH_TEXT, ASSAY_GRAPH_JSON, ASSAY_GRAPH_ROWS, ASSAY_GRAPH_FLAT,
			  ASSAY_GRAPH_CSV, ASSAY_GRAPH_DOT };
enum assay_graph_sort { ASSAY_GRAPH_BY_LINE, ASSAY_GRAPH_BY_TIME, ASSAY_GRAPH_BY_CUMULATIVE };

struct assay_graph_view {
	enum assay_graph_format format;
	enum assay_graph_sort sort;
	/* Whether to show a node; edge: the call that leads there, NULL: a root. NULL: all, as FLAT does anyway. */
	int (*keep)(void *context, const struct assay_graph_node *node, const struct assay_graph_edge *edge);
	void *context;
	int width; /* of the names' column, 0: 60 */
};

/* The text, to be freed by free(); NULL (assay_last_error) where there is no memory. NULL view: the tree, the dearest
 * first. TREE and CSV are those of `assay tree --style tree`, TEXT, JSON, ROWS and FLAT those of --style reference. */
char *assay_graph_render(const struct assay_graph *graph, const struct assay_graph_view *view);

#ifdef __cplusplus
}
#endif

#endif
