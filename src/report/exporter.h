/* Formats of other viewers: one file in this folder (export_NAME.c) and one row in exporters.def each.
 *
 * An exporter turns a profile and its phases into bytes. It reads no files and knows no run directory. All weights are
 * CPU time: periods, and the same in nanoseconds, so that every viewer adds up to the same totals. */
#ifndef ASSAY_REPORT_EXPORTER_H
#define ASSAY_REPORT_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "model/phase.h"
#include "model/profile.h"

struct export_input {
	const struct profile *profile; /* with names, sorted */
	const struct phases *phases;   /* may be empty */
	const char *group;             /* only this group or phase; NULL: all */
	bool by_line;                  /* frames are lines of functions, where the format does not have both anyway */
	int64_t start, end;            /* of the run */
	const char *label, *command;   /* of the run; may be NULL */
};

enum export_problem {
	EXPORT_OK = 0,
	EXPORT_TROUBLE = -1, /* out of memory */
	EXPORT_NOTHING = -2, /* there are no samples, or none of that group */
};

struct exporter {
	const char *name;      /* for --format */
	const char *extension; /* with its dot: ".folded" */
	bool binary;           /* not for a terminal */
	const char *summary;   /* one line for help: what opens it */
	/* Writes to `out`, nothing where it fails before that; the caller looks at ferror and closes. Returns enum
	 * export_problem. */
	int (*write)(const struct export_input *in, FILE *out, struct error *err);
};

#define EXPORTER(name, extension, binary, summary) \
	int export_##name(const struct export_input *in, FILE *out, struct error *err);
#include "report/exporters.def"
#undef EXPORTER

extern const struct exporter exporters[];
extern const size_t exporter_count;

/* The exporter of that name, or the one whose extension `path` has; NULL: none. */
const struct exporter *exporter_find(const char *name);
const struct exporter *exporter_for_path(const char *path);

#endif
