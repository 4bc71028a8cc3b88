/* A hash map from small numbers (pids, tids) to pointers, which it does not own. */
#ifndef ASSAY_RECORD_ID_MAP_H
#define ASSAY_RECORD_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>

struct id_map {
	struct id_map_slot {
		int id;
		void *value; /* NULL: empty */
	} *slots;
	size_t count, room; /* room: a power of two, at least twice the count, or 0 */
};

void id_map_init(struct id_map *m);
void id_map_release(struct id_map *m);

void *id_map_find(const struct id_map *m, int id); /* NULL: none */

/* Replaces what is there. `value` is not NULL. False when out of memory. */
bool id_map_set(struct id_map *m, int id, void *value);
void id_map_remove(struct id_map *m, int id);

#endif
