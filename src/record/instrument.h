/* A run whose program is compiled with -finstrument-functions: has libassay loaded into it, which records its calls,
 * and makes the graph of them when it is over. */
#ifndef ASSAY_RECORD_INSTRUMENT_H
#define ASSAY_RECORD_INSTRUMENT_H

#include "base/error.h"
#include "model/run.h"
#include "store/rundir.h"

/* Makes the folder for the recordings. Returns what the command's environment needs, "K=V" lines to set, owned with
 * preload_environment_free; NULL with *err where calls cannot be recorded: then there is no point in running. */
char **instrument_prepare(const struct rundir *dir, const char *const *env, struct error *err);

/* Whether there are recordings that are not in calls.graph, or may not be. */
bool instrument_left(const struct rundir *dir);

/* Makes calls.graph of the recordings and removes these where no process can add to them. What is missing or went wrong
 * is named in run->warnings. */
void instrument_finish(const struct rundir *dir, bool survivors, const volatile int *hurry, struct run *run);

#endif
