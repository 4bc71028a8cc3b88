/* Statistics of all calls of each part, as layout 2 keeps them in its index. */
#ifndef ASSAY_STORE_REGION_SUMMARIES_H
#define ASSAY_STORE_REGION_SUMMARIES_H

#include "store/region_source.h"

/* *ret (owned): one for each part, of its calls in the columns and of those that were only added up. */
int region_summaries(struct region_source *source, struct region_summary **ret, struct error *err);

#endif
