/* A call graph as the reference tool prints it: its order, its filter, its alignment, its keys, to the last byte. */
#ifndef ASSAY_GRAPH_REFERENCE_H
#define ASSAY_GRAPH_REFERENCE_H

#include <stdio.h>

#include "base/buf.h"
#include "graph/graph.h"

enum graph_sort { GRAPH_BY_LINE, GRAPH_BY_TIME, GRAPH_BY_CUMULATIVE, GRAPH_BY_CALLS };

/* What is kept: `edge` (NULL: none) has the figures of the call that leads there, which then speak in place of the
 * node's own. */
typedef bool graph_filter(void *context, const struct graph *g, uint32_t node, const struct graph_edge *edge);

/* The reference's default: drops small built-ins. */
bool graph_filter_reference(void *context, const struct graph *g, uint32_t node, const struct graph_edge *edge);

struct graph_rows_options {
	uint32_t start;       /* GRAPH_NONE: the reference's root; rows hold what can be reached from it */
	enum graph_sort sort; /* GRAPH_BY_CALLS fails: it is not among the reference's */
	graph_filter *keep;   /* NULL: all */
	void *context;
	FILE *stream;         /* takes what is written piece by piece; NULL: all of it is left in the buffer */
};

struct graph_row {
	uint32_t node;
	int64_t nc1, nc2;
	double tin, tall;
	uint32_t indent, ncalls;
	bool more;     /* it is shown elsewhere */
	char debug[4]; /* as the reference has it */
};

struct graph_rows {
	struct graph_row *items;
	size_t count, room;
};

void graph_rows_release(struct graph_rows *r);
int graph_rows(const struct graph *g, const struct graph_rows_options *o, struct graph_rows *ret, struct error *err);

/* The reference's to_text (no line feed at its end), to_json and rows as JSON, its flat rows as JSON. Bytes that are
 * no UTF-8 become U+FFFD in JSON, and control characters in text are escaped.
 *
 * Of a large graph these are gigabytes: with a stream the buffer holds the last piece alone, which the caller writes.
 * Nothing has been written to the stream before a failure, but where memory ran out or writing failed. */
int graph_reference_text(const struct graph *g, const struct graph_rows_options *o, int width, struct buf *out,
			 struct error *err);
int graph_reference_json(const struct graph *g, const struct graph_rows_options *o, struct buf *out, struct error *err);
int graph_reference_rows(const struct graph *g, const struct graph_rows_options *o, struct buf *out, struct error *err);
int graph_reference_flat(const struct graph *g, FILE *stream, struct buf *out, struct error *err);

#endif
