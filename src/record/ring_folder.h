/* The folder for ring files: in memory where that is possible, since on a disk each new file costs its process
 * milliseconds, with a link to it in the run directory; else in the run directory itself. */
#ifndef ASSAY_RECORD_RING_FOLDER_H
#define ASSAY_RECORD_RING_FOLDER_H

#include "base/error.h"
#include "model/warnings.h"

/* Makes it; `place` (in the run directory) becomes the link or the folder. Returns its absolute path, owned, or NULL.
 */
char *ring_folder_make(const char *place, struct error *err);

/* Opens the folder at `place`, the descriptor or -errno: never one that a link put in its stead leads to. */
int ring_folder_open(const char *place);

/* Removes all in it that is no folder. A process that lives on keeps what it has mapped, and samples into it unseen. */
void ring_folder_clear(const char *place);

/* Removes it and the link, if it is empty: otherwise both stay, which a warning says (may be NULL). */
void ring_folder_remove(const char *place, struct warnings *warnings);

#endif
