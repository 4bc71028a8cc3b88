/* The ways of the target's output: for its descriptors 1 and 2 a pipe or a pseudo-terminal each, or one that both
 * share, as fits what the caller has there (launch.h says when). Made in the helper before the target is forked; the
 * pumps empty them. */
#ifndef ASSAY_EXEC_STREAM_H
#define ASSAY_EXEC_STREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "base/error.h"
#include "exec/launch.h"
#include "wire/records.h"

struct recording;

struct stream {
	enum wire_stream id;
	const char *log_path; /* NULL: nothing is kept */
	const char *log_name; /* its last part; a whole path might leave no room for the rest of a sentence */
	const char *name;     /* of the stream, for sentences */
	int in;               /* our end: the pump's alone once it runs */
	int target_end;       /* becomes a descriptor of the target; closed here after the fork */
	int out;              /* a copy of the caller's descriptor, never with other flags; -1: to the log only */
	int log;              /* -1: none, or given up */
	bool pty;             /* in is the master of a pseudo-terminal */
	bool out_is_tty;
	bool watches_reader; /* out tells by POLLERR or POLLHUP that its reader is gone for good */

	/* The pump's own. */
	pthread_t thread;
	char *buffer;
	struct recording *recording;
	int64_t recorded_at, window_at; /* last chunk record; last look at the window's size */
	struct wire_chunk chunk;        /* arrived since then and not recorded yet; length 0: none */
	uint64_t logged, chunks;
	uint64_t lost; /* bytes that the log did not take */

	/* Shared with the helper's main thread. */
	atomic_bool busy;       /* between a read and the end of what has to be done about it */
	atomic_bool unrecorded; /* chunk.length is not 0 */
	atomic_bool line_start; /* the last byte that was passed on is a newline, or there was none */
	atomic_bool closed;
	atomic_ullong passed;
	atomic_ullong undelivered; /* bytes that the caller's file did not take */
	uint64_t goal; /* the main thread's own: what the command wrote is passed on when `passed` is here */
};

struct streams {
	struct stream list[2];
	int count;
	int out_end, err_end; /* for the target's 1 and 2; -1: it keeps what the caller gave */
	char trouble[200];    /* why one is a pipe where it should have been a terminal; "": nothing */
};

/* Makes them. A descriptor that the caller had closed, or that cannot be written to, is left to the target as it is.
 * After a failure the helper has to end, which closes what was made. */
int streams_open(struct streams *s, const struct launch_options *options, struct error *err);

/* After the fork of the target. */
void streams_close_target_ends(struct streams *s);

/* Gives the target's terminal the size of the caller's, where that has changed, and then tells the foreground
 * processes: they have had the terminal's own SIGWINCH, but may have asked for the size too early. */
void stream_follow_window(struct stream *s);

#endif
