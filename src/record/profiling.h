/* From the samples of a run to its hot spots: reads the segment, resolves names, writes profile.json; used by the
 * recorder at a run's end and by `recover`. */
#ifndef ASSAY_RECORD_PROFILING_H
#define ASSAY_RECORD_PROFILING_H

#include "base/error.h"
#include "model/profile.h"
#include "model/run.h"
#include "record/sampling.h"
#include "store/rundir.h"

/* Fills run->profile (owned by the run) from the run directory and writes profile.json beside it. `sampling` lends the
 * files that it holds open; NULL in `recover`. What cannot be had is named in run->warnings. */
int profiling_finish(const struct rundir *dir, struct sampling *sampling, const volatile int *hurry, struct run *run,
		     struct error *err);

/* The same for a run whose recorder was killed, from its segment and what is left in the rings; does nothing where it
 * took no samples. */
int profiling_recover(const struct rundir *dir, struct run *run, struct error *err);

/* The profile of a finished run directory, names included, as profile.json has them (places only, with a warning, where
 * that is missing). *ret must be initialised. */
int profiling_open(const struct rundir *dir, struct profile *ret, struct warnings *warnings, struct error *err);

#endif
