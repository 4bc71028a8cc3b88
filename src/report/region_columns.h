/* The columns of the table of regions: one row each, for people and for CSV. */
#ifndef ASSAY_REPORT_REGION_COLUMNS_H
#define ASSAY_REPORT_REGION_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/region_table.h"

enum region_column_kind {
	REGION_COLUMN_TIME,
	REGION_COLUMN_MOMENT, /* of the file's clock */
	REGION_COLUMN_COUNT,
	REGION_COLUMN_SHARE,
	REGION_COLUMN_PERCENT,
};

struct region_column_desc {
	const char *name;
	enum region_column_kind kind;
	double (*value)(const struct region_row *row); /* ns, a count, a share of 1, percent; NaN: not known */
	bool usual;                                    /* shown where nobody asks for columns */
	bool (*approximate)(const struct region_row *row); /* whether it comes from a histogram; NULL: never */
	const char *meaning;
};

extern const struct region_column_desc region_columns[];
extern const size_t region_column_count;

/* NULL: no such column. */
const struct region_column_desc *region_column_find(const char *name);

/* The columns that `names` (NULL-ended) asks for, in its order; NULL: the usual ones, those on GPUs only where the
 * table has any. Returns how many, at most `most`. */
size_t region_columns_choose(const char *const *names, bool gpu, const struct region_column_desc **ret, size_t most);

#endif
