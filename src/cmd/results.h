/* Results that are compared: runs of ours, of the reference tool, and other tools' files. */
#ifndef ASSAY_CMD_RESULTS_H
#define ASSAY_CMD_RESULTS_H

#include <stdbool.h>

#include "model/arm.h"
#include "model/metric.h"

/* Adds what a file holds: a run.json, or another tool's results. *ret_foreign (may be NULL) is set where it is the
 * latter, else left alone. `no_other` tells in the error what else it could have been ("file of regions, no "), or
 * is "". */
int results_read(const char *path, const char *no_other, struct metric_set *metrics, struct arms *arms,
		 bool *ret_foreign, struct error *err);

#endif
