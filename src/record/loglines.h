/* The lines of a run's logs, with the times at which they arrived, fed to the engines' parsers. */
#ifndef ASSAY_RECORD_LOGLINES_H
#define ASSAY_RECORD_LOGLINES_H

#include "base/error.h"
#include "engine/engine.h"
#include "engine/lines.h"
#include "model/warnings.h"
#include "store/rundir.h"

/* Feeds all streams in the order of arrival, as the output segment tells it; without one, whole logs at time `end`.
 * Stops early, with a warning, when *hurry (may be NULL) is set. What cannot be read is named in *warnings; *ret_counts
 * are those of all streams together. False where the lines' times are not known. */
bool loglines_feed(const struct rundir *dir, struct engine_set *set, int64_t end, const volatile int *hurry,
		   struct line_counts *ret_counts, struct warnings *warnings);

#endif
