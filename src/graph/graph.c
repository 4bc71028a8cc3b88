/* Not written yet. */
#include "graph/graph.h"
