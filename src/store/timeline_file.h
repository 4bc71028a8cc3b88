/* timeline.h5: every counter of a run, /series/NAME/{t,v} with attributes unit, source, scope, kind.
 *
 * The HDF5 library is loaded on first use, through a plug-in built from timeline_hdf5.c, so that other commands start
 * without it. Points are streamed: memory grows with the number of series, not of points. */
#ifndef ASSAY_STORE_TIMELINE_FILE_H
#define ASSAY_STORE_TIMELINE_FILE_H

#include <stdint.h>

#include "base/error.h"

/* Builds `h5_path` from the monitor segment: written beside it and renamed. With *stop (may be NULL) set by a signal
 * handler it gives up early, with an error. Also writes attributes of the root group: schema "assay-timeline-1",
 * clock "CLOCK_MONOTONIC ns", start_ns (the command's start, to which t refers: t is ns since then, int64), wall_start
 * (ISO 8601).
 *
 * Returns 0; 1 where the segment is damaged: the file holds what came before, and *err says how; -1 with *err where no
 * file was made, and then none is left behind. */
int timeline_file_build(const char *segment_path, const char *h5_path, int64_t start_ns, int64_t wall_start_ns,
			const volatile int *stop, struct error *err);

/* Whether the plug-in and the library can be loaded, with what version or why not; for `doctor`. */
int timeline_file_available(char *version, unsigned long size, struct error *err);

#endif
