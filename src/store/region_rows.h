/* The table of statistics of a file: reads all its calls once (twice where percentiles need it), on several threads, in
 * bounded memory: percentiles are exact, and yet no more than REGION_ROWS_BYTES and 8 KiB per region are kept. */
#ifndef ASSAY_STORE_REGION_ROWS_H
#define ASSAY_STORE_REGION_ROWS_H

#include "model/region_query.h"
#include "model/region_table.h"
#include "store/region_file.h"

enum region_rows_by { REGION_ROWS_BY_REGION, REGION_ROWS_BY_RANK, REGION_ROWS_BY_THREAD };

/* Fills *ret (initialised); with BY_RANK one row per region and rank, with BY_THREAD per region, rank and thread. */
int region_rows(struct region_file *f, const struct region_query *q, enum region_rows_by by, struct region_table *ret,
		struct error *err);

/* The same with another bound of memory for what percentiles come from: bytes, and again as many in further passes. */
#define REGION_ROWS_BYTES (INT64_C(64) << 20)
int region_rows_within(struct region_file *f, const struct region_query *q, enum region_rows_by by, int64_t bytes,
		       struct region_table *ret, struct error *err);

#endif
