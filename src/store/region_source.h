/* Inside the store: where the calls of a file of regions come from, whatever its format, for those who read them by
 * windows on several threads. */
#ifndef ASSAY_STORE_REGION_SOURCE_H
#define ASSAY_STORE_REGION_SOURCE_H

#include "store/region_file.h"
#include "store/region_plugin.h"

struct region_source {
	const struct regions *regions;
	const struct region_plugin *plugin; /* NULL: an .spt file */
	struct region_h5 *h5;
	uint64_t window; /* rows that are best read at once, beginning at multiples of it */
	int fd;          /* .spt */
	uint64_t *offsets; /* .spt: of the starts of each part; its ends come behind them */
};

/* A reader for one thread. */
int region_source_reader(const struct region_source *s, struct region_h5_reader **ret, struct error *err);
void region_source_reader_free(const struct region_source *s, struct region_h5_reader *reader);

/* Rows that are there; a column that is not is -1. */
int region_source_read(const struct region_source *s, struct region_h5_reader *reader, enum region_column column,
		       uint64_t first, uint64_t count, int64_t *out, struct error *err);

int region_source_scan(const struct region_source *s, const struct region_scan *scan, struct error *err);

/* region_spt.c: fills *r and the source. */
int region_spt_open(int fd, struct regions *r, struct region_source *ret, struct error *err);
int region_spt_read(const struct region_source *s, enum region_column column, uint64_t first, uint64_t count,
		    int64_t *out, struct error *err);

#endif
