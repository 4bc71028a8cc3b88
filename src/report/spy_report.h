/* What watching a process's memory found, for people and for scripts. Knows nothing of how it is watched. */
#ifndef ASSAY_REPORT_SPY_REPORT_H
#define ASSAY_REPORT_SPY_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/buf.h"
#include "model/spy_result.h"

/* Whose memory it was. */
struct spy_subject {
	const char *name; /* of the process, or the command as it was typed; any bytes */
	pid_t pid;
	bool tree;        /* with its descendants: values are sums */
	int64_t delay_ns;
	int status;       /* of a command that was started for this; -1: none was, or it is not known */
};

/* A table of the resources and, below it, what is known about the peak and about what was not seen. Lines are folded at
 * `columns`; 0: as for a terminal of 100. */
void spy_text(const struct spy_result *r, const struct spy_subject *s, bool colour, size_t columns, struct buf *out);

/* The sentence about the peak, without an end: "peak 412.3 MiB, from ...". */
void spy_peak_words(const struct spy_result *r, const struct spy_subject *s, struct buf *out);

/* Bytes, and seconds from the watch's begin; what was never read has no key. NULL: out of memory. */
json_t *spy_json(const struct spy_result *r, const struct spy_subject *s);

/* A line per reading; a cell is empty where the value was not read at this one. Errors are left in the stream. */
void spy_csv_heading(size_t gpu_count, FILE *out);
void spy_csv_row(const struct spy_sample *s, int64_t begin, FILE *out);

/* One line of what is used now, without an end, not wider than `columns` (0: as for a terminal of 80).
 * `peak`: the largest RSS so far. */
void spy_live(const struct spy_sample *s, int64_t begin, int64_t peak, size_t columns, struct buf *out);

#endif
