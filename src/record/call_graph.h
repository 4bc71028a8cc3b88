/* From recordings of calls to a call graph: finds the names of the functions and adds up processes and threads. */
#ifndef ASSAY_RECORD_CALL_GRAPH_H
#define ASSAY_RECORD_CALL_GRAPH_H

#include "base/error.h"
#include "graph/graph.h"

/* Reads the recordings in a folder, builds the graph, in seconds, and writes it to `path`; *ret is initialised. What
 * has no name is called after its place: "MODULE!?+0x1234". Sentences about what is missing go to the graph's notes.
 * *hurry (may be NULL), set by a signal: what is left gets no names. Returns 1, and writes nothing, where no calls
 * were recorded: *err says why, as far as that can be told. */
int call_graph_make(const char *folder, const char *path, const volatile int *hurry, struct graph *ret,
		    struct error *err);

#endif
