/* Regions in the formats of other viewers: one file in this folder (region_export_NAME.c) and one row in
 * region_exporters.def each. Reads the calls of the file in bounded memory. */
#ifndef ASSAY_REPORT_REGION_EXPORTER_H
#define ASSAY_REPORT_REGION_EXPORTER_H

#include <stdio.h>

#include "model/region_query.h"
#include "store/region_file.h"

struct region_export {
	struct region_file *file;
	const struct region_query *query;
};

struct region_exporter {
	const char *name, *extension;
	bool binary;
	const char *summary;
	/* Writes to `out`. Returns 0, -1 with *err. */
	int (*write)(const struct region_export *e, FILE *out, struct error *err);
};

#define REGION_EXPORTER(name, extension, binary, summary) \
	int region_export_##name(const struct region_export *e, FILE *out, struct error *err);
#include "report/region_exporters.def"
#undef REGION_EXPORTER

extern const struct region_exporter region_exporters[];
extern const size_t region_exporter_count;

#endif
