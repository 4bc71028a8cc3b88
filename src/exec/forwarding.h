/* Which signals that assay got have to be sent on to the command, so that it gets each exactly once.
 *
 * The helper is in the command's process group. A signal that both assay and the helper got from the same sender went
 * to the whole group, and the command has it; one that only assay got is sent on. Of a group the kernel serves the
 * youngest member first, so the helper has usually seen the signal when assay asks; where not, it waits a moment. Pure:
 * it knows signal numbers, senders (a pid; 0: the kernel) and times, and sends nothing itself. */
#ifndef ASSAY_EXEC_FORWARDING_H
#define ASSAY_EXEC_FORWARDING_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct forwarding {
	struct {
		unsigned count; /* times that the helper saw it and assay has not asked about yet */
		pid_t sender;
		int64_t t;
	} seen[NSIG];
	struct {
		int64_t due; /* 0: nothing waits */
		pid_t sender;
	} waiting[NSIG];
};

/* The helper itself got the signal. */
void forwarding_saw(struct forwarding *f, int signo, pid_t sender, int64_t now);

/* Assay got it. With `surely`, the command cannot have got it. */
void forwarding_ask(struct forwarding *f, int signo, pid_t sender, bool surely, int64_t now);

/* Calls `deliver` for each signal that is due. */
void forwarding_run(struct forwarding *f, int64_t now, void (*deliver)(void *context, int signo), void *context);

/* When to call forwarding_run again; 0: no need. */
int64_t forwarding_due(const struct forwarding *f);

/* Assay was stopped, and could not ask about what was seen meanwhile: it counts as seen now. */
void forwarding_refresh(struct forwarding *f, int64_t now);

#endif
