/* Which ring files there are in their folder: each is told once, in the order in which they came, and may be put off.
 *
 * What a target can make of it is bounded: no more than RING_FILES_MAX files are known at a time, and each call does no
 * more than its time allows. Opens none of the files. */
#ifndef ASSAY_RECORD_RING_FINDER_H
#define ASSAY_RECORD_RING_FINDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define RING_FILES_MAX 40000

struct ring_finder;

/* `place`: see ring_folder.h; `folder`: the path of the same folder, for the paths that are told. Both are copied. */
int ring_finder_new(const char *place, const char *folder, struct ring_finder **ret, struct error *err);
void ring_finder_free(struct ring_finder *f); /* NULL accepted */

/* Sees what has come, until the clock (CLOCK_MONOTONIC) says `until`. */
void ring_finder_look(struct ring_finder *f, int64_t until);

/* The path of the next file whose time has come, NULL: none. Borrowed until ring_finder_forget. */
const char *ring_finder_next(struct ring_finder *f, int64_t now);

/* The path, which ring_finder_next gave, is told again at `due`, behind all others. */
void ring_finder_defer(struct ring_finder *f, const char *path, int64_t due);

/* The file is gone, or is of no interest any more: removes it. */
void ring_finder_discard(struct ring_finder *f, const char *path);

/* Files in the folder that were never told, for there were too many or no time was left. */
size_t ring_finder_unread(struct ring_finder *f);

#endif
