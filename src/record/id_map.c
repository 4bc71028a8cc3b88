#include "record/id_map.h"

#include <stdint.h>
#include <stdlib.h>

void id_map_init(struct id_map *m)
{
	*m = (struct id_map){0};
}

void id_map_release(struct id_map *m)
{
	free(m->slots);
	id_map_init(m);
}

static size_t home(const struct id_map *m, int id)
{
	return ((uint32_t)id * UINT32_C(0x9e3779b1)) >> 7 & (m->room - 1);
}

/* Where the id is, or the empty place where it would be. */
static size_t place(const struct id_map *m, int id)
{
	size_t at = home(m, id);

	while (m->slots[at].value && m->slots[at].id != id)
		at = (at + 1) & (m->room - 1);
	return at;
}

void *id_map_find(const struct id_map *m, int id)
{
	return m->room ? m->slots[place(m, id)].value : NULL;
}

static bool grow(struct id_map *m)
{
	struct id_map larger = {.room = m->room ? 2 * m->room : 64};

	larger.slots = calloc(larger.room, sizeof *larger.slots);
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < m->room; i++)
		if (m->slots[i].value)
			larger.slots[place(&larger, m->slots[i].id)] = m->slots[i];
	larger.count = m->count;
	id_map_release(m);
	*m = larger;
	return true;
}

bool id_map_set(struct id_map *m, int id, void *value)
{
	size_t at;

	if (2 * (m->count + 1) > m->room && !grow(m))
		return false;
	at = place(m, id);
	m->count += !m->slots[at].value;
	m->slots[at] = (struct id_map_slot){id, value};
	return true;
}

/* Those behind it that its place had pushed on move up, so that no search ends at the gap. */
void id_map_remove(struct id_map *m, int id)
{
	size_t gap, at;

	if (!id_map_find(m, id))
		return;
	gap = place(m, id);
	for (at = (gap + 1) & (m->room - 1); m->slots[at].value; at = (at + 1) & (m->room - 1)) {
		size_t from = home(m, m->slots[at].id);

		if (((at - from) & (m->room - 1)) >= ((at - gap) & (m->room - 1))) {
			m->slots[gap] = m->slots[at];
			gap = at;
		}
	}
	m->slots[gap].value = NULL;
	m->count--;
}
