/* What the hooks do once in a while: a thread's first call, calls not seen before, calls that ended without a return.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "lib/instrument.h"

#define SIGNAL_FRAME_MIN 512u /* what the kernel puts between a handler and what it interrupts has at least so much */

static struct calls_thread nobody;
__thread struct calls_thread *calls_self __attribute__((tls_model("initial-exec"))) = &nobody;
static __thread uint32_t refused_run; /* of the recording that had no room for this thread */
static pthread_key_t thread_key;
static bool has_key;

static bool is_on_other_stack(void)
{
	stack_t now;

	return sigaltstack(NULL, &now) == 0 && now.ss_flags & SS_ONSTACK;
}

/* Ends the innermost open call, without a look at who says so. */
static void pop(struct calls_thread *t, uint64_t now)
{
	struct calls_frame *frame = &t->frames[t->depth];
	struct calls_pair *p = &t->pairs[frame->pair], *own = &t->pairs[p->function];
	uint64_t spent = now - frame->start;

	p->self += spent - frame->children;
	if (own->open > 0 && --own->open == 0)
		p->total += spent;
	t->frames[t->depth - 1].children += spent;
	t->header->last = now;
	t->depth--;
	t->header->depth = t->depth;
}

static void pop_to(struct calls_thread *t, uint32_t depth, uint64_t now)
{
	t->beyond = 0;
	while (t->depth > depth) {
		t->header->lost++;
		pop(t, now);
	}
}

/* A hook was left by longjmp out of a signal handler, or by the end of its thread: what it had begun to count is put
 * right. */
static void repair(struct calls_thread *t)
{
	for (uint64_t i = 0; i < t->header->pairs; i++)
		t->pairs[i].open = 0;
	t->depth = (uint32_t)t->header->depth;
	for (uint32_t i = 1; i <= t->depth; i++)
		t->pairs[t->pairs[t->frames[i].pair].function].open++;
	t->busy = 0;
}

/* Its file goes to the next thread that begins. */
static void thread_ended(void *value)
{
	struct calls_thread *t = value;
	struct calls *c = atomic_load(&calls_now);
	struct entry entry;

	if (t != calls_self || !recording_enter(&entry))
		return;
	pthread_mutex_lock(&c->lock);
	calls_self = &nobody;
	if (t->run && t->run == atomic_load(&c->run)) {
		if (t->busy) /* cancelled amid a hook, or left from a handler */
			repair(t);
		pop_to(t, 0, clock_now(t->tsc));
		t->next_idle = c->idle;
		c->idle = t;
	} else {
		instrument_forget(t);
	}
	pthread_mutex_unlock(&c->lock);
	recording_leave(&entry);
}

static struct calls_thread *take_idle(struct calls *c)
{
	struct calls_thread *t = c->idle;

	if (t)
		c->idle = t->next_idle;
	return t;
}

/* The lock is held. */
static struct calls_thread *attach(struct calls *c)
{
	struct calls_thread *t = take_idle(c);
	int failed = 0;

	if (!has_key)
		has_key = pthread_key_create(&thread_key, thread_ended) == 0;
	if (!t)
		t = has_key ? instrument_open(c, &failed) : NULL;
	if (!t) {
		refused_run = atomic_load(&c->run);
		instrument_note_refused(c, failed ? failed : EAGAIN);
		return NULL;
	}
	if (pthread_setspecific(thread_key, t) != 0) {
		t->next_idle = c->idle;
		c->idle = t;
		refused_run = atomic_load(&c->run);
		return NULL;
	}
	t->run = atomic_load(&c->run);
	calls_self = t;
	return t;
}

static struct calls_thread *join(void)
{
	struct calls_thread *old = calls_self, *t;
	struct calls *c = instrument_locked();

	if (!c)
		return NULL;
	if (old != &nobody) { /* of a recording that is over, or of the process that this one was forked from */
		calls_self = &nobody;
		/* A hook may go on with it: that in which this handler forked, even before it said that it is busy. */
		if (!old->busy && old->header->pid == (int32_t)getpid())
			instrument_forget(old);
	}
	t = attach(c);
	pthread_mutex_unlock(&c->lock);
	return t;
}

struct calls_thread *instrument_ready(uintptr_t place)
{
	struct calls_thread *t = calls_self;
	uint32_t run = atomic_load(&atomic_load(&calls_now)->run);
	struct entry entry;

	if (atomic_load_explicit(&calls_stage, memory_order_relaxed) == CALLS_OFF || (run && refused_run == run))
		return NULL;
	if (run && t->run == run) {
		/* Busy: this is a handler that has interrupted a hook, unless that hook's part of the stack is gone. */
		if (place < t->busy - SIGNAL_FRAME_MIN || is_on_other_stack())
			return NULL;
		repair(t);
		return t;
	}
	if (!recording_enter(&entry))
		return NULL;
	t = join();
	recording_leave(&entry);
	return t;
}

/* Calls of functions that are no more, since longjmp left them, lie below the present place, or at it: where they were
 * to return elsewhere, or where the very code tells of a call again (what is inlined ends before it begins anew). A
 * handler's own stack says nothing about them. */
static void close_left(struct calls_thread *t, const struct calls_frame *begun, uint64_t callee)
{
	const struct calls_frame *frames = t->frames;
	uint32_t depth = t->depth;

	while (depth > 0 && (begun->place > frames[depth].place ||
			     (begun->place == frames[depth].place && begun->site != frames[depth].site)))
		depth--;
	for (uint32_t i = depth; i > 0 && begun->place == frames[i].place && begun->site == frames[i].site; i--)
		if (begun->hook == frames[i].hook && t->pairs[frames[i].pair].callee == callee)
			depth = i - 1;
	if (depth < t->depth && !is_on_other_stack())
		pop_to(t, depth, clock_now(t->tsc));
}

bool instrument_make_room(struct calls_thread *t, const struct calls_frame *begun, uint64_t callee)
{
	struct entry entry;

	close_left(t, begun, callee);
	if (t->depth + 1 < t->frame_room)
		return true;
	if (recording_enter(&entry)) {
		bool grown = t->header->trouble == 0 && instrument_grow_frames(t);

		recording_leave(&entry);
		if (grown)
			return true;
	}
	t->beyond++;
	t->header->beyond++;
	return false;
}

static uint32_t add(struct calls_thread *t, uint64_t caller, uint64_t callee, uint32_t function)
{
	struct calls_header *h = t->header;
	uint32_t number;
	uint64_t at = instrument_hash(caller, callee) & t->index_mask;

	if (h->pairs == t->pair_room) {
		struct entry entry;
		bool grown = false;

		if (!t->full && recording_enter(&entry)) {
			grown = instrument_grow_pairs(t);
			t->full = !grown;
			recording_leave(&entry);
		}
		if (!grown)
			return CALLS_DROPPED;
		h = t->header;
		at = instrument_hash(caller, callee) & t->index_mask;
	}
	number = (uint32_t)h->pairs;
	while (t->index[at])
		at = (at + 1) & t->index_mask;
	t->pairs[number] = (struct calls_pair){
		.caller = caller, .callee = callee, .function = function ? function : number};
	t->index[at] = number;
	atomic_signal_fence(memory_order_seq_cst);
	h->pairs = number + 1;
	return number;
}

static uint32_t find(const struct calls_thread *t, uint64_t caller, uint64_t callee)
{
	for (uint64_t at = instrument_hash(caller, callee) & t->index_mask; t->index[at]; at = (at + 1) & t->index_mask)
		if (t->pairs[t->index[at]].callee == callee && t->pairs[t->index[at]].caller == caller)
			return t->index[at];
	return 0;
}

uint32_t instrument_pair(struct calls_thread *t, uint64_t caller, uint64_t callee)
{
	uint32_t number = find(t, caller, callee), function;

	if (number)
		return number;
	function = find(t, 0, callee);
	if (!function) {
		instrument_note_module(t, callee);
		function = add(t, 0, callee, 0);
	}
	return function == CALLS_DROPPED || caller == 0 ? function : add(t, caller, callee, function);
}

void instrument_unwind(struct calls_thread *t, uint64_t callee, uintptr_t place, uint64_t now)
{
	uint32_t found = 0;

	if (t->beyond) {
		t->beyond--;
		return;
	}
	if (t->frames[t->depth].pair == CALLS_DROPPED && t->depth > 0) {
		pop(t, now);
		return;
	}
	/* What began deeper in the stack than this one ends has been left; a handler's own stack is apart. */
	for (uint32_t i = t->depth; i > 0 && t->frames[i].place <= place; i--)
		if (t->pairs[t->frames[i].pair].callee == callee)
			found = i;
	if (found) {
		pop_to(t, found, now);
		pop(t, now);
	}
}
