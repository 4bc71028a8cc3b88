/* Preloaded into any program: walks the stack a thousand times per CPU second, as far as the kernel's tick allows, and
 * says at the program's end how the walks came out. Prints one line to the standard error:
 * "walks N complete PERCENT guessed PERCENT cut PERCENT frames MEAN". */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/time.h>

#include "preload/unwind.h"

#define FRAMES_MAX 1024

static _Atomic unsigned long walks, complete, guessed, cut, frame_sum;

static void on_tick(int number, siginfo_t *info, void *context)
{
	uint64_t frames[FRAMES_MAX];
	struct unwind_options options = {.may_probe = true};
	unsigned result;

	(void)number, (void)info;
	frame_sum += unwind_walk(context, &options, frames, FRAMES_MAX, &result);
	walks++;
	complete += (result & UNWIND_COMPLETE) != 0;
	guessed += (result & UNWIND_GUESSED) != 0;
	cut += (result & UNWIND_CUT) != 0;
}

__attribute__((constructor)) static void start(void)
{
	struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	struct itimerval period = {{0, 1000}, {0, 1000}};

	if (unwind_init() == 0 && sigaction(SIGPROF, &action, NULL) == 0)
		setitimer(ITIMER_PROF, &period, NULL);
}

__attribute__((destructor)) static void finish(void)
{
	struct itimerval never = {{0, 0}, {0, 0}};

	setitimer(ITIMER_PROF, &never, NULL);
	if (walks)
		fprintf(stderr, "walks %lu complete %.2f%% guessed %.2f%% cut %.2f%% frames %.1f\n", walks,
			100.0 * (double)complete / (double)walks, 100.0 * (double)guessed / (double)walks,
			100.0 * (double)cut / (double)walks, (double)frame_sum / (double)walks);
}
