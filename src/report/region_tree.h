/* The tree of regions for a terminal and as JSON. */
#ifndef ASSAY_REPORT_REGION_TREE_H
#define ASSAY_REPORT_REGION_TREE_H

#include <stdio.h>

#include "model/region_tree.h"

int region_tree_text(const struct region_tree *t, FILE *out, struct error *err);

/* {"file":…, "tree":[{name,depth,parent,calls,total,exclusive}]}: parents before children; parent is the index of the
 * row, null for outermost ones; times in ns. Flat, as some readers cannot nest thousands of levels. */
int region_tree_json(const struct region_tree *t, FILE *out, struct error *err);

#endif
