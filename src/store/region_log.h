/* Reading one process' table: the facts that are needed all the time. For store/region_segments.c. */
#ifndef ASSAY_STORE_REGION_LOG_H
#define ASSAY_STORE_REGION_LOG_H

#include "store/region_segments.h"

/* Fills what stands in the table of the process that l->folder and l->name name. Fails where it is no table, or has not
 * even its first record; the sentence (without its full stop) names the file. Damage further on is l->damage. */
int region_log_read(struct region_log *l, struct error *err);

#endif
