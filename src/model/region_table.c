#include "model/region_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void region_table_init(struct region_table *t)
{
	*t = (struct region_table){0};
}

void region_table_release(struct region_table *t)
{
	free(t->path);
	for (size_t i = 0; i < t->count; i++) {
		free(t->rows[i].name);
		free(t->rows[i].ranks);
	}
	free(t->rows);
	for (size_t i = 0; i < t->note_count; i++)
		free(t->notes[i]);
	free(t->notes);
	region_table_init(t);
}

const struct region_row *region_table_find(const struct region_table *t, const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].rank < 0 && strcmp(t->rows[i].name, name) == 0)
			return &t->rows[i];
	return NULL;
}

/* By enum region_metric. */
static const struct {
	const char *name, *unit;
} metrics[] = {
	[REGION_METRIC_GPU_TOTAL] = {"gpu_total", "ns"},
	[REGION_METRIC_GPU_AVG] = {"gpu_avg", "ns"},
	[REGION_METRIC_TOTAL] = {"total", "ns"},
	[REGION_METRIC_AVG] = {"avg", "ns"},
	[REGION_METRIC_MIN] = {"min", "ns"},
	[REGION_METRIC_MAX] = {"max", "ns"},
	[REGION_METRIC_P50] = {"p50", "ns"},
	[REGION_METRIC_P95] = {"p95", "ns"},
	[REGION_METRIC_P99] = {"p99", "ns"},
	[REGION_METRIC_IMBALANCE] = {"imbalance", "%"},
	[REGION_METRIC_CALLS] = {"calls", ""},
};

double region_row_metric(const struct region_row *row, enum region_metric m)
{
	if (m == REGION_METRIC_CALLS)
		return (double)row->calls;
	if (m == REGION_METRIC_GPU_TOTAL)
		return row->gpu_calls ? (double)row->gpu_total : NAN;
	if (m == REGION_METRIC_GPU_AVG)
		return row->gpu_avg;
	if (row->timed == 0)
		return NAN;
	switch (m) {
	case REGION_METRIC_TOTAL:
		return (double)row->total;
	case REGION_METRIC_AVG:
		return row->avg;
	case REGION_METRIC_MIN:
		return (double)row->min;
	case REGION_METRIC_MAX:
		return (double)row->max;
	case REGION_METRIC_P50:
		return row->p50;
	case REGION_METRIC_P95:
		return row->p95;
	case REGION_METRIC_P99:
		return row->p99;
	default:
		return row->imbalance;
	}
}

const char *region_metric_name(enum region_metric m)
{
	return metrics[m].name;
}

const char *region_metric_unit(enum region_metric m)
{
	return metrics[m].unit;
}

bool region_metric_find(const char *name, enum region_metric *ret)
{
	for (size_t i = 0; i < REGION_METRICS; i++) {
		if (strcmp(metrics[i].name, name) == 0) {
			*ret = (enum region_metric)i;
			return true;
		}
	}
	return false;
}
