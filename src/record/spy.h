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
#include "model/monitor.h"
#include "model/warnings.h"

enum spy_resource { SPY_RSS, SPY_ANON, SPY_FILE, SPY_SWAP, SPY_PSS, SPY_RESOURCES };
extern const char *const spy_resource_names[SPY_RESOURCES]; /* "rss", "anon", "file", "swap", "pss" */

#define SPY_GPUS_MAX 64

/* What one tick saw; -1 where it was not read at this one. With `tree` sums over the processes that live. */
struct spy_sample {
	int64_t t;
	int64_t bytes[SPY_RESOURCES];
	int64_t gpus[SPY_GPUS_MAX]; /* used on each, by all programs */
	size_t gpu_count;
	size_t processes;
};

struct spy_options {
	pid_t pid;
	pid_t reaper;     /* with `tree`: descendants that lose their parent become this one's children; 0: none does */
	bool tree, gpu;
	bool pss;         /* rarely: at the beginning, at new maxima, at the end */
	int64_t delay_ns; /* at least 100 us */
	void (*sample)(void *context, const struct spy_sample *s); /* after each tick; may be NULL */
	void *context;
};

enum spy_end {
	SPY_RUNNING,
	SPY_STOPPED, /* the watch was ended, and the process lived on */
	SPY_GONE,    /* the process ended */
};

struct spy_result {
	struct monitor resources[SPY_RESOURCES]; /* n 0: never read; why stands in warnings */
	struct monitor gpus[SPY_GPUS_MAX];
	char gpu_names[SPY_GPUS_MAX][96];
	size_t gpu_count;
	int64_t begin, end; /* CLOCK_MONOTONIC, ns */
	enum spy_end how;
	/* The kernel's own peak of the RSS (VmHWM): at the first and at the last reading; -1. A rise proves that the
	 * peak of the watch is at least the last one, however short it was. With `tree` those of all processes
	 * that were seen, summed: a bound from above only, and `tree_bound` says so. */
	int64_t high_water_begin, high_water_end;
	int64_t high_water_read_at;
	/* The peak RSS: from the samples or from the mark, whichever is larger where the mark speaks of this watch.
	 * `peak_exact`: no value between the ticks can have been larger by more than 2%; else the peak is a bound from
	 * below, and `peak_above` one from above (-1: none is known). */
	int64_t peak, peak_above;
	bool peak_from_mark, peak_exact, tree_bound;
	uint64_t ticks, late_ticks; /* late: more than one delay after their time */
	uint64_t processes, unseen; /* of the tree; unseen: ended before anything of them was read, at least so many */
	struct warnings warnings;   /* what could not be observed, and why */
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

/* The exit of a child of ours told its peak (ru_maxrss of wait4, when it was not poisoned by its parent): for results of
 * a process that ended. */
void spy_result_maxrss(struct spy_result *r, int64_t bytes);

void spy_result_init(struct spy_result *r);
void spy_result_release(struct spy_result *r);

#endif
