/* What inspect and regions diff print. Each writes to a stream and reads no file. */
#ifndef ASSAY_REPORT_REGION_REPORTS_H
#define ASSAY_REPORT_REGION_REPORTS_H

#include <stdio.h>

#include "judge/region_diff.h"
#include "model/region_table.h"
#include "model/regions.h"

struct region_report_options {
	const char *const *columns; /* names, NULL-ended; NULL: the usual ones */
	unsigned width;             /* of the terminal; 0: no limit */
	bool colour;
};

int region_table_text(const struct region_table *t, const struct regions *r, const struct region_report_options *o,
		      FILE *out, struct error *err);
/* {"file":…, "regions":[{name,calls,total,exclusive,avg,min,max,std,p50,p95,p99,imbalance,ranks[]…}]}: ns, null where
 * unknown. */
int region_table_json(const struct region_table *t, const struct regions *r, FILE *out, struct error *err);
int region_table_csv(const struct region_table *t, const struct region_report_options *o, FILE *out, struct error *err);

int region_diff_text(const struct region_diff *d, const struct region_report_options *o, FILE *out, struct error *err);
/* {"metric":…, "unit":…, "rows":[{name,a,b,delta,pct…}]}: null where unknown. */
int region_diff_json(const struct region_diff *d, FILE *out, struct error *err);

#endif
