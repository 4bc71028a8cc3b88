/* Reading files of regions: layouts 1, 2 and 3 of the Python package scope-profiler, its .spt, and assay's own.
 *
 * The HDF5 library reads in a child process (region_fence.h), through the plug-in. Nothing is believed of a file:
 * counts, offsets, names and types are checked, and a file of any size is read in bounded memory. */
#ifndef ASSAY_STORE_REGION_FILE_H
#define ASSAY_STORE_REGION_FILE_H

#include <signal.h>

#include "model/regions.h"

struct region_file;

/* A file, or a run directory that holds regions.h5. Fails for what is no file of regions, for a newer schema (above 3,
 * or no integer), for damage; the sentence names the path. */
int region_file_open(const char *path, struct region_file **ret, struct error *err);
void region_file_free(struct region_file *f);
void region_file_cleanup(struct region_file **f);

/* Whether a path looks like a file of regions (by its first bytes), without loading HDF5. */
bool region_file_is_one(const char *path);

const struct regions *region_file_regions(const struct region_file *f);

/* Rows [first, first + count) of a column into out. A column that is not there is -1. */
int region_file_read(struct region_file *f, enum region_column column, uint64_t first, uint64_t count, int64_t *out,
		     struct error *err);

/* Calls of one part, some rows of it: arrays of n, NULL for columns that were not asked for (START and END always
 * are). Valid during the callback. */
struct region_block {
	size_t part;     /* index into regions.parts */
	uint64_t first;  /* row in the columns */
	size_t n;
	const int64_t *columns[REGION_COLUMNS];
};

/* Goes through the calls of the parts that `wanted` says (by index into parts; NULL: all), several threads at once:
 * block() is called by worker 0 .. workers - 1, each with blocks in no particular order, together every call exactly
 * once. block() returns 0, or negative with *err to stop. workers: at most so many threads, 1: in this thread, in the
 * order of the rows. */
struct region_scan {
	const bool *wanted;
	unsigned columns; /* bits beside START and END; columns that the file lacks are given as -1 */
	unsigned workers;
	int (*block)(void *context, unsigned worker, const struct region_block *block, struct error *err);
	void *context;
};
int region_file_scan(struct region_file *f, const struct region_scan *scan, struct error *err);

/* How many workers are worth it here. */
unsigned region_file_workers(void);

#endif
