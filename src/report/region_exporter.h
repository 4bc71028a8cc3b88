/* Regions in the formats of other viewers: one file in this folder (region_export_NAME.c) and one row in
 * region_exporters.def each. Reads the calls of the file in bounded memory. */
#ifndef ASSAY_REPORT_REGION_EXPORTER_H
#define ASSAY_REPORT_REGION_EXPORTER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/region_query.h"
#include "model/warnings.h"
#include "store/region_file.h"

struct region_export {
	struct region_file *file;
	const struct region_query *query;
	const bool *wanted;        /* the parts that it takes */
	int64_t zero;              /* formats with times of their own count from here, ns of CLOCK_MONOTONIC */
	struct warnings *warnings; /* what the format could not hold */
};

struct region_exporter {
	const char *name, *extension;
	bool binary;
	const char *summary;
	/* Writes to `out`. Returns 0, -1 with *err. The caller looks at ferror and closes. */
	int (*write)(const struct region_export *e, FILE *out, struct error *err);
};

#define REGION_EXPORTER(name, extension, binary, summary) \
	int region_export_##name(const struct region_export *e, FILE *out, struct error *err);
#include "report/region_exporters.def"
#undef REGION_EXPORTER

extern const struct region_exporter region_exporters[];
extern const size_t region_exporter_count;

/* The exporter of that name, or the one whose extension `path` has; NULL: none. */
const struct region_exporter *region_exporter_find(const char *name);
const struct region_exporter *region_exporter_for_path(const char *path);

/* The row of a thread of a rank; NULL: the file does not tell of it. */
const struct region_thread_row *region_export_thread(const struct regions *r, uint32_t rank, int64_t index);

#endif
