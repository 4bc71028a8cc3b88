#include "report/region_columns.h"

#include <math.h>
#include <string.h>

static double calls(const struct region_row *r)
{
	return (double)r->calls;
}

static double total(const struct region_row *r)
{
	return r->timed ? (double)r->total : NAN;
}

static double exclusive(const struct region_row *r)
{
	return r->exclusive;
}

static double average(const struct region_row *r)
{
	return r->timed ? r->avg : NAN;
}

static double shortest(const struct region_row *r)
{
	return r->timed ? (double)r->min : NAN;
}

static double longest(const struct region_row *r)
{
	return r->timed ? (double)r->max : NAN;
}

static double deviation(const struct region_row *r)
{
	return r->timed ? r->std : NAN;
}

static double p50(const struct region_row *r)
{
	return r->timed ? r->p50 : NAN;
}

static double p95(const struct region_row *r)
{
	return r->timed ? r->p95 : NAN;
}

static double p99(const struct region_row *r)
{
	return r->timed ? r->p99 : NAN;
}

static double imbalance(const struct region_row *r)
{
	return r->timed ? r->imbalance : NAN;
}

static double share(const struct region_row *r)
{
	return r->share;
}

static double ranks(const struct region_row *r)
{
	return (double)r->ranks_with;
}

static double dropped(const struct region_row *r)
{
	return (double)r->dropped;
}

static double timed(const struct region_row *r)
{
	return (double)r->timed;
}

static double gpu_calls(const struct region_row *r)
{
	return (double)r->gpu_calls;
}

static double gpu_total(const struct region_row *r)
{
	return region_row_metric(r, REGION_METRIC_GPU_TOTAL);
}

static double gpu_avg(const struct region_row *r)
{
	return r->gpu_avg;
}

static double first_start(const struct region_row *r)
{
	return r->timed ? (double)r->first_start : NAN;
}

static double last_end(const struct region_row *r)
{
	return r->timed ? (double)r->last_end : NAN;
}

static bool guessed(const struct region_row *r)
{
	return r->approximate;
}

static bool guessed_std(const struct region_row *r)
{
	return r->std_approximate;
}

#define TIME REGION_COLUMN_TIME
#define COUNT REGION_COLUMN_COUNT
#define MOMENT REGION_COLUMN_MOMENT

const struct region_column_desc region_columns[] = {
	{"calls", COUNT, calls, true, NULL, "how often it was called"},
	{"total", TIME, total, true, NULL, "all its calls together, over ranks and threads"},
	{"exclusive", TIME, exclusive, true, NULL, "total without the regions inside it"},
	{"avg", TIME, average, true, NULL, "total / calls"},
	{"min", TIME, shortest, true, NULL, "the shortest call"},
	{"max", TIME, longest, true, NULL, "the longest call"},
	{"std", TIME, deviation, true, guessed_std, "standard deviation of its calls, ddof 0"},
	{"p50", TIME, p50, true, guessed, "median"},
	{"p95", TIME, p95, true, guessed, "95th percentile"},
	{"p99", TIME, p99, true, guessed, "99th percentile"},
	{"imbalance", REGION_COLUMN_PERCENT, imbalance, true, NULL, "(max / mean - 1) of the totals of ranks"},
	{"share", REGION_COLUMN_SHARE, share, true, NULL, "total / (wall time x ranks)"},
	{"ranks", COUNT, ranks, true, NULL, "how many of the selected ranks ran it"},
	{"dropped", COUNT, dropped, false, NULL, "calls that found no room"},
	{"timed", COUNT, timed, false, NULL, "calls whose time is known"},
	{"gpu_calls", COUNT, gpu_calls, false, NULL, "calls with a time on a GPU"},
	{"gpu_total", TIME, gpu_total, false, NULL, "their time on GPUs"},
	{"gpu_avg", TIME, gpu_avg, false, NULL, "gpu_total / gpu_calls"},
	{"first_start", MOMENT, first_start, false, NULL, "when its first call began, of the file's clock"},
	{"last_end", MOMENT, last_end, false, NULL, "when its last call ended"},
};
const size_t region_column_count = sizeof region_columns / sizeof *region_columns;

const struct region_column_desc *region_column_find(const char *name)
{
	for (size_t i = 0; i < region_column_count; i++)
		if (strcmp(region_columns[i].name, name) == 0)
			return &region_columns[i];
	return NULL;
}

size_t region_columns_choose(const char *const *names, bool gpu, const struct region_column_desc **ret, size_t most)
{
	size_t count = 0;

	if (names) {
		for (; *names && count < most; names++) {
			ret[count] = region_column_find(*names);
			count += ret[count] != NULL;
		}
		return count;
	}
	for (size_t i = 0; i < region_column_count && count < most; i++)
		if (region_columns[i].usual || (gpu && strncmp(region_columns[i].name, "gpu_", 4) == 0 &&
						region_columns[i].kind == TIME))
			ret[count++] = &region_columns[i];
	return count;
}
