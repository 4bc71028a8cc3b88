/* Call graphs in files of ours: what assay_profile and `assay profile --instrument` leave. */
#include "graph/graph_file.h"
#include "ingest/graph_reader.h"

static int read_own(const char *text, size_t length, const struct graph_reading *how, struct graph *ret,
		    struct error *err)
{
	if (how->event)
		return error_set(err, "%s: a graph file holds one cost: there is no event to choose", how->source);
	if (graph_file_build(text, length, how->source, ret, err) < 0)
		return -1;
	graph_text_done(how);
	return graph_finish(ret, err);
}

const struct graph_reader graph_reader_own = {
	.name = "graph",
	.summary = "what assay profile --instrument and assay_profile() leave (calls.graph)",
	.is = graph_file_is,
	.read = read_own,
};
