/* Results of other benchmark tools as arms: one file per format and a row in list.def.
 *
 * A format knows its files by their content, never by their name. Each named benchmark is a metric ("NAME" with the
 * tool's unit), each of its repetitions an arm's value. It must cope with anything: truncated, hostile, huge, empty. */
#ifndef ASSAY_INGEST_FOREIGN_H
#define ASSAY_INGEST_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "model/arm.h"
#include "model/metric.h"

struct foreign {
	const char *name;    /* "hyperfine" */
	const char *summary; /* one line for the docs */
	/* Whether this text is of the format: cheap, by its first KiB and shape. */
	bool (*is)(const char *text, size_t length);
	/* Adds its arms and metrics; the ith repetition of each benchmark goes to the ith arm. */
	int (*read)(const char *text, size_t length, const char *source, struct metric_set *metrics, struct arms *arms,
		    struct error *err);
};

#define FOREIGN(name) extern const struct foreign foreign_##name;
#include "ingest/list.def"
#undef FOREIGN

extern const struct foreign *const foreigns[];
extern const size_t foreign_count;

/* The format that takes this text, NULL: none. */
const struct foreign *foreign_of(const char *text, size_t length);

#endif
