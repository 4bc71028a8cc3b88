/* run.json: the summary that every other command reads. Keys as in docs/formats.md. */
#ifndef ASSAY_STORE_RUNJSON_H
#define ASSAY_STORE_RUNJSON_H

#include "base/json.h"
#include "model/run.h"

#define RUNJSON_SCHEMA 1

/* A new object, or NULL when out of memory. `begin` is begin.json as written when the run started (machine,
 * machine_before, environment, options); its parts go in unchanged. */
json_t *runjson_build(const struct run *run, const json_t *begin);

/* The object of its key "regions"; NULL when out of memory. */
json_t *run_regions_json(const struct run_regions *r);

#endif
