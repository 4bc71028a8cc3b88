/* Reads an arm from a run.json, ours or one that the reference tool wrote. Numbers that cannot be (negative, NaN, text)
 * are refused by name; missing ones are missing, unknown keys are passed over. */
#ifndef ASSAY_STORE_ARMFILE_H
#define ASSAY_STORE_ARMFILE_H

#include "base/json.h"
#include "model/arm.h"
#include "model/metric.h"

/* `path` is a run directory or a run.json. Adds an arm to *arms and the metrics that it brings along to *metrics. */
int armfile_read(const char *path, struct metric_set *metrics, struct arms *arms, struct error *err);

/* The same from an object in memory; `source` names it in errors. */
int armfile_take(const json_t *run, const char *source, struct metric_set *metrics, struct arms *arms,
		 struct error *err);

#endif
