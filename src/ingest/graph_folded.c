/* Not written yet. */
#include "ingest/graph_reader.h"
