#include "judge/compare_pairs.h"

#include <stdlib.h>

#include "base/cleanup.h"

/* An arm in the order in which they ran. */
struct place {
	bool is_b, usable;
	size_t index;
	int64_t keys[3]; /* of the order, the first one first */
	int64_t started_ns;
};

static int by_keys(const void *one, const void *other)
{
	const struct place *p = one, *q = other;

	for (size_t i = 0; i < 3; i++)
		if (p->keys[i] != q->keys[i])
			return p->keys[i] < q->keys[i] ? -1 : 1;
	return (int)p->is_b - (int)q->is_b;
}

static bool same_place(const struct place *p, const struct place *q)
{
	return p->keys[0] == q->keys[0] && p->keys[1] == q->keys[1] && p->keys[2] == q->keys[2];
}

/* Those of one side that have a block (or, with !blocks, a start time). Returns how many. */
static size_t add_side(struct place *places, const struct arms *arms, bool is_b, bool blocks)
{
	size_t count = 0;

	for (size_t i = 0; i < arms->count; i++) {
		const struct arm *arm = &arms->items[i];
		struct place p = {is_b, arm->state == ARM_OK, i, {0, 0, 0}, arm->started_ns};

		if (blocks ? arm->block < 0 : arm->started_ns == INT64_MIN)
			continue;
		if (blocks) {
			p.keys[0] = arm->block;
			p.keys[1] = arm->position;
			/* A position says it all; without one, the time does. */
			p.keys[2] = arm->position < 0 ? arm->started_ns : 0;
		} else {
			p.keys[0] = arm->started_ns;
		}
		places[count++] = p;
	}
	return count;
}

/* Sorted; 0 where a side has none, or where two have the same place, which is then no order. */
static size_t put_in_order(struct place *places, const struct arms *a, const struct arms *b, bool blocks)
{
	size_t of_a = add_side(places, a, false, blocks), count = of_a + add_side(places + of_a, b, true, blocks);

	if (of_a == 0 || of_a == count)
		return 0;
	qsort(places, count, sizeof *places, by_keys);
	for (size_t i = 1; i < count; i++)
		if (same_place(&places[i - 1], &places[i]))
			return 0;
	return count;
}

/* Arms of one design ran in its order. Those of two designs have blocks of the same numbers, and times that tell. */
static bool ran_in_order(const struct place *places, size_t count)
{
	bool ascending = true;

	for (size_t i = 0; i < count; i++) {
		if (places[i].started_ns == INT64_MIN)
			return true;
		ascending &= i == 0 || places[i - 1].started_ns <= places[i].started_ns;
	}
	return ascending;
}

/* Neighbours of different sides, from the start. Returns how many arms have a partner, the failed included. */
static size_t pair_up(const struct place *places, size_t count, bool blocks, struct pair *pairs, size_t *ret_count)
{
	size_t paired = 0;

	*ret_count = 0;
	for (size_t i = 0; i + 1 < count; i++) {
		const struct place *p = &places[i], *q = &places[i + 1];

		if (p->is_b == q->is_b || (blocks && p->keys[0] != q->keys[0]))
			continue;
		paired += 2;
		i++;
		if (p->usable && q->usable)
			pairs[(*ret_count)++] =
				(struct pair){p->is_b ? q->index : p->index, p->is_b ? p->index : q->index};
	}
	return paired;
}

int compare_find_pairs(const struct arms *a, const struct arms *b, struct pair **ret_pairs, size_t *ret_count,
		       bool *ret_interleaved, struct error *err)
{
	CLEANUP(free_cleanup) struct place *places = calloc(a->count + b->count + 1, sizeof *places);
	struct pair *pairs = calloc(a->count + b->count + 1, sizeof *pairs);
	size_t count, paired, found = 0;
	bool interleaved;

	if (!places || !pairs) {
		free(pairs);
		return error_set(err, "out of memory for %zu runs", a->count + b->count);
	}
	count = put_in_order(places, a, b, true);
	interleaved = ran_in_order(places, count) && pair_up(places, count, true, pairs, &found) > 0;
	if (!interleaved) {
		count = put_in_order(places, a, b, false);
		paired = pair_up(places, count, false, pairs, &found);
		interleaved = paired > 0 && (count - paired <= 1 || 4 * (count - paired) <= count);
	}
	*ret_pairs = pairs;
	*ret_count = interleaved ? found : 0;
	*ret_interleaved = interleaved;
	return 0;
}
