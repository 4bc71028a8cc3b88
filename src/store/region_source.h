/* Inside the store: where the calls of a file of regions come from, whatever its format, for those who read them by
 * windows on several threads. */
#ifndef ASSAY_STORE_REGION_SOURCE_H
#define ASSAY_STORE_REGION_SOURCE_H

#include <pthread.h>

#include "store/region_fence.h"
#include "store/region_file.h"
#include "store/region_stored.h"

struct region_source {
	const struct regions *regions;
	int fd;
	uint64_t window;   /* rows that are best read at once, beginning at multiples of it */
	uint64_t *offsets; /* .spt: of the starts of each part; its ends come behind them. NULL: HDF5 */
	struct region_stored stored; /* HDF5 */
	struct region_fence *fence;  /* NULL: not needed */
	pthread_mutex_t carry_lock;
	int64_t *carry; /* layout 3: the start before each window; made on first use */
};

struct region_reader; /* what one thread needs to read calls */

void region_source_init(struct region_source *s, const struct regions *regions);
void region_source_release(struct region_source *s);

int region_source_reader(struct region_source *s, struct region_reader **ret, struct error *err);
void region_source_reader_free(struct region_reader *reader); /* NULL accepted */

/* Rows that are there; a column that is not is -1. */
int region_source_read(struct region_reader *reader, enum region_column column, uint64_t first, uint64_t count,
		       int64_t *out, struct error *err);

int region_source_scan(struct region_source *s, const struct region_scan *scan, struct error *err);

/* region_spt.c: fills *r and the source. */
int region_spt_open(int fd, struct regions *r, struct region_source *ret, struct error *err);
int region_spt_read(const struct region_source *s, enum region_column column, uint64_t first, uint64_t count,
		    int64_t *out, struct error *err);

#endif
