/* Texts and numbers of a graph in formats that other programs read: JSON, CSV, Graphviz. Bytes that are no UTF-8 become
 * U+FFFD. (base/json is not for the library that programs link, and this is.) */
#ifndef ASSAY_GRAPH_QUOTE_H
#define ASSAY_GRAPH_QUOTE_H

#include <stdint.h>

#include "base/buf.h"

#define GRAPH_PLACES_ROOM 352 /* the largest double has 309 digits before the point */

/* A JSON string with its quotes; NULL is null. */
void graph_quote_json(struct buf *out, const char *text);

/* As utf8_append_line, however long. */
void graph_quote_line(struct buf *out, const char *text);

/* A cell of CSV, quoted where RFC 4180 asks for it; NULL is an empty one. */
void graph_quote_csv(struct buf *out, const char *text);

/* A string of Graphviz's language with its quotes; a line feed in it is a new line of a label. */
void graph_quote_dot(struct buf *out, const char *text);

/* The fewest digits that read back as the same double; what is not finite is `missing`. */
void graph_quote_number(struct buf *out, double value, const char *missing);

/* As printf's %*d and %.5f, many times faster: reports of large graphs are mostly numbers. */
void graph_quote_whole(struct buf *out, int64_t value, unsigned width);
void graph_quote_places(struct buf *out, double value);
void graph_places(double value, char ret[static GRAPH_PLACES_ROOM]);

#endif
