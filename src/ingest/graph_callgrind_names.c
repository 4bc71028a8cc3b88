#include "ingest/graph_callgrind_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

void callgrind_names_release(struct callgrind_names *n)
{
	free(n->entries);
	free(n->slots);
	*n = (struct callgrind_names){0};
}

/* The slot of an id: its own, or the free one where it belongs. Most files count from 1, and such ids lie in order. */
static size_t slot_of(const struct callgrind_names *n, uint64_t id)
{
	size_t spread = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (n->slot_count - 1);
	size_t at = id < n->slot_count ? (size_t)id : spread;

	while (n->slots[at] && n->entries[n->slots[at] - 1].id != id)
		at = (at + 1) & (n->slot_count - 1);
	return at;
}

static int grow(struct callgrind_names *n, struct error *err)
{
	size_t room = n->room ? 2 * n->room : 256;
	struct callgrind_entry *entries = reallocarray(n->entries, room, sizeof *entries);
	uint32_t *slots = calloc(2 * room, sizeof *slots);

	n->entries = entries ? entries : n->entries;
	if (!entries || !slots || room > UINT32_MAX / 2) {
		free(slots);
		return error_set(err, "out of memory for %zu names", room);
	}
	free(n->slots);
	n->room = room;
	n->slots = slots;
	n->slot_count = 2 * room;
	for (size_t i = 0; i < n->count; i++)
		n->slots[slot_of(n, entries[i].id)] = (uint32_t)i + 1;
	return 0;
}

/* "(12)" at the start; where it is none the text is a name as a whole, as "(below main)" is. */
static bool read_id(const char **at, const char *end, uint64_t *ret)
{
	const char *digit = *at + 1;
	uint64_t id = 0;

	if (*at == end || **at != '(')
		return false;
	for (; digit < end && *digit >= '0' && *digit <= '9'; digit++)
		if (__builtin_mul_overflow(id, 10, &id) || __builtin_add_overflow(id, (uint64_t)(*digit - '0'), &id))
			return false;
	if (digit == *at + 1 || digit == end || *digit != ')')
		return false;
	*at = digit + 1;
	*ret = id;
	return true;
}

int callgrind_names_read(struct callgrind_names *n, const char *at, const char *end, struct callgrind_name *ret,
			 struct error *err)
{
	uint64_t id;
	size_t slot;
	struct callgrind_entry *entry;

	while (at < end && *at == ' ')
		at++;
	if (!read_id(&at, end, &id)) {
		*ret = (struct callgrind_name){at, (size_t)(end - at), CALLGRIND_NO_ENTRY};
		return 0;
	}
	while (at < end && *at == ' ')
		at++;
	if (n->count == n->room && grow(n, err) < 0)
		return -1;
	/* Valgrind counts from 1 as names come: where an entry lies is known without its slot. */
	if (id - 1 < n->count && n->entries[id - 1].id == id && at == end) {
		entry = &n->entries[id - 1];
		*ret = (struct callgrind_name){entry->text, entry->length, (uint32_t)(id - 1)};
		return 0;
	}
	slot = slot_of(n, id);
	if (!n->slots[slot] && at == end)
		return error_set(err, "the name (%" PRIu64 ") stands for nothing: it was not given before", id);
	if (!n->slots[slot])
		n->slots[slot] = (uint32_t)++n->count;
	entry = &n->entries[n->slots[slot] - 1];
	if (at < end)
		*entry = (struct callgrind_entry){
			.id = id, .text = at, .length = (size_t)(end - at), .node = GRAPH_NONE};
	*ret = (struct callgrind_name){entry->text, entry->length, n->slots[slot] - 1};
	return 0;
}

bool callgrind_recursion(const char *name, size_t length, size_t *ret_from, size_t *ret_to)
{
	for (size_t from = 1; from + 1 < length; from++) {
		size_t to = from + 1;

		if (name[from] != '\'')
			continue;
		while (to < length && name[to] >= '0' && name[to] <= '9')
			to++;
		if (to == from + 1 || (to < length && name[to] != '\''))
			continue;
		*ret_from = from;
		*ret_to = to;
		return true;
	}
	return false;
}
