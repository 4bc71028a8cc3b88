/* Profiles of other tools, and of ours, as call graphs: one file per format (graph_NAME.c) and a row in graphs.def.
 *
 * A format knows its files by their content, never by their name. It must cope with anything: truncated, hostile, huge,
 * empty, with cycles: one sentence that names the source and where, or a right answer. */
#ifndef ASSAY_INGEST_GRAPH_READER_H
#define ASSAY_INGEST_GRAPH_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "graph/graph.h"

struct graph_reading {
	const char *source;    /* the path, for errors */
	const char *event;     /* of formats with several costs: which; NULL: the first */
	bool fold_recursion;   /* callgrind's f'2 is f */
	struct buf *text;      /* owns the text that is read; NULL: it stays */
};

struct graph_reader {
	const char *name;    /* "pstats" */
	const char *summary; /* one line for help and docs */
	bool (*is)(const char *text, size_t length); /* cheap: by its beginning and shape */
	/* *ret is initialised; finished by the reader. */
	int (*read)(const char *text, size_t length, const struct graph_reading *how, struct graph *ret,
		    struct error *err);
};

#define GRAPH_READER(name) extern const struct graph_reader graph_reader_##name;
#include "ingest/graphs.def"
#undef GRAPH_READER

extern const struct graph_reader *const graph_readers[];
extern const size_t graph_reader_count;

/* For a reader that needs its text no more: a large file makes room for what is made of it. */
void graph_text_done(const struct graph_reading *how);

/* The format that takes this text, NULL: none. */
const struct graph_reader *graph_reader_of(const char *text, size_t length);

#endif
