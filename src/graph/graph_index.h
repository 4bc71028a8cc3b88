/* Finds items of an array by their content: a hash table of 32-bit indices with open addressing.
 *
 * It holds no item and no key, only where they are: who owns the array says what is equal, and hashes. */
#ifndef ASSAY_GRAPH_GRAPH_INDEX_H
#define ASSAY_GRAPH_GRAPH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRAPH_INDEX_NONE UINT32_MAX

struct graph_index {
	uint32_t *slots; /* GRAPH_INDEX_NONE: free */
	size_t room, used;
	uint32_t (*hash)(const void *owner, uint32_t item);
	bool (*same)(const void *owner, uint32_t item, const void *key);
};

void graph_index_release(struct graph_index *x);

/* Holds nothing any more, and keeps its memory. */
void graph_index_clear(struct graph_index *x);

/* The item whose key that is, else GRAPH_INDEX_NONE. `hash` must be what x->hash gives of such an item. */
uint32_t graph_index_find(const struct graph_index *x, const void *owner, uint32_t hash, const void *key);

/* Puts in an item that graph_index_find does not find. False: out of memory, and nothing is changed. */
bool graph_index_add(struct graph_index *x, const void *owner, uint32_t item);

/* Of bytes, and of two numbers; `seed` is an earlier hash that this one goes on from. */
uint32_t graph_hash_bytes(uint32_t seed, const char *bytes, size_t length);
uint32_t graph_hash_pair(uint32_t a, uint32_t b);

#endif
