/* What the caller gave to assay and the target has to find unchanged, where assay or its helper changes it for itself:
 * the signal mask, which signals are ignored, a running alarm. It knows nothing of helpers and streams. */
#ifndef ASSAY_EXEC_CALLER_H
#define ASSAY_EXEC_CALLER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

struct caller {
	sigset_t mask, ignored;
	struct itimerval alarm; /* as it stood at alarm_t; zero: none */
	int64_t alarm_t;
};

/* The caller's mask and ignored signals, remembered by launch_block_signals; where that was not called, as they are
 * now. The alarm is left zero. */
void caller_read(struct caller *ret);

/* Stops the alarm of this process and keeps it for the target: a fork does not inherit it, an exec does. */
void caller_take_alarm(struct caller *c);

/* In the target's process, just before exec: everything as the caller gave it, the mask excepted, which goes last
 * (sigprocmask to c->mask), because what is pending comes through then. */
void caller_restore(const struct caller *c);

/* Whether it is the caller's: descriptors that survived the exec of assay are not close-on-exec, all of ours are. */
bool caller_owns_descriptor(int fd);

/* Closes this process's copies of what the caller passed on, from descriptor 3 up, and puts /dev/null in the place of
 * stdin: whoever holds the other ends must see when the target has closed them. */
void caller_let_go(void);

/* The same in the helper, which keeps nothing but these descriptors (all of them above 2) and is not to hold what
 * assay has open either. Descriptors 0, 1 and 2 become /dev/null. */
void caller_keep_only(const int *keep, size_t count);

#endif
