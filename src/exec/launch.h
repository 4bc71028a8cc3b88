/* Starting the target through the helper: assay's side of it.
 *
 * The helper is forked before assay grows. It is the target's parent, a child subreaper, the only caller of wait4 and
 * the pump of its output; it goes on after assay's death until the last writer has closed, so that the target never
 * gets a broken pipe because of us. The target runs in the caller's session and process group, with the caller's stdin,
 * cwd, umask, descriptors, signal mask and dispositions.
 *
 * The target's descriptors 1 and 2 are a way of ours each, a pipe or a pseudo-terminal. Where the caller's two are one
 * terminal, one pipe or one open file (after 2>&1, say) they share one way, so that the order of what was written to
 * them is kept; that stream is WIRE_TERMINAL, and its log terminal.log, whatever the file is. Two openings of one file
 * stay two, since each has its offset, unless both append; /dev/null stays two, since it has no order to keep.
 *
 * The helper writes stdout.log, stderr.log (or terminal.log) and the output segment by itself. */
#ifndef ASSAY_EXEC_LAUNCH_H
#define ASSAY_EXEC_LAUNCH_H

#include <signal.h>
#include <sys/signalfd.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "wire/records.h"

struct launch_options {
	char *const *argv;        /* ends with NULL */
	char *const *environment; /* the target's whole environment, ends with NULL */
	/* Where to record; each may be NULL: nothing is kept then. Borrowed for the call. */
	const char *stdout_log, *stderr_log, *terminal_log, *output_seg;
	bool summary_only; /* the target's stdout goes to its log only */
	/* Other commands are started later and need the caller's stdin and descriptors, too. Otherwise assay closes its
	 * own copies of them (stdin, and from 3 up what is not close-on-exec) once the target has them, so that their
	 * other ends see when the target closes them; and an alarm that the caller has set goes to the target. */
	bool more_to_come;
	/* Nanoseconds after the command's start from which on this process is needed, whatever has become of the
	 * command; 0: never. Where it was stopped along with the command it is woken then, and is not stopped again. A
	 * command that is still stopped before its exec then counts as started when it was let go. A SIGSTOP to the
	 * whole process group stops the helper too, and nobody of us wakes anybody. */
	int64_t timeout_ns;
};

struct launch;

enum launch_event_type {
	/* A process was reaped (exit); is_command says whether it was the command. Where assay does not listen for
	 * long, the ends of thousands of descendants are left out here; the output segment has them all. */
	LAUNCH_EXITED,
	LAUNCH_STOPPED,     /* the command was stopped by a signal (signo): call launch_stop_self */
	LAUNCH_DRAINED,     /* after the command's exit: what it wrote has been passed on and kept */
	LAUNCH_CLOSED,      /* the last writer has closed every stream */
	LAUNCH_NO_CHILDREN, /* the command has ended and no descendant lives on */
	LAUNCH_TROUBLE,     /* something could not be recorded (text, a sentence); also a WIRE_NOTE in the segment */
	LAUNCH_GONE,        /* the helper itself died; told once, nothing comes afterwards */
};

struct launch_event {
	enum launch_event_type type;
	struct wire_exit exit;
	int signo;
	bool ends_with_newline; /* DRAINED: the caller's stdout is at the start of a line (or got nothing) */
	/* DRAINED, CLOSED: bytes so far, of all streams, that the caller's files did not take (a full disk, for
	 * example). The command does not hear of such an error, as it would without us: it may exit with 0. That a
	 * reader went away is none: the command hears of that. */
	uint64_t undelivered;
	char text[256];
};

/* Forks the helper, which forks the target's process but holds it before exec, so that the caller can attach counters
 * to the pid. *ret_pid is that pid. Call with one thread running, and with descriptors 0, 1 and 2 open: one of them
 * that is close-on-exec stands for one that the caller had closed, and the target finds it closed. All descriptors that
 * assay itself opens have to be close-on-exec. Nothing of the options is needed afterwards. */
int launch_prepare(const struct launch_options *options, struct launch **ret, pid_t *ret_pid, struct error *err);

/* Lets it exec. 0; else the exit status to use, 127 (not found) or 126, with *err naming the command; or -1 where the
 * helper failed. *ret_t: CLOCK_MONOTONIC just before exec. */
int launch_go(struct launch *l, int64_t *ret_t, struct error *err);

/* For poll(2): readable when an event waits. */
int launch_fd(const struct launch *l);

/* Takes an event: 1, 0 when none waits, -1 on error. */
int launch_next(struct launch *l, struct launch_event *ret, struct error *err);

pid_t launch_helper_pid(const struct launch *l);

/* CPU time of the helper so far, ns; after its end as last read, -1 where that was never. */
int64_t launch_helper_cpu_ns(struct launch *l);

/* Passes on a signal that assay got. Terminal-made ones (si_code > 0) reach the target by themselves and are not sent
 * again; one sent to the whole process group has reached it too (the helper, in the same group, has seen it). */
void launch_forward_signal(struct launch *l, const struct signalfd_siginfo *info);

/* Releases assay's side; the helper goes on by itself until the last writer closes. NULL accepted. */
void launch_free(struct launch *l);

/* Stops this process as the command was stopped, and returns when a SIGCONT comes, from the shell or from the helper
 * when the command goes on. */
void launch_stop_self(int signo);

/* The signals that assay wants to read: blocked at start in main thread. Fills *set. They come also where the caller
 * ignores them, since the target may not. */
void launch_signal_set(sigset_t *set);

/* Blocks them and returns a signalfd for them (close-on-exec); the mask before it is remembered and is what the target
 * gets. Call once, before launch_prepare. */
int launch_block_signals(struct error *err);

/* Whether the caller had it ignored when launch_block_signals was called: assay itself must not act on it then. */
bool launch_signal_ignored(int signo);

#endif
