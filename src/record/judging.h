/* From the figures of a run to what limited it: gathers what the judge needs beside them (the machine, the model's
 * header, how fast memory can be read) and asks it. */
#ifndef ASSAY_RECORD_JUDGING_H
#define ASSAY_RECORD_JUDGING_H

#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"
#include "exec/machine.h"
#include "model/run.h"
#include "store/peakfile.h"

struct judging_options {
	bool probe; /* memory bandwidth may be measured now, where a verdict hangs on it */
	const volatile int *hurry; /* set by a signal: no probe; may be NULL */
	void (*progress)(void *context, const char *text); /* may be NULL */
	void *progress_context;
};

/* What identifies this machine in the peak file. The texts are borrowed from *m. */
struct peak_identity judging_identity(const struct machine *m);

/* Fills the run's limits and movements. `begin` is begin.json, borrowed, or NULL. What cannot be had is named in
 * run->warnings; fails only when out of memory. */
int judging_run(struct run *run, const json_t *begin, const struct judging_options *options, struct error *err);

#endif
