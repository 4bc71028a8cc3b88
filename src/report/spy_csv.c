#include "report/spy_report.h"

#include <inttypes.h>

#include "base/clock.h"

#define US_PER_S INT64_C(1000000)

void spy_csv_heading(size_t gpu_count, FILE *out)
{
	fputs("t_s", out);
	for (size_t i = 0; i < SPY_RESOURCES; i++)
		fprintf(out, ",%s", spy_resource_names[i]);
	fputs(",processes", out);
	for (size_t i = 0; i < gpu_count; i++)
		fprintf(out, ",gpu%zu", i);
	fputc('\n', out);
}

static void put_cell(int64_t value, FILE *out)
{
	if (value >= 0)
		fprintf(out, ",%" PRId64, value);
	else
		fputc(',', out);
}

void spy_csv_row(const struct spy_sample *s, int64_t begin, FILE *out)
{
	int64_t us = s->t > begin ? (s->t - begin) / (NS_PER_S / US_PER_S) : 0;

	/* Of whole numbers, so that no locale has a say in it. */
	fprintf(out, "%" PRId64 ".%06" PRId64, us / US_PER_S, us % US_PER_S);
	for (size_t i = 0; i < SPY_RESOURCES; i++)
		put_cell(s->bytes[i], out);
	fprintf(out, ",%zu", s->processes);
	for (size_t i = 0; i < s->gpu_count; i++)
		put_cell(s->gpus[i], out);
	fputc('\n', out);
}
