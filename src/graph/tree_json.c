/* Not written yet. */
#include "graph/tree.h"
