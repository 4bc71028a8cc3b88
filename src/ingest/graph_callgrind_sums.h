/* What a callgrind file does not say: how much a function cost with all that it called, recursion counted once.
 *
 * The file has costs of calls, and those of a call that is made within another call of the same function are in both.
 * Where the file tells the depths of a recursion apart (f, f'2), the calls to f alone are the answer. Else it is at
 * most what all functions that call each other in a circle cost together: their own costs and those of their calls that
 * leave the circle, which is exact for a function that only calls itself. Inside src/ingest only. */
#ifndef ASSAY_INGEST_GRAPH_CALLGRIND_SUMS_H
#define ASSAY_INGEST_GRAPH_CALLGRIND_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "graph/graph.h"

/* Beside each node of the graph, while its file is read. "First" is a function that is not deeper in a recursion. */
struct callgrind_function {
	double own_first, calls_of_first, calls_to_first;
	bool has_first; /* it occurs as a first one */
	bool called;	/* as a first one */
	bool entry;	/* `line` is where it begins, not only the first line that has a cost */
	int64_t line;
};

/* Of a finished graph whose nodes have their own costs as tin, and whose edges have in tall the cost of calls of and to
 * first functions, in tin that of calls between deeper ones, in nc1 the calls to first ones and in nc2 all. Fills the
 * rest of nodes and edges. `separated`: the file tells depths apart. */
int callgrind_sums(struct graph *g, const struct callgrind_function *functions, bool separated, struct error *err);

#endif
