/* What `assay tree` is given, as a call graph: a run directory, a file of regions, or a profile of any format that
 * src/ingest reads. What it is, is told by its content, never by its name. */
#ifndef ASSAY_RECORD_GRAPH_INPUT_H
#define ASSAY_RECORD_GRAPH_INPUT_H

#include "base/error.h"
#include "graph/graph.h"
#include "ingest/graph_reader.h"
#include "model/warnings.h"

struct graph_input {
	const char *path;    /* "-": standard input, of the formats that are one text */
	const char *event;   /* of files with several costs: which; NULL: the first */
	bool fold_recursion; /* callgrind's f'2 is f */
	bool regions;	     /* of a run that has both: its regions, not its CPU samples */
};

/* *ret must be initialised; it is finished afterwards. What a reader of the answer must be told is in ret->notes; what
 * was missing in a run, in *warnings. Fails with one sentence that names the path, and for what is no profile the
 * formats that are known. */
int graph_input_read(const struct graph_input *in, struct graph *ret, struct warnings *warnings, struct error *err);

#endif
