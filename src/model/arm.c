#include "model/arm.h"

#include <math.h>
#include <stdlib.h>

void arms_init(struct arms *a)
{
	*a = (struct arms){0};
}

void arms_drop_last(struct arms *a)
{
	struct arm *last = &a->items[--a->count];

	free(last->source);
	free(last->status);
	free(last->values);
}

void arms_release(struct arms *a)
{
	while (a->count > 0)
		arms_drop_last(a);
	free(a->items);
	arms_init(a);
}

struct arm *arms_add(struct arms *a)
{
	if (a->count == a->room) {
		size_t room = a->room ? 2 * a->room : 16;
		struct arm *items = reallocarray(a->items, room, sizeof *items);

		if (!items)
			return NULL;
		a->items = items;
		a->room = room;
	}
	a->items[a->count] = (struct arm){.started_ns = INT64_MIN, .block = -1, .position = -1};
	return &a->items[a->count++];
}

double arm_value(const struct arm *arm, size_t metric)
{
	return metric < arm->value_count ? arm->values[metric] : NAN;
}

int arm_set(struct arm *arm, size_t metric, double value)
{
	if (metric >= arm->value_count) {
		size_t count = metric < 2 * arm->value_count ? 2 * arm->value_count : metric + 1;
		double *values = reallocarray(arm->values, count, sizeof *values);

		if (!values)
			return -1;
		for (size_t i = arm->value_count; i < count; i++)
			values[i] = NAN;
		arm->values = values;
		arm->value_count = count;
	}
	arm->values[metric] = value;
	return 0;
}
