#include "record/perf_code.h"

#include <stdlib.h>
#include <string.h>

#define CODES_MAX 65536

void perf_codes_init(struct perf_codes *c)
{
	*c = (struct perf_codes){0};
}

void perf_codes_release(struct perf_codes *c)
{
	free(c->items);
	perf_codes_init(c);
}

/* The first one that ends behind the address. */
static size_t first_behind(const struct perf_codes *c, uint64_t address)
{
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->items[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool make_room(struct perf_codes *c)
{
	size_t room = c->room ? 2 * c->room : 16;
	struct perf_code *items;

	if (c->count + 2 <= c->room)
		return true;
	if (c->count + 2 > CODES_MAX)
		return false;
	items = reallocarray(c->items, room, sizeof *items);
	if (!items)
		return false;
	c->items = items;
	c->room = room;
	return true;
}

static void insert(struct perf_codes *c, size_t at, const struct perf_code *code)
{
	memmove(c->items + at + 1, c->items + at, (c->count - at) * sizeof *c->items);
	c->items[at] = *code;
	c->count++;
}

bool perf_codes_add(struct perf_codes *c, const struct perf_code *code)
{
	size_t first, last;

	if (code->start >= code->end)
		return true;
	if (!make_room(c))
		return false;
	first = first_behind(c, code->start);
	/* What begins before and ends in or behind the new one keeps what is not covered. */
	if (first < c->count && c->items[first].start < code->start) {
		struct perf_code rest = c->items[first];

		c->items[first].end = code->start;
		first++;
		if (rest.end > code->end) {
			rest.start = code->end;
			insert(c, first, &rest);
		}
	}
	for (last = first; last < c->count && c->items[last].end <= code->end; last++)
		;
	if (last < c->count && c->items[last].start < code->end)
		c->items[last].start = code->end;
	memmove(c->items + first, c->items + last, (c->count - last) * sizeof *c->items);
	c->count -= last - first;
	insert(c, first, code);
	return true;
}

bool perf_codes_copy(struct perf_codes *to, const struct perf_codes *from)
{
	struct perf_code *items = from->count ? reallocarray(NULL, from->count, sizeof *items) : NULL;

	if (from->count && !items)
		return false;
	if (from->count)
		memcpy(items, from->items, from->count * sizeof *items);
	free(to->items);
	*to = (struct perf_codes){items, from->count, from->count};
	return true;
}

const struct perf_code *perf_codes_find(const struct perf_codes *c, uint64_t address)
{
	size_t at = first_behind(c, address);

	return at < c->count && c->items[at].start <= address ? &c->items[at] : NULL;
}
