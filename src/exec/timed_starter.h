/* The starter's side of timed.h, and what is said over the socket between the two.
 *
 * A request is a header, which carries three descriptors where it asks for a run, and after it `length` bytes: the
 * words of the command, each with its NUL, then those of the environment. The answer to a run is one reply. */
#ifndef ASSAY_EXEC_TIMED_STARTER_H
#define ASSAY_EXEC_TIMED_STARTER_H

#include <signal.h>
#include <stdint.h>

#include "exec/timed.h"

enum timed_kind {
	TIMED_RUN = 1,
	TIMED_STOP, /* end the command that is running; nothing where none is, and never answered */
};

struct timed_request {
	uint32_t kind, words, variables;
	int64_t length, timeout_ns;
};

struct timed_reply {
	int32_t code;    /* errno of exec or of making the process; 0: it ran */
	int32_t stopped; /* ended by a TIMED_STOP */
	int32_t stop_signal; /* it stopped itself, and was ended: the signal; 0: it did not */
	int32_t own;     /* the code is trouble of the starter's own, not of exec */
	struct timed_result result;
};

/* How long a command may stand still, stopped, before it is taken to wait for the terminal for ever. */
#define STOPPED_NS INT64_C(1000000000)

/* How long a command has to end after TERM before it gets KILL. */
#define TIMED_GRACE_NS INT64_C(1000000000)

/* Serves requests until the other end closes. `mask` is the signal mask that commands get. */
_Noreturn void timed_starter_main(int socket, const sigset_t *mask);

#endif
