/* Series whose names hold a device, a process, a thread or a file: what each did in each phase, gathered in the same
 * pass over the record as the figures. */
#ifndef ASSAY_RECORD_SERIES_H
#define ASSAY_RECORD_SERIES_H

#include <stdint.h>

#include "base/error.h"
#include "model/run.h"
#include "wire/records.h"

struct series_gathering;

/* The run's phases must be known; its series are filled by series_gather_end. */
int series_gather_begin(struct run *run, struct series_gathering **ret, struct error *err);

/* A definition: ids come as 0, 1, 2, ... The name is known to end within `used`. */
int series_gather_define(struct series_gathering *g, const struct wire_series *series, uint32_t used,
			 struct error *err);

void series_gather_point(struct series_gathering *g, uint32_t id, int64_t t, double value);

void series_gather_end(struct series_gathering *g);
void series_gather_free(struct series_gathering *g);

#endif
