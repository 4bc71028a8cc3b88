/* What becomes of a call that is over: an event in mode trace, sums and a histogram in mode aggregate, a number in mode
 * count. Where there is no room, it is counted as dropped. */
#include "lib/recording.h"

static int bucket_of(uint64_t duration)
{
	unsigned e;
	uint64_t bucket;

	if (duration < 16)
		return (int)duration;
	e = 63 - (unsigned)__builtin_clzll(duration);
	bucket = UINT64_C(16) * (e - 3) + (duration >> (e - 4)) - 16;
	return bucket < REGION_BUCKETS ? (int)bucket : (int)REGION_BUCKETS - 1;
}

void event_drop(struct thread *t, uint32_t region, uint64_t duration)
{
	add_here(&t->header->dropped, 1);
	if (region < t->totals_room) {
		add_here(&t->totals[region].dropped, 1);
		add_here(&t->totals[region].dropped_total, duration);
	}
}

void event_write(struct thread *t, const struct region_event *event)
{
	uint64_t at = 0;
	bool placed = false;

	if (!t->full && (atomic_load_explicit(&t->next, memory_order_relaxed) < t->end || thread_file_window(t))) {
		bool interrupted = t->writing;

		t->writing = true;
		placed = event_reserve(t, &at);
		if (placed)
			event_fill((struct region_event *)at, event);
		t->writing = interrupted;
	}
	if (!placed) {
		if (event->kind == REGION_EVENT_CALL) {
			if (event->region >= t->totals_room)
				thread_file_totals(t, event->region);
			event_drop(t, event->region, event->end - event->start);
		}
	} else {
		event_publish(t);
	}
}

void event_write_entering(struct thread *t, const struct region_event *event)
{
	struct entry entry;

	if (atomic_load_explicit(&t->next, memory_order_relaxed) < t->end) {
		event_write(t, event);
	} else if (((event->region < t->totals_room || t->no_totals) && !thread_file_may_grow(t)) ||
		   !recording_enter(&entry)) {
		event_drop(t, event->region, event->end - event->start);
	} else {
		event_write(t, event);
		recording_leave(&entry);
	}
}

static void add_to(struct thread *t, uint32_t mode, const struct region_event *event)
{
	uint64_t duration = event->end > event->start ? event->end - event->start : 0, children = 0;
	struct region_total *total = &t->totals[event->region];
	_Atomic(uint64_t *) *chunk = &t->buckets[event->region / BUCKET_CHUNK];
	uint64_t *buckets;

	add_here(&total->calls, 1);
	if (mode == REGION_COUNT)
		return;
	if (!(event->flags & REGION_EVENT_DETACHED)) {
		children = atomic_load_explicit(&t->stack[event->depth].child, memory_order_relaxed);
		if (event->depth > 0)
			add_here(&t->stack[event->depth - 1].child, duration);
	}
	if (atomic_load_explicit(&total->timed, memory_order_relaxed) == 0 ||
	    duration < atomic_load_explicit(&total->shortest, memory_order_relaxed))
		atomic_store_explicit(&total->shortest, duration, memory_order_relaxed);
	if (duration > atomic_load_explicit(&total->longest, memory_order_relaxed))
		atomic_store_explicit(&total->longest, duration, memory_order_relaxed);
	add_here(&total->timed, 1);
	add_here(&total->total, duration);
	add_here(&total->exclusive, duration > children ? duration - children : 0);
	buckets = atomic_load_explicit(chunk, memory_order_relaxed);
	if (!buckets && thread_file_buckets(t, event->region))
		buckets = atomic_load_explicit(chunk, memory_order_relaxed);
	if (buckets)
		add_here((_Atomic uint64_t *)&buckets[(event->region % BUCKET_CHUNK) * REGION_BUCKETS] +
				 bucket_of(duration),
			 1);
}

void call_write(struct thread *t, uint32_t mode, const struct region_event *event)
{
	if (mode == REGION_TRACE)
		event_write(t, event);
	else if (event->region < t->totals_room || thread_file_totals(t, event->region))
		add_to(t, mode, event);
	else
		add_here(&t->header->dropped, 1);
}
