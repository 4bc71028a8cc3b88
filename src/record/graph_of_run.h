/* What a run of ours recorded, as a call graph: its CPU samples, or the regions that its program marked. Both are made
 * of whole stacks, so that every figure is exact. Costs are seconds. */
#ifndef ASSAY_RECORD_GRAPH_OF_RUN_H
#define ASSAY_RECORD_GRAPH_OF_RUN_H

#include "base/error.h"
#include "graph/graph.h"
#include "model/warnings.h"
#include "store/rundir.h"

/* CPU time of all threads: functions, inlined ones too, with their files and modules. The sampler's own are left out.
 * *ret must be initialised; it is finished afterwards. Fails for a run without samples. */
int graph_of_samples(const struct rundir *dir, struct graph *ret, struct warnings *warnings, struct error *err);

/* Of a file of regions: the calls of all ranks and threads together, and the time in each. */
int graph_of_regions(const char *path, struct graph *ret, struct warnings *warnings, struct error *err);

#endif
