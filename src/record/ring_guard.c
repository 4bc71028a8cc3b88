#include "record/ring_guard.h"

#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

/* volatile: changed by a handler in the midst of plain reads. */
static _Thread_local struct {
	volatile uintptr_t start, end;
	volatile bool broken;
} guarded;

static struct sigaction before;

static void on_bus_error(int signo, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr, start = guarded.start, end = guarded.end;

	(void)signo, (void)context;
	if (at >= start && at < end &&
	    mmap((void *)start, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		    MAP_FAILED) {
		guarded.broken = true;
		return;
	}
	/* Not ours: whoever was there before gets it when the instruction is tried again. */
	sigaction(SIGBUS, &before, NULL);
}

void ring_guard_begin(void *start, size_t length)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO}, now;

	if (sigaction(SIGBUS, NULL, &now) == 0 &&
	    (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_bus_error)) {
		before = now;
		sigemptyset(&action.sa_mask);
		sigaction(SIGBUS, &action, NULL);
	}
	guarded.broken = false;
	guarded.start = (uintptr_t)start;
	guarded.end = (uintptr_t)start + length;
}

bool ring_guard_end(void)
{
	guarded.start = guarded.end = 0;
	return guarded.broken;
}
