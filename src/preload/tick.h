/* The signal handler that takes the samples, and the timers that call it: one per thread, on its own CPU clock. */
#ifndef ASSAY_PRELOAD_TICK_H
#define ASSAY_PRELOAD_TICK_H

#include <signal.h>
#include <stdbool.h>

#include "preload/ring.h"

/* Has our handler take this signal. */
bool tick_install(int signal);
void tick_handle(int signal, siginfo_t *info, void *context);

/* Starts and stops the timer of the thread that s->shared.tid names, from any thread. One that cannot be had is counted
 * by tick_arm; tick_move changes to process.signal. A thread that is new has used no CPU time before. */
void tick_arm(struct slot *s, bool is_new);
void tick_disarm(struct slot *s);
void tick_move(struct slot *s);

/* Before the calling thread's program ends: stops its timer and writes what no tick came for, as a sample without a
 * stack. False where it has no timer. Where it goes on after all, tick_resume. */
bool tick_has_timer(const struct slot *s);
bool tick_stop(struct slot *s);
void tick_resume(struct slot *s);

/* The thread ends, its timer is gone, and it has used so much CPU time: writes what no tick came for, as a sample
 * without a stack. */
void tick_settle(struct slot *s, int64_t cpu_ns);

/* CPU time of the calling thread. */
int64_t tick_thread_ns(void);

/* A slow timer on the CPU time of the whole process, that finds threads made past every hook. */
void tick_watch(void);
void tick_unwatch(void);

/* In a forked child, which has no timers. */
void tick_forget(void);

#endif
