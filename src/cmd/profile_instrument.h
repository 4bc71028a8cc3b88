/* `assay profile --instrument`: every call of a program compiled with -finstrument-functions, as a tree. */
#ifndef ASSAY_CMD_PROFILE_INSTRUMENT_H
#define ASSAY_CMD_PROFILE_INSTRUMENT_H

#include "cmd/profile_options.h"

/* Options that are about samples: -1 and which one was given. */
int profile_instrument_check(const struct profile_args *a, bool live, struct error *err);

/* Runs the command; returns the exit status. */
int profile_instrument_run(struct profile_args *a, char **command);

/* Of a run directory, or of a folder with recordings that no graph was made of. Returns the exit status, or -1 with
 * *err for wrong input. */
int profile_instrument_show(const struct profile_args *a, const char *path, struct error *err);

#endif
