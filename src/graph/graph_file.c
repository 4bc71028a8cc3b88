/* Not written yet. */
#include "graph/graph_file.h"
