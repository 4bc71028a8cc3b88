/* The folder for ring files: in memory where that is possible, since on a disk each new file costs its process
 * milliseconds, with a link to it in the run directory; else in the run directory itself. */
#ifndef ASSAY_RECORD_RING_FOLDER_H
#define ASSAY_RECORD_RING_FOLDER_H

#include "base/error.h"

/* Makes it; `place` (in the run directory) becomes the link or the folder. Returns its absolute path, owned, or NULL.
 */
char *ring_folder_make(const char *place, struct error *err);

/* Removes it and the link, if it is empty: otherwise (processes that live on still have files in it) both stay. */
void ring_folder_remove(const char *place);

#endif
