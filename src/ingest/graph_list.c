#include "ingest/graph_reader.h"

const struct graph_reader *const graph_readers[] = {
#define GRAPH_READER(name) &graph_reader_##name,
#include "ingest/graphs.def"
#undef GRAPH_READER
};

const size_t graph_reader_count = sizeof graph_readers / sizeof *graph_readers;

const struct graph_reader *graph_reader_of(const char *text, size_t length)
{
	for (size_t i = 0; i < graph_reader_count; i++)
		if (graph_readers[i]->is(text, length))
			return graph_readers[i];
	return NULL;
}

void graph_text_done(const struct graph_reading *how)
{
	if (how->text)
		buf_release(how->text);
}
