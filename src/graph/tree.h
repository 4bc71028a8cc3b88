/* A call graph as a tree for people: from the roots down, each call below its caller, with shares of the whole and of
 * the parent. Where the graph holds ways (stacks) the shares are exact; where it holds edges only, what lies below a
 * function with several callers is divided in proportion to its callers, and marked as an estimate. */
#ifndef ASSAY_GRAPH_TREE_H
#define ASSAY_GRAPH_TREE_H

#include "base/buf.h"
#include "graph/reference.h"

struct graph_tree_options {
	uint32_t root;        /* GRAPH_NONE: all roots */
	enum graph_sort sort; /* siblings; all four */
	unsigned depth;       /* 0: any */
	double min_share;     /* of the whole: smaller ones are summed up in one line "(N more)"; 0: none */
	graph_filter *keep;   /* NULL: all */
	void *context;
	unsigned columns;     /* of text; 0: as wide as it gets */
	unsigned name_width;  /* of text: of the names' column; 0: as fits */
	bool colour;
};

struct graph_tree_row {
	uint32_t node, parent; /* parent: index of the row above, GRAPH_NONE of a root */
	uint32_t depth;
	int64_t calls;         /* -1: not known */
	double self, total;    /* on this way */
	double share, share_of_parent; /* 0..1, never above */
	bool estimated;        /* below a function that is shared */
	bool recursive;        /* calls that came back to a function on the way are folded into this row */
	bool elsewhere;        /* its calls are shown at another row (edges only, where a subtree would be repeated) */
	uint32_t hidden;       /* a summary row: so many functions; node is GRAPH_NONE */
};

struct graph_tree {
	struct graph_tree_row *rows; /* parents before children, in the order of printing */
	size_t count, room;
	double whole;
};

void graph_tree_release(struct graph_tree *t);
int graph_tree_build(const struct graph *g, const struct graph_tree_options *o, struct graph_tree *ret,
		     struct error *err);

int graph_tree_text(const struct graph *g, const struct graph_tree *t, const struct graph_tree_options *o,
		    struct buf *out);
int graph_tree_json(const struct graph *g, const struct graph_tree *t, struct buf *out);
int graph_tree_rows(const struct graph *g, const struct graph_tree *t, struct buf *out); /* JSON */
int graph_tree_csv(const struct graph *g, const struct graph_tree *t, struct buf *out);

/* All functions and calls of the graph, unfolded: Graphviz; and one row per function, the dearest first. */
int graph_dot(const struct graph *g, const struct graph_tree_options *o, struct buf *out);
int graph_flat_text(const struct graph *g, const struct graph_tree_options *o, struct buf *out);

#endif
