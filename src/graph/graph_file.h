/* A call graph in a file of ours (*.graph): what assay_profile and `assay profile --instrument` leave, and what `assay
 * tree` reads again. Text, one record to a line, nothing that a reader must believe. Format: docs/formats.md. */
#ifndef ASSAY_GRAPH_GRAPH_FILE_H
#define ASSAY_GRAPH_GRAPH_FILE_H

#include "base/buf.h"
#include "graph/graph.h"

bool graph_file_is(const char *text, size_t length);

/* *ret must be initialised; it is finished afterwards. Errors name the line. */
int graph_file_read(const char *text, size_t length, const char *source, struct graph *ret, struct error *err);

/* The same without graph_finish, before which the text is no longer needed. */
int graph_file_build(const char *text, size_t length, const char *source, struct graph *ret, struct error *err);

/* The other way round; out->failed tells of no memory. */
void graph_file_write(const struct graph *g, struct buf *out);

#endif
