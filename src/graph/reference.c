/* Not written yet. */
#include "graph/reference.h"
