/* The markers file of a run: lines `NAME` or `NS NAME` that the target or its scripts append.
 *
 * Watched while the run lasts, so that a line without a time gets the moment it was seen; parsed here for the watcher
 * and for `recover` alike. What people do to such a file besides appending (writing it over, replacing it) costs no
 * mark that can be had. */
#ifndef ASSAY_RECORD_MARKERS_H
#define ASSAY_RECORD_MARKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/buf.h"
#include "base/error.h"

/* Where the time of a mark is from. */
enum marker_time {
	MARKER_SEEN,   /* the line names none */
	MARKER_NAMED,  /* the line, on CLOCK_MONOTONIC */
	MARKER_WALL,   /* the line, on CLOCK_REALTIME (`date +%s%N`) */
	MARKER_FUTURE, /* the line names one after it was seen, which cannot be: that moment instead */
};

/* One line, without its newline: *ret_t is the time it names (ns of CLOCK_MONOTONIC) or `seen`; the name is what is
 * left (borrowed from the line), blanks around it removed. `wall_offset` is wall minus monotonic time, 0 where that is
 * not known; a time after `seen` that is within a day of the wall time then is taken for wall time. Returns false for
 * an empty line. */
bool marker_parse(const char *line, size_t length, int64_t seen, int64_t wall_offset, int64_t *ret_t,
		  const char **ret_name, size_t *ret_length, enum marker_time *ret_from);

/* Gets each mark: its time, whether the line named that time, its name, and the offset behind its line. */
typedef void marker_handler(void *context, int64_t t, bool has_time, const char *name, size_t length, uint64_t end);

#define MARKERS_TAIL 64

struct markers_watch {
	const char *path; /* borrowed */
	int fd;           /* the file; -1: not open */
	int notify;       /* inotify descriptor for poll(2), or -1: call markers_read every 100 ms instead */
	int file_watch;   /* of the file; the other one is of its folder */
	uint64_t offset;  /* of the first byte not yet read */
	char tail[MARKERS_TAIL]; /* the last bytes before it: where they have changed, the file was written over */
	size_t tail_length;
	struct timespec modified; /* when the file was, as of the last reading */
	int64_t wall_offset;
	struct buf partial;
	uint64_t cut;        /* lines too long */
	uint64_t future;     /* marks that named a time to come */
	uint64_t wall_clock; /* marks that named a wall time, which was converted */
	bool truncated;      /* somebody wrote with > instead of >> */
	bool replaced;       /* another file (or something else) has taken its place */
	marker_handler *each;
	void *context;
};

/* Makes the file (empty) and begins to watch it. */
int markers_open(struct markers_watch *m, const char *path,
		 marker_handler *each, void *context, struct error *err);

/* Takes what was appended since the last call, and all there is where the file was written over or replaced (of a
 * replacement that goes on as the file did, only what is new). */
void markers_read(struct markers_watch *m, int64_t now);

/* Reads the rest, a last line without newline included, and closes. */
void markers_close(struct markers_watch *m, int64_t now);

#endif
