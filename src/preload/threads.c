/* A new thread's start routine waits in its slot, so nothing is allocated. Its end is noticed by a key's destructor
 * where pthreads made it, behind the function where clone did, and else not at all: such slots are looked through when
 * others run out. */
#include "preload/threads.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <threads.h>

#include "preload/kernel.h"
#include "preload/names.h"
#include "preload/process.h"
#include "preload/real.h"
#include "preload/signals.h"
#include "preload/tick.h"

/* Above the frame of a thread's first function of ours: libc's own description of the thread lies there, and is
 * larger. */
#define ABOVE_FRAME 1024u
#define ROUNDS 4u /* in which libc calls destructors of keys */

static struct slot *slot_of_key(const void *value)
{
	return value ? ring_slot((uint32_t)(uintptr_t)value - 1) : NULL;
}

static void *key_of_slot(const struct slot *s)
{
	return (void *)((uintptr_t)s->index + 1);
}

/* Comes again in each round of destructors: what other keys' destructors do in this thread is still sampled. */
static void key_ended(void *value)
{
	struct slot *s = process_sampled() ? slot_of_key(value) : NULL;

	if (!s || !s->has_thread || !pthread_equal(s->thread, pthread_self()))
		return;
	if (++s->ending < ROUNDS && pthread_setspecific(process.key, value) == 0)
		return;
	threads_end(s);
}

bool threads_prepare(void)
{
	process.has_key = pthread_key_create(&process.key, key_ended) == 0;
	return process.has_key;
}

static void count_unarmed(void)
{
	atomic_fetch_add(&ring_header->unarmed, 1);
}

/* May the calling thread have a timer? */
static void arm(struct slot *s, bool is_new)
{
	if (atomic_load(&ring_header->trouble) & SAMPLER_SIGNAL_TAKEN) {
		count_unarmed();
		return;
	}
	signals_unblock();
	tick_arm(s, is_new);
}

void threads_begin(struct slot *s, struct unwind_range stack, bool by_pthread, bool is_new)
{
	char name[SAMPLER_NAME_BYTES] = "";

	ring_stacks[s->index] = stack;
	s->raw = !by_pthread;
	if (by_pthread) {
		s->thread = pthread_self();
		s->has_thread = true;
		pthread_setspecific(process.key, key_of_slot(s));
	}
	if (atomic_load(&process.restricted)) {
		count_unarmed();
		return;
	}
	atomic_store(&s->shared.tid, kernel_tid());
	KERNEL_2(SYS_prctl, PR_GET_NAME, name);
	names_set(s, name);
	arm(s, is_new);
}

void threads_end(struct slot *s)
{
	struct timespec used = {0};
	uint64_t ns;

	if (!atomic_load(&process.restricted)) {
		bool sampled = atomic_load(&s->timer) != 0;

		KERNEL_2(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &used);
		tick_disarm(s);
		ns = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
		ring_count(&s->shared.ended_ns, ns);
		if (sampled)
			tick_settle(s, (int64_t)ns);
		else
			atomic_fetch_add(&ring_header->unsampled_ns, ns);
	}
	ring_give(s);
}

struct unwind_range threads_stack_here(void)
{
	uintptr_t index = process.has_key ? (uintptr_t)pthread_getspecific(process.key) : 0;

	return index > 0 && index <= SAMPLER_SLOTS_MAX ? ring_stacks[index - 1] : (struct unwind_range){0};
}

static struct slot *slot_with_tid(int tid, bool *ret_unknown)
{
	for (uint32_t i = 0; i < ring_slots(); i++) {
		struct slot *s = ring_slot(i);
		int here = atomic_load(&s->shared.tid);

		if (atomic_load(&s->shared.state) != SAMPLER_SLOT_TAKEN)
			continue;
		if (here == tid)
			return s;
		*ret_unknown |= here == 0;
	}
	return NULL;
}

struct slot *threads_slot_here(void)
{
	bool unknown = false;

	return slot_with_tid(kernel_tid(), &unknown);
}

/* Where some slot's thread has not said who it is, it may be this one: the next look will tell. The file may have to
 * grow, which takes system calls, but no tick waits for it: this thread has none yet. */
bool threads_adopt(void)
{
	bool unknown = false;
	int tid = kernel_tid();
	struct slot *s;

	if (slot_with_tid(tid, &unknown) || unknown)
		return false;
	s = ring_take(tid);
	if (!s)
		return false;
	threads_begin(s, (struct unwind_range){0}, false, false);
	return true;
}

bool threads_unknown(void)
{
	struct stat st;
	uint32_t known = 2; /* a folder's own links */

	for (uint32_t i = 0; i < ring_slots(); i++)
		known += atomic_load(&ring_slot(i)->shared.state) == SAMPLER_SLOT_TAKEN;
	return KERNEL_4(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &st, 0) == 0 && st.st_nlink > known;
}

/* A slot for a thread about to be made, or NULL: it is then made without us. */
static struct slot *slot_for_new(size_t stack_size)
{
	struct slot *s;

	process_start();
	if (atomic_load(&process.state) != PROCESS_ON)
		return NULL;
	process_forked(); /* by a system call, perhaps */
	if (!process_sampled())
		return NULL;
	if (atomic_load(&process.restricted)) {
		count_unarmed();
		return NULL;
	}
	if (!process_active())
		return NULL;
	signals_check();
	s = ring_take(0);
	if (s)
		ring_stacks[s->index].low = stack_size;
	else
		atomic_fetch_add(&ring_header->roomless, 1);
	return s;
}

static size_t stack_size_of(const pthread_attr_t *attr)
{
	pthread_attr_t standard;
	size_t size = 0;

	if (attr)
		return pthread_attr_getstacksize(attr, &size) == 0 ? size : 0;
	if (pthread_attr_init(&standard) != 0)
		return 0;
	if (pthread_attr_getstacksize(&standard, &size) != 0)
		size = 0;
	pthread_attr_destroy(&standard);
	return size;
}

static void begin_below(struct slot *s, uintptr_t frame)
{
	uintptr_t size = ring_stacks[s->index].low, high = frame + ABOVE_FRAME;

	threads_begin(s, (struct unwind_range){size && size < high ? high - size : high, high}, true, true);
}

static void *run_pthread(void *slot)
{
	struct slot *s = slot;
	void *(*start)(void *) = s->start;
	void *argument = s->argument;

	begin_below(s, (uintptr_t)__builtin_frame_address(0));
	return start(argument);
}

static int run_thrd(void *slot)
{
	struct slot *s = slot;
	int (*start)(void *) = s->start_int;
	void *argument = s->argument;

	begin_below(s, (uintptr_t)__builtin_frame_address(0));
	return start(argument);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
	struct slot *s = slot_for_new(stack_size_of(attr));
	int result;

	if (!s)
		return real_functions()->pthread_create(thread, attr, start, argument);
	s->start = start;
	s->argument = argument;
	result = real_functions()->pthread_create(thread, attr, run_pthread, s);
	if (result != 0)
		ring_give(s);
	return result;
}

EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
	struct slot *s = slot_for_new(stack_size_of(NULL));
	int result;

	if (!s)
		return real_functions()->thrd_create(thread, start, argument);
	s->start_int = start;
	s->argument = argument;
	result = real_functions()->thrd_create(thread, run_thrd, s);
	if (result != thrd_success)
		ring_give(s);
	return result;
}

static int run_clone_thread(void *slot)
{
	struct slot *s = slot;
	int (*start)(void *) = s->start_int, result;
	void *argument = s->argument;

	threads_begin(s, (struct unwind_range){0}, false, true);
	result = start(argument);
	threads_end(s);
	return result;
}

/* Lies on the parent's stack, of which a forked child has a copy. */
struct forked {
	int (*start)(void *);
	void *argument;
};

static int run_clone_process(void *context)
{
	struct forked f = *(struct forked *)context;

	process_forked();
	return f.start(f.argument);
}

/* A child that shares our memory and is no thread (vfork, posix_spawn) is left alone. */
EXPORT int clone(int (*start)(void *), void *stack, int flags, void *argument, ...)
{
	int (*next)(int (*)(void *), void *, int, void *, ...) = real_functions()->clone;
	struct forked forked = {start, argument};
	pid_t *parent_tid, *child_tid;
	struct slot *s = NULL;
	void *tls;
	va_list args;
	int result;

	va_start(args, argument);
	parent_tid = va_arg(args, pid_t *);
	tls = va_arg(args, void *);
	child_tid = va_arg(args, pid_t *);
	va_end(args);
	if (start && stack && !(flags & CLONE_VM))
		return next(run_clone_process, stack, flags, &forked, parent_tid, tls, child_tid);
	if (start && stack && (flags & CLONE_THREAD))
		s = slot_for_new(0);
	if (!s)
		return next(start, stack, flags, argument, parent_tid, tls, child_tid);
	s->start_int = start;
	s->argument = argument;
	result = next(run_clone_thread, stack, flags, s, parent_tid, tls, child_tid);
	if (result < 0)
		ring_give(s);
	return result;
}

EXPORT pid_t _Fork(void)
{
	pid_t pid = real_functions()->_Fork();

	if (pid == 0)
		process_forked();
	return pid;
}
