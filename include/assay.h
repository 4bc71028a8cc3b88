/* assay.h: marks in your own program for `assay run`.
 *
 * C99 and C++. Every function may be called from any thread, at any time; outside `assay run` they do nothing and say
 * so by their return value. Nothing here exits, prints, or touches signals. */
#ifndef ASSAY_H
#define ASSAY_H

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_VERSION_MAJOR 0
#define ASSAY_VERSION_MINOR 1

/* "0.1.0": the version of the library that is loaded. A constant; never NULL. */
const char *assay_version(void);

/* From now on the program is in the phase `name` (copied; at most 4,000 bytes are used, line breaks become blanks),
 * until the next mark. load, warmup, prefill, decode, serving and shutdown are groups of their own; any other name
 * belongs to the group "other". The time is CLOCK_MONOTONIC at the call. One write(2) to the file in $ASSAY_MARKERS,
 * which is opened for each call: some microseconds. No other thread may change the environment meanwhile.
 * Returns 0; -1 where nothing is being recorded or the file cannot be written (assay_last_error says which). */
int assay_mark(const char *name);

/* Why the last call in this thread that returned -1 did so: a sentence, valid until this thread's next call; empty
 * where none has. Never NULL. */
const char *assay_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
