#include "store/region_parts.h"

#include <inttypes.h>
#include <stdlib.h>

size_t region_part_at(const struct regions *r, uint64_t row)
{
	size_t low = 0, high = r->part_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->parts[middle].first + r->parts[middle].count <= row)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int by_first(const void *a, const void *b)
{
	const struct region_part *left = a, *right = b;

	if (left->first != right->first)
		return left->first < right->first ? -1 : 1;
	return (left->count > 0) - (right->count > 0);
}

int region_parts_check(struct regions *r, struct error *err)
{
	uint64_t end = 0;

	for (size_t i = 0; i < r->part_count; i++) {
		struct region_part *part = &r->parts[i];

		if (part->first > r->call_count || part->count > r->call_count - part->first)
			return error_set(err,
					 "the region %.100s on rank %" PRIu32 " has calls %" PRIu64 " to %" PRIu64
					 " of %" PRIu64,
					 r->names[part->region], part->rank, part->first, part->first + part->count,
					 r->call_count);
	}
	if (r->part_count)
		qsort(r->parts, r->part_count, sizeof *r->parts, by_first);
	for (size_t i = 0; i < r->part_count; i++) {
		const struct region_part *part = &r->parts[i];

		if (part->count && part->first < end)
			return error_set(err, "call %" PRIu64 " belongs to two regions, one of them %.100s",
					 part->first, r->names[part->region]);
		end = part->count ? part->first + part->count : end;
	}
	return 0;
}
