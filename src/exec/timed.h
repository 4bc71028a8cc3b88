/* Times one command: start to exit, with as little of the starter in the figures as can be.
 *
 * It records nothing and follows no tree: `run` does that. From a parent of any size the cost is the same, and the peak
 * memory is the command's own, not what its starter held. */
#ifndef ASSAY_EXEC_TIMED_H
#define ASSAY_EXEC_TIMED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct timed_options {
	char *const *argv;        /* ends with NULL; found through $PATH of `environment` */
	char *const *environment; /* ends with NULL; NULL: this process's */
	int in, out, err;         /* descriptors for 0, 1, 2; borrowed */
	int64_t timeout_ns;       /* 0: none; then TERM to the process group, and KILL 1 s later */
};

struct timed_result {
	int64_t wall_ns;              /* CLOCK_MONOTONIC, from just before the exec to the exit as seen */
	int64_t user_ns, system_ns;   /* of it and of the children that it waited for */
	int64_t max_rss;              /* bytes, of the largest single process among them */
	int64_t minor_faults, major_faults, voluntary_switches, involuntary_switches;
	int status;                   /* as from wait4; WIFSTOPPED: it stopped for a second, and was ended */
	bool timed_out;
};

/* A starter that is made once, while this process is still small. NULL and *err where it cannot be. */
struct timed *timed_new(struct error *err);
void timed_free(struct timed *t);

/* Runs the command and waits for it. 0; 1 where a signal in *stop (may be NULL; set by a handler) ended it early; 127
 * or 126 where the command was not found or cannot be executed, with *err; -1 for trouble of our own. */
int timed_run(struct timed *t, const struct timed_options *o, const volatile int *stop, struct timed_result *ret,
	      struct error *err);

#endif
