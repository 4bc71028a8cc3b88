#include "model/spy_result.h"

const char *const spy_resource_names[SPY_RESOURCES] = {"rss", "anon", "file", "swap", "pss"};

void spy_result_init(struct spy_result *r)
{
	*r = (struct spy_result){.high_water_begin = -1, .high_water_end = -1, .peak = -1, .peak_above = -1};
	for (size_t i = 0; i < SPY_RESOURCES; i++)
		monitor_init(&r->resources[i]);
	for (size_t i = 0; i < SPY_GPUS_MAX; i++)
		monitor_init(&r->gpus[i]);
	warnings_init(&r->warnings);
}

void spy_result_release(struct spy_result *r)
{
	warnings_release(&r->warnings);
}
