#include "graph/graph_index.h"

#include <stdlib.h>
#include <string.h>

void graph_index_release(struct graph_index *x)
{
	free(x->slots);
	x->slots = NULL;
	x->room = x->used = 0;
}

void graph_index_clear(struct graph_index *x)
{
	if (x->used)
		memset(x->slots, 0xff, x->room * sizeof *x->slots);
	x->used = 0;
}

uint32_t graph_index_find(const struct graph_index *x, const void *owner, uint32_t hash, const void *key)
{
	if (!x->room)
		return GRAPH_INDEX_NONE;
	for (size_t i = hash & (x->room - 1);; i = (i + 1) & (x->room - 1))
		if (x->slots[i] == GRAPH_INDEX_NONE || x->same(owner, x->slots[i], key))
			return x->slots[i];
}

static void put(struct graph_index *x, uint32_t hash, uint32_t item)
{
	size_t i = hash & (x->room - 1);

	while (x->slots[i] != GRAPH_INDEX_NONE)
		i = (i + 1) & (x->room - 1);
	x->slots[i] = item;
}

static bool grow(struct graph_index *x, const void *owner)
{
	struct graph_index larger = *x;

	larger.room = x->room ? 2 * x->room : 64;
	larger.slots = reallocarray(NULL, larger.room, sizeof *larger.slots);
	if (!larger.slots)
		return false;
	memset(larger.slots, 0xff, larger.room * sizeof *larger.slots);
	for (size_t i = 0; i < x->room; i++)
		if (x->slots[i] != GRAPH_INDEX_NONE)
			put(&larger, x->hash(owner, x->slots[i]), x->slots[i]);
	free(x->slots);
	*x = larger;
	return true;
}

bool graph_index_add(struct graph_index *x, const void *owner, uint32_t item)
{
	/* Up to three quarters full. */
	if (4 * x->used >= 3 * x->room && !grow(x, owner))
		return false;
	put(x, x->hash(owner, item), item);
	x->used++;
	return true;
}

/* Murmur3's last steps: each bit of the input reaches each of the result. */
static uint32_t mixed(uint64_t value)
{
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdULL;
	value ^= value >> 33;
	value *= 0xc4ceb9fe1a85ec53ULL;
	return (uint32_t)(value ^ value >> 33);
}

uint32_t graph_hash_bytes(uint32_t seed, const char *bytes, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325ULL ^ seed;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3ULL;
	return mixed(hash);
}

uint32_t graph_hash_pair(uint32_t a, uint32_t b)
{
	return mixed((uint64_t)a << 32 | b);
}
