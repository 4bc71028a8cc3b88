/* The statistics of regions, one row each: what inspect shows and diff, check and plots compare.
 *
 * All calls on the selected ranks pooled, as the Python package scope-profiler has it: avg is weighted by calls, std
 * has ddof 0, percentiles interpolate linearly (numpy's default), total is the sum over ranks, recursion counts
 * inclusively. Times are ns. Plain data; store/region_rows.h makes it from a file. */
#ifndef ASSAY_MODEL_REGION_TABLE_H
#define ASSAY_MODEL_REGION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum region_metric {
	REGION_METRIC_GPU_TOTAL,
	REGION_METRIC_GPU_AVG,
	REGION_METRIC_TOTAL,
	REGION_METRIC_AVG,
	REGION_METRIC_MIN,
	REGION_METRIC_MAX,
	REGION_METRIC_P50,
	REGION_METRIC_P95,
	REGION_METRIC_P99,
	REGION_METRIC_IMBALANCE,
	REGION_METRIC_CALLS,
	REGION_METRICS,
};

struct region_row {
	char *name;
	/* Which part of the region this row is: -1 all of it. */
	int64_t rank, thread; /* thread: index in the rank's thread table */
	uint64_t calls;   /* with times or without */
	uint64_t timed;   /* calls that the statistics below are of; 0: they are NaN, and total is 0 */
	uint64_t dropped; /* that found no room */
	int64_t total, min, max;
	double exclusive; /* NaN: not known */
	double avg, std, p50, p95, p99;
	bool approximate;     /* percentiles come from a histogram, within 1/16 */
	bool std_approximate; /* and so does std */
	/* (max / mean - 1) * 100 of the totals of ranks whose total is above 0; 0 with fewer than two. NaN in rows of
	 * one rank. */
	double imbalance;
	uint64_t ranks_with, ranks_selected; /* how many of the selected ranks ran it */
	double share; /* total / (wall * ranks_with): the part of a rank's wall time; above 1 with threads; NaN */
	uint64_t gpu_calls;
	int64_t gpu_total;
	double gpu_avg;            /* NaN: no GPU data */
	int64_t first_start, last_end;
	uint32_t *ranks; /* that ran it, ascending; ranks_with of them */
};

struct region_table {
	char *path;
	struct region_row *rows; /* by first start */
	size_t count;
	int64_t wall; /* ns from the first start to the last end of all regions on the selected ranks; 0: no calls */
	uint64_t ranks_selected;
	bool has_gpu;
	char **notes; /* warnings */
	size_t note_count;
};

void region_table_init(struct region_table *t);
void region_table_release(struct region_table *t);

/* NULL: no row of that name (rows of whole regions only). */
const struct region_row *region_table_find(const struct region_table *t, const char *name);

/* ns, %, or a count; NaN: not known. */
double region_row_metric(const struct region_row *row, enum region_metric m);
const char *region_metric_name(enum region_metric m); /* "gpu_total", ..., as options and JSON have it */
const char *region_metric_unit(enum region_metric m); /* "ns", "%", "" */
/* False: no such metric. */
bool region_metric_find(const char *name, enum region_metric *ret);

#endif
