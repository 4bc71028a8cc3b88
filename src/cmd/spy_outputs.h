/* What `assay spy` makes of each reading while it watches: a line of a CSV file, a point of a figure, a live line. */
#ifndef ASSAY_CMD_SPY_OUTPUTS_H
#define ASSAY_CMD_SPY_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/replace.h"
#include "report/plot_memory.h"

struct spy_outputs {
	const char *csv, *plot, *json; /* paths; NULL: none; borrowed */
	int64_t delay_ns;
	bool live;              /* standard error is a terminal, and the line is wanted */
	/* The rest is its own. */
	struct replacement csv_file, plot_file, json_file;
	const struct canvas_plugin *on;
	enum canvas_format format;
	struct course course;
	struct error course_error; /* "": none */
	int64_t begin, peak, live_shown;
	bool begun;
};

void spy_outputs_init(struct spy_outputs *o);

/* Removes what was not finished. */
void spy_outputs_release(struct spy_outputs *o);

/* What can fail before anything is watched: a path without a known extension (no file is opened then), a folder that
 * may not be written. */
int spy_outputs_check(struct spy_outputs *o, struct error *err);
int spy_outputs_open(struct spy_outputs *o, struct error *err);

/* For spy_options; `context` is the struct. */
void spy_outputs_sample(void *context, const struct spy_sample *s);

/* Removes the live line from the terminal. */
void spy_outputs_clear(const struct spy_outputs *o);

/* Puts the files in their places. All are tried; each failure is said on stderr. Returns how many failed. */
int spy_outputs_finish(struct spy_outputs *o, const struct spy_result *result, const struct spy_subject *subject);

#endif
