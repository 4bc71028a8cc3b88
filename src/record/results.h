/* The results of a finished run in its directory: summary.md, and run.json last. */
#ifndef ASSAY_RECORD_RESULTS_H
#define ASSAY_RECORD_RESULTS_H

#include "base/error.h"
#include "base/json.h"
#include "model/run.h"
#include "store/rundir.h"

/* *ret_json is run.json as an object, owned by the caller, also where it could not be written; NULL when out of memory.
 * A summary.md that cannot be written is a warning in the run, and so in run.json; returns -1 where run.json is not
 * there. */
int results_write(const struct rundir *dir, const json_t *begin, struct run *run, json_t **ret_json, struct error *err);

#endif
