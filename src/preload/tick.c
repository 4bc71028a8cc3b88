/* A tick never interrupts a sleeping thread, since its timer runs on CPU time. All that the handler needs is in the
 * thread's slot, which the timer names: thread-local storage may be missing or shared (clone). Its time is bounded: one
 * walk of at most SAMPLER_FRAMES_MAX frames. All signals but our own are blocked meanwhile; a tick in the midst of
 * another only leaves its weight, so that the watch's signal, which goes to whoever runs, finds no reason to go to a
 * thread that sleeps. */
#include "preload/tick.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <ucontext.h>

#include "preload/kernel.h"
#include "preload/modules.h"
#include "preload/process.h"
#include "preload/signals.h"
#include "preload/threads.h"
#include "preload/unwind.h"

/* What our timers' signals carry: this, the slot's index, and the low bits of its generation. */
#define TICK_MARK UINT64_C(0xa55a7)
#define TICK_WATCH ((TICK_MARK << 44) | UINT64_C(0xfff) << 32 | UINT32_MAX)
/* CPU timers expire at the kernel's ticks, at most 10 ms apart; but where CPUs are shared, a thread may use its CPU in
 * slices between them for long. So the long delay, except where we have our signal blocked now and then ourselves. */
#define USUAL_DELAY_NS INT64_C(200000000)
#define USUAL_DELAY_BLOCKED_NS INT64_C(20000000)
#define WATCH_FIRST_NS INT64_C(20000000)
#define WATCH_FOUND_NS INT64_C(4000000) /* where there was one, there may be others */
#define WATCH_UNKNOWN_NS INT64_C(80000000) /* at most, while some thread has no slot */
#define WATCH_SLOWEST_NS INT64_C(1600000000)

static _Atomic int64_t watch_timer = -1;
static int64_t watch_ns;

static uint64_t mark_of(const struct slot *s)
{
	return (TICK_MARK << 44) | (uint64_t)s->index << 32 | (atomic_load(&s->generation) & 0x7fffffff);
}

/* The slot that a tick is for, or NULL: the thread that had it has ended. */
static struct slot *slot_of(uint64_t value)
{
	struct slot *s = ring_slot((uint32_t)(value >> 32) & 0xfff);

	if (!s || atomic_load(&s->shared.state) != SAMPLER_SLOT_TAKEN || mark_of(s) != value)
		return NULL;
	return s;
}

static uintptr_t stack_pointer(const ucontext_t *at)
{
#if defined(__x86_64__)
	return (uintptr_t)at->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	return (uintptr_t)at->uc_mcontext.sp;
#else
	return 0;
#endif
}

/* What is known to be readable above the stack pointer: of the thread's own stack or its alternate one. A program may
 * also switch to a stack that we know nothing of. */
static struct unwind_range readable(const struct slot *s, const ucontext_t *at)
{
	uintptr_t sp = stack_pointer(at), alternate = (uintptr_t)at->uc_stack.ss_sp;
	const struct unwind_range *own = &ring_stacks[s->index];

	if (sp >= own->low && sp < own->high)
		return (struct unwind_range){sp, own->high};
	if (sp >= alternate && sp - alternate < at->uc_stack.ss_size)
		return (struct unwind_range){sp, alternate + at->uc_stack.ss_size};
	return (struct unwind_range){0};
}

static void write_name(struct slot *s, int64_t t)
{
	struct sampler_thread *record;

	if (!atomic_exchange(&s->name_changed, 0))
		return;
	record = (struct sampler_thread *)ring_reserve(s, sizeof *record, SAMPLER_THREAD);
	if (!record) {
		atomic_store(&s->name_changed, 1);
		return;
	}
	record->t = t;
	record->tid = atomic_load(&s->shared.tid);
	record->reserved = 0;
	for (size_t i = 0; i < sizeof s->name / sizeof *s->name; i++) {
		uint64_t part = atomic_load(&s->name[i]);

		memcpy(record->name + 8 * i, &part, 8);
	}
	ring_commit(s, &record->record);
}

static uint16_t flags_of(unsigned result)
{
	return (uint16_t)((result & UNWIND_COMPLETE ? SAMPLER_COMPLETE : 0) | (result & UNWIND_CUT ? SAMPLER_CUT : 0) |
			  (result & UNWIND_GUESSED ? SAMPLER_GUESSED : 0));
}

/* As far as it differs from the one before. */
static bool write_sample(struct slot *s, size_t count, unsigned result, int64_t t, uint32_t weight)
{
	uint32_t kept = 0, last = s->last_count < SAMPLER_FRAMES_MAX ? s->last_count : SAMPLER_FRAMES_MAX, new;
	struct sampler_sample *record;

	while (kept < count && kept < last && s->last[kept] == s->frames[count - 1 - kept])
		kept++;
	new = (uint32_t)count - kept;
	record = (struct sampler_sample *)ring_reserve(s, (uint32_t)(sizeof *record + new * sizeof *s->frames),
						       SAMPLER_SAMPLE);
	if (!record)
		return false;
	record->record.flags = flags_of(result);
	record->t = t;
	record->tid = atomic_load(&s->shared.tid);
	record->weight = weight;
	record->kept = kept;
	record->count = new;
	memcpy(record->frames, s->frames, new * sizeof *s->frames);
	for (uint32_t i = kept; i < count; i++)
		s->last[i] = s->frames[count - 1 - i];
	s->last_count = (uint32_t)count;
	ring_commit(s, &record->record);
	return true;
}

/* Writes the stack s->frames[0..count), or counts what finds no room. */
static void record(struct slot *s, size_t count, unsigned result, int64_t t, uint32_t weight)
{
	ring_count(&s->shared.weight, weight);
	write_name(s, t);
	if (!write_sample(s, count, result, t, weight)) {
		ring_count(&s->shared.dropped, 1);
		ring_count(&s->shared.dropped_weight, weight);
	}
}

static int64_t period_ns(void)
{
	return INT64_C(1000000000) / process.hz;
}

static void sample(struct slot *s, uint32_t weight, const ucontext_t *at)
{
	int64_t begun = process_now();
	struct unwind_options options = {
		.known = readable(s, at),
		.may_probe = !atomic_load_explicit(&process.restricted, memory_order_relaxed),
		.met = modules_met,
		.context = &begun,
	};
	int64_t delay = signals_on_alternate_stack() ? USUAL_DELAY_NS : USUAL_DELAY_BLOCKED_NS;
	uint32_t usual = 1 + (uint32_t)(delay / period_ns());
	unsigned result = 0;
	size_t count;

	weight += atomic_exchange(&s->missed, 0);
	/* The signal was blocked: only the last of that time was spent here. */
	if (weight > usual) {
		record(s, 0, 0, begun, weight - usual);
		weight = usual;
	}
	count = unwind_walk(at, &options, s->frames, SAMPLER_FRAMES_MAX, &result);
	if (result & UNWIND_UNKNOWN)
		process_trouble(SAMPLER_UNKNOWN_STACK);
	ring_count(&s->shared.deliveries, 1);
	record(s, count, result, begun, weight);
	ring_count(&s->shared.handler_ns, (uint64_t)(process_now() - begun));
}

static void set_watch(int64_t after)
{
	struct itimerspec when = {.it_value = {after / 1000000000, after % 1000000000}};
	int64_t timer = atomic_load(&watch_timer);

	if (timer >= 0)
		KERNEL_4(SYS_timer_settime, timer, 0, &when, NULL);
}

/* The more looks find only threads that we know, the rarer they become. */
static void look(void)
{
	if (atomic_load(&process.restricted))
		return;
	if (threads_adopt()) {
		watch_ns = WATCH_FOUND_NS;
	} else {
		int64_t slowest = threads_unknown() ? WATCH_UNKNOWN_NS : WATCH_SLOWEST_NS;

		watch_ns = 2 * watch_ns < slowest ? 2 * watch_ns : slowest;
	}
	set_watch(watch_ns);
}

void tick_handle(int signal, siginfo_t *info, void *context)
{
	uint64_t value = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
	struct slot *s;

	if (info->si_code != SI_TIMER || value >> 44 != TICK_MARK) {
		signals_pass(signal, info, context);
		return;
	}
	if (!process_sampled() || atomic_load_explicit(&process.blind, memory_order_relaxed))
		return;
	if (value == TICK_WATCH) {
		look();
		return;
	}
	s = slot_of(value);
	if (s) {
		uint32_t weight = 1 + (info->si_overrun > 0 ? (uint32_t)info->si_overrun : 0);

		if (atomic_exchange(&s->busy, 1)) {
			atomic_fetch_add(&s->missed, weight);
			return;
		}
		sample(s, weight, context);
		atomic_store(&s->busy, 0);
	}
}

bool tick_install(int signal)
{
	struct sigaction ours = {.sa_sigaction = tick_handle, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER};

	if (signals_on_alternate_stack())
		ours.sa_flags |= SA_ONSTACK;
	sigfillset(&ours.sa_mask);
	sigdelset(&ours.sa_mask, signal);
	return signals_install(signal, &ours, NULL) == 0;
}

/* Of a thread, by its kernel number: also from another thread. */
static int clock_of(int tid)
{
	return (int)(~(unsigned)tid << 3 | 6);
}

static int64_t used_ns(int clock)
{
	struct timespec used = {0};

	KERNEL_2(SYS_clock_gettime, clock, &used);
	return used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
}

/* Uniform in (0, period]: the first tick of a short thread comes at no favoured time. */
static int64_t first_tick(int tid, int64_t period)
{
	uint64_t x = (uint64_t)process_now() * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)(unsigned)tid;

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (int64_t)((x ^ x >> 31) % (uint64_t)period) + 1;
}

static long make_timer(struct slot *s, int64_t first, int flags)
{
	int64_t period = period_ns();
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = atomic_load(&process.signal)};
	struct itimerspec when = {
		.it_value = {first / 1000000000, first % 1000000000},
		.it_interval = {period / 1000000000, period % 1000000000},
	};
	int tid = atomic_load(&s->shared.tid), timer;
	long failed;

	event.sigev_value.sival_ptr = (void *)(uintptr_t)mark_of(s);
	event._sigev_un._tid = tid;
	failed = KERNEL_3(SYS_timer_create, clock_of(tid), &event, &timer);
	if (failed < 0)
		return failed;
	atomic_store(&s->timer, timer + INT64_C(1));
	failed = KERNEL_4(SYS_timer_settime, timer, flags, &when, NULL);
	if (failed < 0)
		tick_disarm(s);
	return failed;
}

static void count_refused(long failed)
{
	atomic_fetch_add(&ring_header->unarmed, 1);
	atomic_store(&ring_header->unarmed_errno, (int32_t)-failed);
	process_trouble(SAMPLER_TIMER_REFUSED);
}

void tick_arm(struct slot *s, bool is_new)
{
	int tid = atomic_load(&s->shared.tid);
	long failed;

	s->first_ns = (is_new ? 0 : used_ns(clock_of(tid))) + first_tick(tid, period_ns());
	s->weight_before = atomic_load(&s->shared.weight);
	failed = make_timer(s, s->first_ns, TIMER_ABSTIME);
	if (failed < 0)
		count_refused(failed);
}

void tick_disarm(struct slot *s)
{
	int64_t timer = atomic_exchange(&s->timer, 0);

	if (timer)
		KERNEL_1(SYS_timer_delete, timer - 1);
}

/* The kernel looks at CPU timers only at its own ticks (every 4 ms or so), so the last periods of a thread that ends in
 * between come to no signal: for short threads, most. They count, and what ran in them is not known. */
void tick_settle(struct slot *s, int64_t cpu_ns)
{
	uint64_t due = cpu_ns < s->first_ns ? 0 : 1 + (uint64_t)((cpu_ns - s->first_ns) / period_ns()), had, more;

	atomic_store(&s->busy, 1); /* a tick that was pending does not write into the midst of this */
	had = atomic_load(&s->shared.weight) - s->weight_before;
	if (due <= had)
		return;
	more = due - had < UINT32_MAX ? due - had : UINT32_MAX;
	record(s, 0, 0, process_now(), (uint32_t)more);
}

int64_t tick_thread_ns(void)
{
	return used_ns(CLOCK_THREAD_CPUTIME_ID);
}

bool tick_has_timer(const struct slot *s)
{
	return atomic_load(&s->timer) != 0;
}

bool tick_stop(struct slot *s)
{
	if (!tick_has_timer(s))
		return false;
	tick_disarm(s);
	tick_settle(s, tick_thread_ns());
	return true;
}

void tick_resume(struct slot *s)
{
	atomic_store(&s->missed, 0); /* was settled */
	atomic_store(&s->busy, 0);
	tick_arm(s, false);
}

/* The thread may end meanwhile, and take its timer with it or find none: then the new one must not stay. */
void tick_move(struct slot *s)
{
	uint32_t generation = atomic_load(&s->generation);
	int64_t timer = atomic_exchange(&s->timer, 0);
	struct itimerspec left = {0};
	long failed;

	if (!timer)
		return;
	KERNEL_2(SYS_timer_gettime, timer - 1, &left);
	KERNEL_1(SYS_timer_delete, timer - 1);
	failed = make_timer(s, left.it_value.tv_sec * INT64_C(1000000000) + left.it_value.tv_nsec + 1, 0);
	if (atomic_load(&s->generation) != generation)
		tick_disarm(s);
	else if (failed < 0)
		count_refused(failed);
}

/* Since Linux 6.4 the signal of such a timer goes to the thread that runs. Before, it could wake one that sleeps. */
static bool watch_finds_runner(void)
{
	struct utsname name;
	char *end;
	long major, minor;

	if (KERNEL_1(SYS_uname, &name) < 0)
		return false;
	major = strtol(name.release, &end, 10);
	minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
	return major > 6 || (major == 6 && minor >= 4);
}

void tick_watch(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = atomic_load(&process.signal)};
	int timer;

	tick_unwatch();
	if (!watch_finds_runner())
		return;
	event.sigev_value.sival_ptr = (void *)(uintptr_t)TICK_WATCH;
	if (KERNEL_3(SYS_timer_create, CLOCK_PROCESS_CPUTIME_ID, &event, &timer) < 0)
		return;
	atomic_store(&watch_timer, timer);
	watch_ns = WATCH_FIRST_NS;
	set_watch(watch_ns);
}

void tick_unwatch(void)
{
	int64_t timer = atomic_exchange(&watch_timer, -1);

	if (timer >= 0)
		KERNEL_1(SYS_timer_delete, timer);
}

void tick_forget(void)
{
	atomic_store(&watch_timer, -1);
}
