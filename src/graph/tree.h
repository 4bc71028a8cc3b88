/* A call graph as a tree for people: from the roots down, each call below its caller, with shares of the whole and of
 * the parent. Where the graph holds ways (stacks) the figures are exact; where it holds edges only, what lies below a
 * function with several callers is divided among them by what each one spent in it, and marked as an estimate. */
#ifndef ASSAY_GRAPH_TREE_H
#define ASSAY_GRAPH_TREE_H

#include "base/buf.h"
#include "graph/reference.h"

struct graph_tree_options {
	uint32_t root;        /* GRAPH_NONE: all roots. Else shares are of what this function took */
	enum graph_sort sort; /* siblings; all four */
	unsigned depth;       /* levels below the roots; 0: any */
	double min_share;     /* of the whole: smaller ones are summed up in one row below their caller; 0: none */
	graph_filter *keep;   /* NULL: all; what it drops is summed up, too */
	void *context;
	unsigned columns;     /* of text; 0: as wide as it gets */
	unsigned name_width;  /* of text: a name with its tree lines is no wider; 0: as fits */
	bool colour;
};

struct graph_tree_row {
	uint32_t node, parent; /* parent: index of the row above, GRAPH_NONE of a root */
	uint32_t depth;
	int64_t calls;         /* those that came back included; -1: not known */
	double self, total;    /* on this way */
	double share, share_of_parent; /* 0..1, never above */
	bool estimated;        /* below a function that is shared */
	bool self_estimated;   /* of a shared function itself, where its callers' parts in self are not known */
	bool calls_estimated;  /* the same of recursive calls: whose they are is not known */
	bool recursive;        /* calls that came back to a function on the way are folded into this row */
	bool cut;              /* its calls are not shown: `depth` is reached, or the tree is as large as it may be */
	uint32_t hidden;       /* a summary row of so many functions; node is GRAPH_NONE, calls -1 */
};

struct graph_tree {
	struct graph_tree_row *rows; /* parents before children, in the order of printing */
	size_t count, room;
	double whole;   /* what shares are of */
	bool too_large; /* edges only: GRAPH_TREE_ROWS_MAX or the work for it was reached */
	bool estimated; /* at least one row is */
};

/* Edges unfold into as many ways as there are, which may be endlessly many. */
#define GRAPH_TREE_ROWS_MAX 20000

void graph_tree_release(struct graph_tree *t);

/* Fills *ret, which need not be initialised, and is to be released afterwards, also after a failure (no memory). */
int graph_tree_build(const struct graph *g, const struct graph_tree_options *o, struct graph_tree *ret,
		     struct error *err);

/* These append to *out, and return -1 where there is no memory. */
int graph_tree_text(const struct graph *g, const struct graph_tree *t, const struct graph_tree_options *o,
		    struct buf *out);
int graph_tree_json(const struct graph *g, const struct graph_tree *t, struct buf *out);
int graph_tree_rows(const struct graph *g, const struct graph_tree *t, struct buf *out); /* JSON */
int graph_tree_csv(const struct graph *g, const struct graph_tree *t, struct buf *out);

/* The functions and calls of the graph, unfolded, for Graphviz: those with at least min_share, and calls with at least
 * a fifth of it. */
int graph_dot(const struct graph *g, const struct graph_tree_options *o, struct buf *out);

/* One line per function: by its own figures, in the order of `sort`. */
int graph_flat_text(const struct graph *g, const struct graph_tree_options *o, struct buf *out);

#endif
