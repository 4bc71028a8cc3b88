/* Any bytes as another tool's file, to every format whether it claims them or not: refused with a sentence that names
 * the file, or arms whose values are numbers that can be results. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ingest/foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static void check(const struct metric_set *metrics, const struct arms *arms)
{
	require(arms->count > 0);
	for (size_t i = 0; i < arms->count; i++) {
		const struct arm *arm = &arms->items[i];
		size_t present = 0;

		for (size_t j = 0; j < metrics->count; j++) {
			double value = arm_value(arm, j);

			require(isnan(value) || (isfinite(value) && value >= 0 && j >= metric_count));
			present += isnan(value) ? 0 : 1;
		}
		require((present > 0) == (arm->state == ARM_OK) && arm->source && arm->status);
	}
	for (size_t j = metric_count; j < metrics->count; j++)
		require(metrics->items[j].name[0] != '\0' && abs(metrics->items[j].direction) == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < foreign_count; i++) {
		struct metric_set metrics;
		struct arms arms;
		struct error err = {0};

		require(metric_set_init(&metrics, NULL) == 0);
		arms_init(&arms);
		foreigns[i]->is((const char *)data, size);
		if (foreigns[i]->read((const char *)data, size, "FILE", &metrics, &arms, &err) == 0)
			check(&metrics, &arms);
		else
			require(strncmp(err.text, "FILE: ", 6) == 0);
		metric_set_release(&metrics);
		arms_release(&arms);
	}
	return 0;
}
