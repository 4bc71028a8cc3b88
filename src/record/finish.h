/* From what was recorded to run.json and timeline.h5: a function of the run directory alone, so that `recover` does for
 * a killed run what `run` does for its own. */
#ifndef ASSAY_RECORD_FINISH_H
#define ASSAY_RECORD_FINISH_H

#include "base/error.h"
#include "base/json.h"
#include "model/run.h"
#include "store/rundir.h"

enum finish_mode {
	FINISH_LIVE,      /* the recorder's own run: it has filled status, start, end, CPU, counts and cost */
	FINISH_RECOVERED, /* all from the records; the status is partial */
};

/* Fills what can be known of *run from the directory and builds timeline.h5. `begin` is begin.json, borrowed, or NULL.
 * *hurry (may be NULL), set by a signal, leaves out what takes time, with a warning. What cannot be read is named in
 * run->warnings; fails only where nothing could be found at all. */
int finish_run(const struct rundir *dir, const json_t *begin, enum finish_mode mode, const volatile int *hurry,
	       struct run *run, struct error *err);

/* The pid of the recorder that still writes into the directory, 0 where there is none. */
int finish_recorder_pid(const struct rundir *dir, const json_t *begin);

#endif
