/* Wrong use of regions: what is made of it, and how it is counted.
 *
 * A region that is open above one that ends is taken off the stack and remembered for a while: it may have been left
 * (longjmp, an end forgotten), or it ends later (A-begin B-begin A-end B-end). */
#include "lib/recording.h"

#define NOTES_MAX 16u /* of each kind, per recording */

static void count_locked(struct recording *r, struct thread *t, enum region_trouble kind, uint32_t region)
{
	struct region_trouble_note note = {kind, region, t->index, 0, monotonic_ns()};

	add_here(&t->shown->troubles[kind], 1);
	if (atomic_load_explicit(&r->notes[kind], memory_order_relaxed) >= NOTES_MAX)
		return;
	atomic_fetch_add_explicit(&r->notes[kind], 1, memory_order_relaxed);
	table_append(REGION_RECORD_TROUBLE, &note, sizeof note, NULL, 0);
}

void trouble_count(struct thread *t, enum region_trouble kind, uint32_t region)
{
	struct recording *r = recording_memory();

	if (!r || atomic_load_explicit(&r->notes[kind], memory_order_relaxed) >= NOTES_MAX) {
		add_here(&t->shown->troubles[kind], 1);
		return;
	}
	r = recording_memory_locked();
	count_locked(r, t, kind, region);
	recording_unlock(r);
}

static void remember(struct thread *t, const struct region_slot *slot, uint32_t depth)
{
	t->orphans[t->orphan_next++ % ORPHANS] = (struct orphan){
		atomic_load_explicit(&slot->start, memory_order_relaxed),
		atomic_load_explicit(&slot->region, memory_order_relaxed),
		depth,
	};
}

/* Ends the call in slots[depth], as its thread's present mode has it. */
static void end_slot(struct thread *t, uint32_t mode, uint32_t depth, uint8_t flags)
{
	const struct region_slot *slot = &t->stack[depth];
	struct region_event event = {.end = clock_now(t->tsc), .depth = (uint16_t)depth, .flags = flags};

	event.start = atomic_load_explicit(&slot->start, memory_order_relaxed);
	event.region = atomic_load_explicit(&slot->region, memory_order_relaxed);
	atomic_store_explicit(&t->depth, depth, memory_order_relaxed);
	call_write(t, mode, &event);
	atomic_store_explicit(&t->shown->depth, depth, memory_order_relaxed);
}

/* Whether it is open in this thread, not innermost: then it ends here, and what is open in it is remembered. */
static bool end_below(struct thread *t, uint32_t mode, uint32_t id)
{
	uint32_t depth = atomic_load_explicit(&t->depth, memory_order_relaxed), at = depth;

	while (at > 0 && atomic_load_explicit(&t->stack[at - 1].region, memory_order_relaxed) != id)
		at--;
	if (at == 0)
		return false;
	for (uint32_t above = depth; above > at; above--) {
		const struct region_slot *slot = &t->stack[above - 1];

		trouble_count(t, REGION_TROUBLE_NO_END, atomic_load_explicit(&slot->region, memory_order_relaxed));
		remember(t, slot, above - 1);
	}
	end_slot(t, mode, at - 1, 0);
	return true;
}

static bool end_orphan(struct thread *t, uint32_t mode, uint32_t id)
{
	for (uint32_t i = 1; i <= ORPHANS; i++) {
		struct orphan *orphan = &t->orphans[(t->orphan_next - i) % ORPHANS];
		struct region_event event = {.end = clock_now(t->tsc), .region = id};

		if (orphan->region != id)
			continue;
		event.start = orphan->start;
		event.depth = (uint16_t)orphan->depth;
		event.flags = REGION_EVENT_DETACHED | REGION_EVENT_CROSSED;
		orphan->region = 0;
		add_here(&t->shown->troubles[REGION_TROUBLE_NO_END], UINT64_MAX);
		trouble_count(t, REGION_TROUBLE_CROSSED, id);
		call_write(t, mode, &event);
		return true;
	}
	return false;
}

/* A look at the others' stacks, which they may change meanwhile. */
static bool is_open_elsewhere(const struct thread *own, uint32_t id)
{
	struct recording *r = recording_memory_locked();
	bool found = false;

	for (const struct thread *t = r ? r->files : NULL; t && !found; t = t->next_file) {
		uint32_t depth = t->in_use && t != own ? atomic_load_explicit(&t->depth, memory_order_relaxed) : 0;

		while (depth > 0 && !found)
			found = atomic_load_explicit(&t->stack[--depth].region, memory_order_relaxed) == id;
	}
	if (r)
		recording_unlock(r);
	return found;
}

void misuse_end(struct thread *t, uint32_t mode, uint32_t id)
{
	if (end_below(t, mode, id) || end_orphan(t, mode, id))
		return;
	if (t->switched_open > 0) {
		t->switched_open--; /* counted when the mode changed */
	} else if (t->forked_open > 0) {
		t->forked_open--;
		trouble_count(t, REGION_TROUBLE_FORKED, id);
	} else if (is_open_elsewhere(t, id)) {
		trouble_count(t, REGION_TROUBLE_OTHER_THREAD, id);
	} else {
		/* After a while in which open regions were not known it may have been begun then. */
		trouble_count(t, settings.was_blind ? REGION_TROUBLE_SWITCHED : REGION_TROUBLE_NO_BEGIN, id);
	}
}

void misuse_switched(struct recording *r, struct thread *t)
{
	uint32_t depth = atomic_load_explicit(&t->depth, memory_order_relaxed);

	t->switched_open += depth;
	while (depth > 0)
		count_locked(r, t, REGION_TROUBLE_SWITCHED,
			     atomic_load_explicit(&t->stack[--depth].region, memory_order_relaxed));
	for (uint32_t i = 0; i < ORPHANS; i++)
		t->orphans[i].region = 0;
	atomic_store_explicit(&t->depth, 0, memory_order_relaxed);
	atomic_store_explicit(&t->shown->depth, 0, memory_order_relaxed);
}

void misuse_unfinished(struct recording *r, struct thread *t)
{
	uint32_t depth;

	if (t->hot >> 2 != settings.hot_number || (t->hot & HOT_MODE) == REGION_OFF) {
		misuse_switched(r, t);
		return;
	}
	while ((depth = atomic_load_explicit(&t->depth, memory_order_relaxed)) > 0) {
		uint32_t id = atomic_load_explicit(&t->stack[depth - 1].region, memory_order_relaxed);

		count_locked(r, t, REGION_TROUBLE_UNFINISHED, id);
		end_slot(t, t->hot & HOT_MODE, depth - 1, REGION_EVENT_UNFINISHED);
	}
}
