#include "model/run_regions.h"

#include <stdlib.h>

void run_regions_init(struct run_regions *r)
{
	*r = (struct run_regions){0};
}

void run_regions_release(struct run_regions *r)
{
	for (size_t i = 0; i < r->top_count; i++)
		free(r->top[i].name);
	run_regions_init(r);
}
