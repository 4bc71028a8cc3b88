/* The markers file of a run: lines `NAME` or `NS NAME` that the target or its scripts append.
 *
 * Watched while the run lasts, so that a line without a time gets the moment it was seen; parsed here for the watcher
 * and for `recover` alike. */
#ifndef ASSAY_RECORD_MARKERS_H
#define ASSAY_RECORD_MARKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* One line, without its newline: *ret_t is the time it names (ns of CLOCK_MONOTONIC) or `seen`; the name is what is
 * left (borrowed from the line), blanks around it removed. Returns false for an empty line. */
bool marker_parse(const char *line, size_t length, int64_t seen, int64_t *ret_t, const char **ret_name,
		  size_t *ret_length, bool *ret_has_time);

/* Gets each mark: its time, whether the line named that time, its name, and the offset behind its line. */
typedef void marker_handler(void *context, int64_t t, bool has_time, const char *name, size_t length, uint64_t end);

struct markers_watch {
	const char *path; /* borrowed */
	int fd;           /* the file; -1: not open */
	int notify;       /* inotify descriptor for poll(2), or -1: call markers_read every 100 ms instead */
	uint64_t offset;  /* of the first byte not yet read */
	struct buf partial;
	uint64_t cut;     /* lines too long */
	bool truncated;   /* somebody wrote with > instead of >> */
	marker_handler *each;
	void *context;
};

/* Makes the file (empty) and begins to watch it. */
int markers_open(struct markers_watch *m, const char *path,
		 marker_handler *each, void *context, struct error *err);

/* Takes what was appended since the last call. */
void markers_read(struct markers_watch *m, int64_t now);

/* Reads the rest, a last line without newline included, and closes. */
void markers_close(struct markers_watch *m, int64_t now);

#endif
