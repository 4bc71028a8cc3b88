/* The calls that stand in other people's inner loops: begin and end of a region.
 *
 * Each has one check that this thread is ready for the present mode (recording_hot), then two stores for a begin; for
 * an end one event and the mark that publishes it. Everything else is a slow path in a function of its own. The order
 * of the steps is such that a signal handler which uses regions can come between any two of them, and a SIGKILL. */
#include <assay.h>

#include "lib/export.h"
#include "lib/recording.h"

struct recording_switch recording_switch = {.hot = HOT_UNSTARTED};
struct thread recording_nobody; /* no mode matches its `hot` */
__thread struct thread *self __attribute__((tls_model("initial-exec"))) = &recording_nobody;
__thread volatile bool inside __attribute__((tls_model("initial-exec")));

static inline uint32_t hot_now(void)
{
	return atomic_load_explicit(&recording_hot, memory_order_relaxed);
}

/* Whether it is one that the hot paths know: not 0, and not that of "(other names)", whose calls are counted. */
static inline bool is_plain(uint32_t id)
{
	return LIKELY(id - 1 < REGION_ID_MAX - 1);
}

static inline void push(struct thread *t, uint32_t mode, uint32_t id, uint32_t depth)
{
	struct region_slot *slot = &t->stack[depth];

	/* The place is taken before it is filled: a handler's regions go above it. */
	atomic_store_explicit(&t->depth, depth + 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&slot->region, id, memory_order_relaxed);
	if (mode == REGION_AGGREGATE)
		atomic_store_explicit(&slot->child, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->start, clock_now(t->tsc), memory_order_relaxed);
	atomic_store_explicit(&t->shown->depth, depth + 1, memory_order_release);
}

static inline void pop(struct thread *t, uint32_t depth)
{
	atomic_store_explicit(&t->depth, depth, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

static __attribute__((noinline)) void begin_slowly(struct assay_region *region)
{
	struct entry entry;
	struct thread *t;

	if ((hot_now() & HOT_MODE) == REGION_OFF || recording_is_refused() || !recording_enter(&entry))
		return;
	t = recording_thread();
	if (t) {
		uint32_t id = name_id(region), depth = atomic_load_explicit(&t->depth, memory_order_relaxed);

		if ((t->hot & HOT_MODE) == REGION_COUNT) {
			/* Nothing is put on the stack, and its end does nothing. */
			if (id == REGION_ID_MAX)
				trouble_count(t, REGION_TROUBLE_OTHER_NAMES, id);
			call_write(t, REGION_COUNT, &(struct region_event){.region = id});
		} else if (t->beyond || (depth >= t->stack_room && !thread_file_stack(t))) {
			t->beyond++;
			trouble_count(t, REGION_TROUBLE_TOO_DEEP, id);
		} else {
			push(t, t->hot & HOT_MODE, id, depth);
		}
	}
	recording_leave(&entry);
}

/* Apart from the rest, so that counting saves no registers. */
static __attribute__((noinline)) void begin_timed(struct thread *t, struct assay_region *region, uint32_t hot)
{
	uint32_t id = __atomic_load_n(&region->id, __ATOMIC_RELAXED);
	uint32_t depth = atomic_load_explicit(&t->depth, memory_order_relaxed);

	if (UNLIKELY(!is_plain(id) || depth >= t->stack_room || (hot & HOT_MODE) == REGION_COUNT))
		begin_slowly(region);
	else
		push(t, hot & HOT_MODE, id, depth);
}

ASSAY_EXPORT_HOT void assay_region_begin(struct assay_region *region)
{
	struct thread *t = self;
	uint32_t hot = hot_now(), id;

	if (UNLIKELY(hot != t->hot)) {
		if ((hot & HOT_MODE) != REGION_OFF && region)
			begin_slowly(region);
		return;
	}
	if (UNLIKELY(!region))
		return;
	id = __atomic_load_n(&region->id, __ATOMIC_RELAXED);
	if ((hot & HOT_MODE) == REGION_COUNT && LIKELY(id - 1 < t->plain_room))
		add_here(&t->totals[id].calls, 1);
	else
		begin_timed(t, region, hot);
}

static __attribute__((noinline)) void end_timed(struct thread *t, uint32_t mode, uint32_t id, uint32_t depth)
{
	struct region_slot *slot = &t->stack[depth];
	struct region_event event = {.end = clock_now(t->tsc), .region = id, .depth = (uint16_t)depth};

	event.start = atomic_load_explicit(&slot->start, memory_order_relaxed);
	pop(t, depth);
	call_write(t, mode, &event);
	atomic_store_explicit(&t->shown->depth, depth, memory_order_relaxed);
}

/* In a signal handler that came into a slow path: takes the region off the stack where its begin went the hot path. */
static void end_inside(struct thread *t, uint32_t hot, uint32_t id)
{
	uint32_t depth = atomic_load_explicit(&t->depth, memory_order_relaxed);

	if (hot != t->hot || depth == 0 ||
	    atomic_load_explicit(&t->stack[depth - 1].region, memory_order_relaxed) != id)
		return;
	pop(t, depth - 1);
	event_drop(t, id, 0);
	atomic_store_explicit(&t->shown->depth, depth - 1, memory_order_relaxed);
}

static __attribute__((noinline)) void end_slowly(struct assay_region *region)
{
	struct entry entry;
	struct thread *t;

	if ((hot_now() & HOT_MODE) == REGION_OFF || recording_is_refused())
		return;
	if (!recording_enter(&entry)) {
		end_inside(self, hot_now(), __atomic_load_n(&region->id, __ATOMIC_RELAXED));
		return;
	}
	t = recording_thread();
	if (t) {
		uint32_t mode = t->hot & HOT_MODE, id = name_id(region);
		uint32_t depth = atomic_load_explicit(&t->depth, memory_order_relaxed);

		if (mode == REGION_COUNT) {
			recording_leave(&entry);
			return;
		}
		if (t->beyond) {
			t->beyond--;
		} else if (depth == 0 ||
			   atomic_load_explicit(&t->stack[depth - 1].region, memory_order_relaxed) != id) {
			misuse_end(t, mode, id);
		} else {
			if (id == REGION_ID_MAX)
				trouble_count(t, REGION_TROUBLE_OTHER_NAMES, id);
			end_timed(t, mode, id, depth - 1);
		}
	}
	recording_leave(&entry);
}

static inline void end_traced(struct thread *t, uint32_t id, uint32_t depth, uint64_t start)
{
	uint64_t now = clock_now(t->tsc), at;
	struct region_event *event;
	bool interrupted = t->writing;

	pop(t, depth);
	t->writing = true;
	if (UNLIKELY(!event_reserve(t, &at))) {
		t->writing = interrupted;
		/* No window yet, or it is full. */
		event_write_entering(t, &(struct region_event){start, now, id, (uint16_t)depth, 0, 0});
		atomic_store_explicit(&t->shown->depth, depth, memory_order_relaxed);
		return;
	}
	event = (struct region_event *)at;
	event_fill(event, &(struct region_event){start, now, id, (uint16_t)depth, 0, REGION_EVENT_CALL});
	t->writing = interrupted;
	event_publish(t);
	atomic_store_explicit(&t->shown->depth, depth, memory_order_relaxed);
}

/* The region is the innermost one that is open, or this is wrong use. */
static __attribute__((noinline)) void end_known(struct thread *t, struct assay_region *region, uint32_t mode)
{
	uint32_t id = __atomic_load_n(&region->id, __ATOMIC_RELAXED);
	uint32_t depth = atomic_load_explicit(&t->depth, memory_order_relaxed) - 1;
	const struct region_slot *slot = &t->stack[depth];

	if (UNLIKELY(!is_plain(id) || depth == UINT32_MAX || t->beyond ||
		     atomic_load_explicit(&slot->region, memory_order_relaxed) != id))
		end_slowly(region);
	else if (LIKELY(mode == REGION_TRACE))
		end_traced(t, id, depth, atomic_load_explicit(&slot->start, memory_order_relaxed));
	else if (LIKELY(id < t->totals_room &&
			atomic_load_explicit(&t->buckets[id / BUCKET_CHUNK], memory_order_relaxed)))
		end_timed(t, mode, id, depth);
	else
		end_slowly(region);
}

ASSAY_EXPORT_HOT void assay_region_end(struct assay_region *region)
{
	struct thread *t = self;
	uint32_t hot = hot_now();

	if (LIKELY(hot == t->hot)) {
		if ((hot & HOT_MODE) != REGION_COUNT && LIKELY(region != NULL))
			end_known(t, region, hot & HOT_MODE);
	} else if ((hot & HOT_MODE) != REGION_OFF && region) {
		end_slowly(region);
	}
}
