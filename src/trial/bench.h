/* Runs a benchmark: set up, interleaved runs by randomised blocks, clean up. It fills the plan that it is given.
 *
 * The shell with nothing to do is one more side of the design, so that its start-up is measured in the same weather. */
#ifndef ASSAY_TRIAL_BENCH_H
#define ASSAY_TRIAL_BENCH_H

#include "base/error.h"
#include "exec/timed.h"
#include "model/bench.h"

struct bench_execution {
	struct timed *timed; /* made while this process was small */
	size_t runs;         /* of each command; 0: as many as fit into three seconds of each, within the bounds */
	size_t least, most;
	bool until_decided;  /* `runs` or `most` is then the most; before `least` runs nobody asks */
	bool ignore_failure;
	const char *input;   /* file for stdin, from its start for each run; NULL: /dev/null */
	int64_t timeout_ns;  /* of each run; 0: none */
	char *const *shell;  /* words to which -c and a line are added: for setup, prepare, conclude, cleanup */
	char *const *empty;  /* the shell with an empty line, to measure its start-up; NULL: no shell is used */
	const volatile int *stop; /* set by a handler on Ctrl-C */
	void (*progress)(void *context, size_t at, size_t of, size_t command); /* may be NULL; `command` may be count */
	void *context;
};

/* 0; 1 when it was stopped; -1 with *err when a command or a hook failed, or for trouble of our own. What was measured
 * until then is in *b, whose state says the same. */
int bench_execute(struct bench *b, const struct bench_execution *x, struct error *err);

#endif
