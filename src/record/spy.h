/* Watches the memory of a process, or of a process and its descendants, from outside. It records no run.
 *
 * statm by a kept descriptor at every tick; status (swap, high-water mark) and PSS as seldom as their cost asks for. A
 * process is (pid, start time): one that is gone, or whose pid is used again, ends the watch. Bytes; -1 not known. */
#ifndef ASSAY_RECORD_SPY_H
#define ASSAY_RECORD_SPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "model/spy_result.h"

struct spy_options {
	pid_t pid;
	pid_t reaper;     /* with `tree`: descendants that lose their parent become this one's children; 0: none does */
	bool tree, gpu;
	bool pss;         /* rarely: at the beginning, at new maxima, at the end */
	int64_t delay_ns; /* at least 100 us */
	void (*sample)(void *context, const struct spy_sample *s); /* after each tick; may be NULL */
	void *context;
};

struct spy;

/* Fails where there is no such process, where it is a kernel thread or has ended already, and where /proc is closed to
 * us: the sentence names the pid and what to do. GPUs that cannot be read fail it where they were asked for. */
int spy_new(const struct spy_options *o, struct spy **ret, struct error *err);
void spy_free(struct spy *s);

/* Reads once. False: the process has ended, and there will be no more. */
bool spy_tick(struct spy *s, int64_t now);

/* Ticks every delay until the process ends, CLOCK_MONOTONIC passes `until` (0: never), or `stop_fd` (-1: none) becomes
 * readable or is closed at its other end. Sleeps in between without drifting; a tick that comes too late is not made up
 * for. */
void spy_watch(struct spy *s, int stop_fd, int64_t until);

/* A last reading where the process still lives, and all figures so far. *ret is filled whole, its warnings are
 * the caller's. May be called again and again, also between ticks (`final` false: no reading, nothing dear). */
void spy_figures(struct spy *s, bool final, struct spy_result *ret);

/* The exit of a child of ours told its peak (ru_maxrss of wait4, when it was not poisoned by its parent): for results
 * of a process that ended. Of a tree it is the largest peak among the process and those that it has waited for: a bound
 * from below. */
void spy_result_maxrss(struct spy_result *r, int64_t bytes);

#endif
