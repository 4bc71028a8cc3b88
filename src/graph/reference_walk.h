/* The order in which the reference shows a graph: its roots, and the calls of a function that it shows below it. For
 * src/graph/reference*.c alone. */
#ifndef ASSAY_GRAPH_REFERENCE_WALK_H
#define ASSAY_GRAPH_REFERENCE_WALK_H

#include "graph/reference.h"

struct reference_walk {
	const struct graph *g;
	const struct graph_rows_options *o;
	uint32_t *ranks; /* of each node, by file and line; equal where these are. NULL: sorted by time */
	uint32_t *roots; /* those that are kept, sorted */
	size_t root_count;
	uint32_t *calls; /* of reference_calls */
	size_t call_count, call_room;
};

/* *w must be {0}; released also after a failure. */
int reference_begin(struct reference_walk *w, const struct graph *g, const struct graph_rows_options *o,
		    struct error *err);
void reference_end(struct reference_walk *w);

/* A function that is shown once for itself, and wherever it is called as a line that refers to that. */
bool reference_is_root(const struct graph *g, uint32_t node);

/* Fills w->calls with the edges to what is shown below a function, sorted. */
int reference_calls(struct reference_walk *w, uint32_t node, struct error *err);

/* Fails where the calls have no figures of their own that the reference could show. */
int reference_check_edge(const struct graph *g, const struct graph_edge *e, struct error *err);

/* Whether an answer that has begun may still fail for what the graph holds: then it is not to be written in pieces. */
bool reference_may_fail(const struct graph *g);

/* Writes what has gathered where that is a piece; NULL: leaves it. Fails also for want of memory in *out. */
int reference_pass_on(FILE *stream, struct buf *out, struct error *err);

/* The keys of a row's object, from "fct" to "ncalls"; and one more with a number, behind a comma. */
void reference_details(const struct graph *g, const struct graph_row *row, struct buf *out);
void reference_number(struct buf *out, const char *key, double value);

/* Columns of a number of calls: the reference's formula. Fails where it has no answer, as for 0. */
int reference_digits(int64_t largest, unsigned *ret, struct error *err);

#endif
