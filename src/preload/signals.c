#include "preload/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/signalfd.h>
#include <ucontext.h>

#include "preload/kernel.h"
#include "preload/lock.h"
#include "preload/process.h"
#include "preload/real.h"
#include "preload/tick.h"

/* Exported by libc and declared nowhere. */
int __sigaction(int signal, const struct sigaction *action, struct sigaction *old);
sighandler_t bsd_signal(int number, sighandler_t handler);
sighandler_t __sysv_signal(int number, sighandler_t handler);

#define SIGNALS 65
#define FIRST_RT 34 /* the two below are libc's own */
#define PREFERRED_FROM_LAST 3
/* So many real-time signals in one set were not named one by one. */
#define MANY 16

/* What a tick needs of an alternate stack, beside the kernel's frames. */
#define TICK_STACK 4096u

/* What the program asked for, of the signals that our handler has. The kernel knows only ours. */
static struct sigaction theirs[SIGNALS];
static _Atomic uint64_t had; /* bits of the signals that our handler has or had */
static struct lock moving;
/* An alternate stack is too small for ticks: they stay on the thread's own, and wait while a handler runs on it. */
static _Atomic bool small_stacks;

static bool is_had(int signal)
{
	return signal > 0 && signal < SIGNALS && (atomic_load(&had) & KERNEL_SIGNAL_BIT(signal)) != 0;
}

static bool is_current(int signal)
{
	return signal > 0 && signal == atomic_load(&process.signal) && process_sampled();
}

static bool is_default(int signal)
{
	struct sigaction now;

	return signals_install(signal, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
}

int signals_install(int signal, const struct sigaction *action, struct sigaction *old)
{
	return real_functions()->__sigaction(signal, action, old);
}

/* From the preferred number down, then up: the lowest ones are what programs take first. */
static int take_free_signal(int except)
{
	int last = SIGRTMAX, preferred = last - PREFERRED_FROM_LAST;

	for (int i = 0; i <= last - FIRST_RT; i++) {
		int signal = preferred - i >= FIRST_RT ? preferred - i : last - (i - (preferred - FIRST_RT + 1));

		if (signal == except || is_had(signal) || !is_default(signal))
			continue;
		memset(&theirs[signal], 0, sizeof theirs[signal]);
		atomic_fetch_or(&had, KERNEL_SIGNAL_BIT(signal));
		if (tick_install(signal))
			return signal;
		atomic_fetch_and(&had, ~KERNEL_SIGNAL_BIT(signal));
	}
	return 0;
}

int signals_choose(void)
{
	return take_free_signal(0);
}

void signals_unblock(void)
{
	uint64_t ours = KERNEL_SIGNAL_BIT(atomic_load(&process.signal));

	kernel_mask(SIG_UNBLOCK, &ours, NULL);
}

/* Moves all timers from this signal to a free one. The old one keeps our handler until the program sets its own: a tick
 * may still be pending, and must not meet the default action. A thread that has blocked the new number by a system call
 * of its own gets no ticks until it unblocks it. */
static bool move_from(int signal)
{
	int saved = errno, next;
	uint64_t mask;

	if (!process_active())
		return false;
	mask = lock_take(&moving);
	next = atomic_load(&process.signal);
	if (next == signal)
		next = take_free_signal(signal);
	if (next != 0 && next != atomic_load(&process.signal)) {
		atomic_store(&process.signal, next);
		ring_header->signal = (uint32_t)next;
		for (uint32_t i = 0; i < ring_slots(); i++)
			tick_move(ring_slot(i));
		tick_watch();
	}
	lock_drop(&moving, mask);
	errno = saved;
	return next != 0;
}

static void give_up(void)
{
	uint64_t mask = lock_take(&moving);

	process_trouble(SAMPLER_SIGNAL_TAKEN);
	for (uint32_t i = 0; i < ring_slots(); i++)
		tick_disarm(ring_slot(i));
	tick_unwatch();
	lock_drop(&moving, mask);
}

void signals_check(void)
{
	int signal = atomic_load(&process.signal), saved = errno;
	struct sigaction now;

	if (signal > 0 && process_active() && signals_install(signal, NULL, &now) == 0 &&
	    now.sa_sigaction != tick_handle) {
		atomic_fetch_and(&had, ~KERNEL_SIGNAL_BIT(signal));
		if (!(atomic_load(&ring_header->trouble) & SAMPLER_SIGNAL_TAKEN) && !move_from(signal))
			give_up();
	}
	errno = saved;
}

void signals_forked(void)
{
	atomic_store(&moving.state, 0);
}

/* As the kernel would: the default action of a real-time signal ends the process. Ours is blocked by nobody here, so it
 * comes as soon as the handler returns. */
static void act_by_default(int signal)
{
	struct sigaction action = {.sa_handler = SIG_DFL};

	signals_install(signal, &action, NULL);
	KERNEL_3(SYS_tgkill, kernel_pid(), kernel_tid(), signal);
}

void signals_pass(int signal, siginfo_t *info, void *context)
{
	struct sigaction action = theirs[signal];
	uint64_t wanted, during;

	if (action.sa_handler == SIG_IGN)
		return;
	if (action.sa_handler == SIG_DFL) {
		/* A timer's signal may be a tick that came late. */
		if (info->si_code != SI_TIMER && !atomic_load(&process.restricted))
			act_by_default(signal);
		return;
	}
	if (action.sa_flags & (int)SA_RESETHAND)
		theirs[signal].sa_handler = SIG_DFL;
	memcpy(&wanted, &action.sa_mask, sizeof wanted);
	memcpy(&during, &((ucontext_t *)context)->uc_sigmask, sizeof during);
	during |= wanted | (action.sa_flags & SA_NODEFER ? 0 : KERNEL_SIGNAL_BIT(signal));
	if (!atomic_load(&process.restricted))
		kernel_mask(SIG_SETMASK, &during, NULL);
	if (action.sa_flags & SA_SIGINFO)
		action.sa_sigaction(signal, info, context);
	else
		action.sa_handler(signal);
}

/* What a program means by a set that has our signal in it. */
enum meaning { NOT_OURS, ALL_SIGNALS, OURS_BY_NAME };

static enum meaning meaning_of(const sigset_t *set)
{
	uint64_t bits, ours = KERNEL_SIGNAL_BIT(atomic_load(&process.signal));

	memcpy(&bits, set, sizeof bits);
	if (!(bits & ours))
		return NOT_OURS;
	return __builtin_popcountll(bits >> (FIRST_RT - 1)) >= MANY ? ALL_SIGNALS : OURS_BY_NAME;
}

/* The set as it may reach libc: without our signal, unless that has become the program's. *room is where a changed one
 * is put. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *room)
{
	enum meaning meaning;

	if (!set || atomic_load(&process.signal) == 0 || !process_sampled())
		return set;
	meaning = meaning_of(set);
	if (meaning == OURS_BY_NAME && move_from(atomic_load(&process.signal)))
		meaning = meaning_of(set);
	if (meaning == NOT_OURS)
		return set;
	*room = *set;
	sigdelset(room, atomic_load(&process.signal));
	return room;
}

/* Gives the program our signal, if this is it. Where it must be shared, returns true. */
static bool shared_after_yielding(int signal)
{
	return is_current(signal) && !move_from(signal);
}

static bool is_handler(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static int set_action(int (*next)(int, const struct sigaction *, struct sigaction *), int signal,
		      const struct sigaction *action, struct sigaction *old)
{
	struct sigaction mine, before;
	int result;

	if (is_current(signal) && (!action || !is_handler(action) || shared_after_yielding(signal))) {
		before = theirs[signal];
		if (action)
			theirs[signal] = *action;
		if (old)
			*old = before;
		return 0;
	}
	if (action && is_handler(action) && atomic_load(&process.signal) > 0) {
		mine = *action;
		if ((action->sa_flags & SA_ONSTACK) && atomic_load(&small_stacks))
			sigaddset(&mine.sa_mask, atomic_load(&process.signal));
		else
			sigdelset(&mine.sa_mask, atomic_load(&process.signal));
		action = &mine;
	}
	result = next(signal, action, old);
	if (result == 0 && old && is_had(signal) && old->sa_sigaction == tick_handle)
		*old = theirs[signal];
	return result;
}

EXPORT int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	return set_action(real_functions()->sigaction, signal, action, old);
}

EXPORT int __sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	return set_action(real_functions()->__sigaction, signal, action, old);
}

static sighandler_t set_handler(sighandler_t (*next)(int, sighandler_t), int signal, sighandler_t handler, int flags)
{
	sighandler_t before;

	if (is_current(signal) && (handler == SIG_DFL || handler == SIG_IGN || shared_after_yielding(signal))) {
		before = theirs[signal].sa_handler;
		theirs[signal] = (struct sigaction){.sa_handler = handler, .sa_flags = flags};
		return before;
	}
	before = next(signal, handler);
	return is_had(signal) && before == (sighandler_t)(void *)tick_handle ? theirs[signal].sa_handler : before;
}

EXPORT sighandler_t signal(int number, sighandler_t handler)
{
	return set_handler(real_functions()->signal, number, handler, SA_RESTART);
}

EXPORT sighandler_t bsd_signal(int number, sighandler_t handler)
{
	return set_handler(real_functions()->signal, number, handler, SA_RESTART);
}

EXPORT sighandler_t ssignal(int number, sighandler_t handler)
{
	return set_handler(real_functions()->signal, number, handler, SA_RESTART);
}

EXPORT sighandler_t sysv_signal(int number, sighandler_t handler)
{
	return set_handler(real_functions()->sysv_signal, number, handler, (int)SA_RESETHAND | SA_NODEFER);
}

EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler)
{
	return set_handler(real_functions()->sysv_signal, number, handler, (int)SA_RESETHAND | SA_NODEFER);
}

EXPORT sighandler_t sigset(int number, sighandler_t disposition)
{
	if (shared_after_yielding(number))
		return set_handler(real_functions()->sigset, number, disposition, 0);
	return real_functions()->sigset(number, disposition);
}

EXPORT int sighold(int number)
{
	return shared_after_yielding(number) ? 0 : real_functions()->sighold(number);
}

EXPORT int sigignore(int number)
{
	if (!is_current(number))
		return real_functions()->sigignore(number);
	theirs[number] = (struct sigaction){.sa_handler = SIG_IGN};
	return 0;
}

EXPORT int siginterrupt(int number, int interrupt)
{
	return shared_after_yielding(number) ? 0 : real_functions()->siginterrupt(number, interrupt);
}

bool signals_on_alternate_stack(void)
{
	return !atomic_load(&small_stacks);
}

/* Also those handlers that are there already let no tick onto the small stack. */
static void avoid_small_stacks(void)
{
	int current = atomic_load(&process.signal);
	struct sigaction action;

	if (atomic_exchange(&small_stacks, true) || current == 0)
		return;
	for (int i = 1; i < SIGNALS; i++) {
		if (signals_install(i, NULL, &action) != 0 || !is_handler(&action) || !(action.sa_flags & SA_ONSTACK))
			continue;
		if (action.sa_sigaction == tick_handle)
			action.sa_flags &= ~SA_ONSTACK;
		else
			sigaddset(&action.sa_mask, current);
		signals_install(i, &action, NULL);
	}
}

/* For a tick in the midst of a handler of the program. An old kernel does not tell how large its frames are: they hold
 * the registers of AVX-512 at most. */
static size_t needed_stack(void)
{
	size_t frame = getauxval(AT_MINSIGSTKSZ);

	return 2 * (frame ? frame : 4096) + TICK_STACK;
}

void signals_look_at_stack(void)
{
	stack_t stack = {.ss_flags = SS_DISABLE};

	if (real_functions()->sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_DISABLE) &&
	    stack.ss_size < needed_stack())
		avoid_small_stacks();
}

EXPORT int sigaltstack(const stack_t *stack, stack_t *old)
{
	int saved = errno;

	if (stack && !(stack->ss_flags & SS_DISABLE) && stack->ss_size < needed_stack() && process_active()) {
		avoid_small_stacks();
		errno = saved;
	}
	return real_functions()->sigaltstack(stack, old);
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t room;

	return real_functions()->sigprocmask(how, how == SIG_UNBLOCK ? set : without_ours(set, &room), old);
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t room;

	return real_functions()->pthread_sigmask(how, how == SIG_UNBLOCK ? set : without_ours(set, &room), old);
}

EXPORT int sigwait(const sigset_t *set, int *number)
{
	sigset_t room;

	return real_functions()->sigwait(without_ours(set, &room), number);
}

EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	sigset_t room;

	return real_functions()->sigwaitinfo(without_ours(set, &room), info);
}

EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	sigset_t room;

	return real_functions()->sigtimedwait(without_ours(set, &room), info, timeout);
}

EXPORT int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t room;

	return real_functions()->signalfd(fd, without_ours(set, &room), flags);
}
