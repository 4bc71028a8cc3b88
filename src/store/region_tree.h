/* The tree of a file's regions, by the parents that it has noted of each call. */
#ifndef ASSAY_STORE_REGION_TREE_H
#define ASSAY_STORE_REGION_TREE_H

#include "model/region_query.h"
#include "model/region_tree.h"
#include "store/region_file.h"

/* Fills *ret (initialised); it borrows the names of the file. Regions that are not asked for are left out: what was
 * called in them stands in what is around them. Fails where the file has no parents. Takes 8 bytes of memory for each
 * call of the rank that has the most. */
int region_tree_read(struct region_file *f, const struct region_query *q, struct region_tree *ret, struct error *err);

#endif
