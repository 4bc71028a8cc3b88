/* profile.json: the names of the code that a run's samples were in, resolved once at the run's end, so that no later
 * change of a file on disk can change what a profile says. Samples stay in their segment. Format: docs/formats.md. */
#ifndef ASSAY_STORE_PROFILE_FILE_H
#define ASSAY_STORE_PROFILE_FILE_H

#include "base/error.h"
#include "model/profile.h"

/* Written beside its target and renamed. */
int profile_file_write(const char *path, const struct profile *p, struct error *err);

/* Gives the locations of *p (as read from the samples of the same run) their frames, and the modules their notes. A
 * location that the file does not name stays unresolved. Fails where the file is missing, damaged, or of another
 * schema; the error names it. */
int profile_file_read(const char *path, struct profile *p, struct error *err);

#endif
