/* The hooks of -finstrument-functions: counts calls and times per caller and callee, in a few nanoseconds.
 *
 * No lock, no system call, nothing atomic but plain loads: everything here is the thread's own. */
#include "lib/export.h"
#include "lib/instrument.h"

#define FENCE() atomic_signal_fence(memory_order_seq_cst)

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

static inline bool is_ready(const struct calls_thread *t)
{
	const struct calls *c = atomic_load_explicit(&calls_now, memory_order_acquire);

	return LIKELY(t->run == atomic_load_explicit(&c->run, memory_order_acquire) && t->run != 0 && t->busy == 0);
}

ASSAY_EXPORT_HOT void __cyg_profile_func_enter(void *function, void *site)
{
	const uintptr_t place = (uintptr_t)__builtin_dwarf_cfa();
	const uint64_t callee = (uint64_t)(uintptr_t)function;
	const uint16_t return_site = (uint16_t)(uintptr_t)site;
	const uint16_t hook = (uint16_t)(uintptr_t)__builtin_return_address(0);
	struct calls_thread *t = calls_self;
	struct calls_frame *frame;
	struct calls_pair *p, *own;
	uint32_t pair;

	if (!is_ready(t)) {
		t = instrument_ready(place);
		if (!t)
			return;
	}
	t->busy = place;
	FENCE();
	frame = &t->frames[t->depth];
	/* At the same place: inlined into the innermost open call, or in its place since that was left. */
	if (UNLIKELY(place >= frame->place || t->depth + 1 >= t->frame_room)) {
		const struct calls_frame begun = {.place = place, .site = return_site, .hook = hook};

		if (!instrument_make_room(t, &begun, callee))
			goto out;
		frame = &t->frames[t->depth];
	}
	pair = t->pairs[frame->pair].last;
	if (UNLIKELY(t->pairs[pair].callee != callee)) {
		pair = frame->pair == CALLS_DROPPED ? CALLS_DROPPED
						    : instrument_pair(t, t->pairs[frame->pair].callee, callee);
		t->pairs[frame->pair].last = pair;
	}
	p = &t->pairs[pair];
	own = &t->pairs[p->function];
	p->calls++;
	p->primitive += own->open == 0;
	own->open++;
	frame = &t->frames[t->depth + 1];
	frame->pair = pair;
	frame->place = place;
	frame->site = return_site;
	frame->hook = hook;
	frame->children = 0;
	frame->start = clock_now(t->tsc);
	FENCE(); /* a killed program's frames are whole */
	t->depth++;
	t->header->depth = t->depth;
out:
	FENCE();
	t->busy = 0;
}

ASSAY_EXPORT_HOT void __cyg_profile_func_exit(void *function, void *site)
{
	struct calls_thread *t = calls_self;
	struct calls_frame *frame;
	struct calls_pair *p, *own;
	uint64_t now, spent;

	(void)site;
	if (!is_ready(t))
		return;
	now = clock_now(t->tsc);
	t->busy = (uintptr_t)__builtin_dwarf_cfa();
	FENCE();
	frame = &t->frames[t->depth];
	p = &t->pairs[frame->pair];
	if (UNLIKELY(p->callee != (uint64_t)(uintptr_t)function || t->beyond)) {
		instrument_unwind(t, (uint64_t)(uintptr_t)function, t->busy, now);
	} else {
		spent = now - frame->start;
		own = &t->pairs[p->function];
		p->self += spent - frame->children;
		p->total += --own->open ? 0 : spent;
		t->frames[t->depth - 1].children += spent;
		t->header->last = now;
		t->depth--;
		t->header->depth = t->depth;
	}
	FENCE();
	t->busy = 0;
}
