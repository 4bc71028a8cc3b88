/* Runs a function in a process of its own, which speaks back in lines.
 *
 * For what may be done only once in a process: a recording keeps its caller's signals, descriptors and dispositions for
 * its target. It knows nothing of recording. While the function runs, Ctrl-C and its like do not end this process. */
#ifndef ASSAY_EXEC_APART_H
#define ASSAY_EXEC_APART_H

#include <stdbool.h>

#include "base/error.h"

/* From here on INT, TERM, HUP and QUIT are only remembered, unless the caller ignored them. */
void apart_catch_signals(void);

/* The first of them that came; 0: none. */
int apart_signal(void);

/* Forks. The child has /dev/null for descriptors 0, 1 and 2, signals as they were before apart_catch_signals, gets a
 * TERM when this process ends, runs `function` and ends with what it returns. What it writes to `out` (close-on-exec)
 * arrives here, by lines of at most APART_LINE_MAX bytes, without their ends. A signal that came for this process alone
 * is passed on; one from the terminal reaches the child by itself. Returns once the child has ended: its exit status,
 * 128+N where it died of signal N, or -1 with *err where it could not be started. */
#define APART_LINE_MAX 4096
int apart_run(int (*function)(void *context, int out), void (*line)(void *context, const char *text), void *context,
	      struct error *err);

#endif
