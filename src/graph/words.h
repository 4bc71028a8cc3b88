/* How the figures and names of a call graph are written for people: trees and flat tables share it. */
#ifndef ASSAY_GRAPH_WORDS_H
#define ASSAY_GRAPH_WORDS_H

#include "base/buf.h"
#include "base/units.h"
#include "graph/graph.h"

/* A cost with its unit where it is a time, else the count alone. */
struct units_text graph_words_cost(const struct graph *g, double cost);

/* "0.0%" to "100.0%", or "~12.3%" of an estimate. */
struct units_text graph_words_share(double share, bool estimated);

/* The same mark before any figure. */
struct units_text graph_words_marked(struct units_text figure, bool estimated);

/* A name and where it is: "fct3  prog.py:9", within so many columns (SIZE_MAX: whole): first the folders of the file
 * go, then the middle of the name, then the file. Control characters become '?'. */
void graph_words_function(struct buf *out, const struct graph_node *n, size_t columns, bool colour);

/* The escape that begins a row of that share of the whole; "" without colour. */
const char *graph_words_colour(double share, bool colour);

#endif
