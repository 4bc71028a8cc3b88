/* `assay export`: its arguments, and what its two halves share: CPU samples (export.c) and regions
 * (export_regions.c). */
#ifndef ASSAY_CMD_EXPORT_H
#define ASSAY_CMD_EXPORT_H

#include "cmd/region_options.h"
#include "store/rundir.h"

struct export_args {
	const char *format, *out;
	const char *group, *by; /* of samples; NULL: not given */
	bool regions;
	struct region_options select; /* of regions */
};

/* Says it on stderr; returns `status`. */
int export_trouble(const struct error *err, int status);

/* Whether the arguments name a format for regions; whether they make sense for regions alone. */
bool export_regions_format(const struct export_args *a);
bool export_wants_regions(const struct export_args *a);

/* Exports the regions of a file, or of the run directory `dir` where that is not NULL. Returns the exit status. */
int export_regions(const struct export_args *a, const char *path, const struct rundir *dir);

#endif
