/* Rows that come in one order and are wanted in another: each is put at its place, then all are read from the first to
 * the last. Few rows lie in memory, many in an unlinked file, which is written through buffers of bounded size. */
#ifndef ASSAY_STORE_REGION_SCATTER_H
#define ASSAY_STORE_REGION_SCATTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct scatter_row {
	int64_t start, end, parent, thread;
};

struct region_scatter;

/* path: the file that the rows are for; the unlinked one lies beside it, where there will be room for the result. */
int region_scatter_new(const char *path, struct region_scatter **ret, struct error *err);
void region_scatter_free(struct region_scatter *s);
void region_scatter_cleanup(struct region_scatter **s);

/* A new lot of `rows` rows, places 0 .. rows - 1; what was there before is forgotten. */
int region_scatter_begin(struct region_scatter *s, uint64_t rows, struct error *err);

/* Rows come in lanes 0 .. lanes - 1 from here on; each lane's places go down by one. */
int region_scatter_lanes(struct region_scatter *s, size_t lanes, struct error *err);
int region_scatter_put(struct region_scatter *s, size_t lane, uint64_t place, const struct scatter_row *row,
		       struct error *err);

/* Writes what the lanes hold: before other lanes, and before reading. */
int region_scatter_flush(struct region_scatter *s, struct error *err);

int region_scatter_read(struct region_scatter *s, uint64_t first, size_t n, struct scatter_row *out, struct error *err);

#endif
