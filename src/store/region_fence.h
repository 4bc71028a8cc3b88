/* The HDF5 library reads files of regions in a child process: what a hostile or broken file does to it ends there, and
 * the child is believed no more than the file. The program itself does not load the library for reading. */
#ifndef ASSAY_STORE_REGION_FENCE_H
#define ASSAY_STORE_REGION_FENCE_H

#include "store/region_stored.h"

struct region_fence; /* a child that goes on reading calls which only the library can read */

/* Fills *r and *s, both initialised, of the file at `path`, which is open as `fd`, too. *ret: NULL where nothing is
 * left for the library to read. Not while other threads of the program use the library: the child could find it
 * locked. */
int region_fence_open(const char *path, int fd, struct regions *r, struct region_stored *s, struct region_fence **ret,
		      struct error *err);
void region_fence_close(struct region_fence *f); /* NULL accepted */

/* Rows [first, first + count) of a column as they stand in the file; by any thread. */
int region_fence_read(struct region_fence *f, enum region_column column, uint64_t first, uint64_t count, int64_t *out,
		      struct error *err);

#endif
