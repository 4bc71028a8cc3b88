/* Keeps the ticks' signal ours without taking it from the program.
 *
 * A program that blocks all signals or resets all handlers means no harm: it does not get ours. One that names our
 * signal, by a handler, a mask or a wait for it, wants it for itself: the ticks then move to another number, and only
 * where none is free both share it. */
#ifndef ASSAY_PRELOAD_SIGNALS_H
#define ASSAY_PRELOAD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Finds a signal for the ticks and installs the handler. Returns it, or 0 where none is free. */
int signals_choose(void);

/* sigaction as it is in libc. */
int signals_install(int signal, const struct sigaction *action, struct sigaction *old);

/* In the handler: a signal of this number that is no tick. The program's handler gets it, or its default action. */
void signals_pass(int signal, siginfo_t *info, void *context);

/* The ticks' handler runs on an alternate stack: there is none that is too small. */
bool signals_on_alternate_stack(void);

/* Once the signal is chosen and before the first tick: other libraries' constructors may have set an alternate
 * stack. */
void signals_look_at_stack(void);

/* Unblocks the ticks' signal in this thread. */
void signals_unblock(void);

/* Looks whether a program has taken our signal by a system call of its own, past the functions that we stand in for:
 * then moves to another, or gives up. */
void signals_check(void);

/* In a forked child. */
void signals_forked(void);

#endif
