/* The tree of a file's regions, by the parents that it has noted of each call. */
#ifndef ASSAY_STORE_REGION_TREE_H
#define ASSAY_STORE_REGION_TREE_H

#include "model/region_query.h"
#include "model/region_tree.h"
#include "store/region_file.h"

/* Whether a file says which call is inside which. */
bool region_tree_is_known(const struct regions *r);

/* Fills *ret (initialised) in the order in which the paths are found; region_tree_finish() is the caller's. It borrows
 * the names of the file. Regions that are not asked for are left out: what was called in them stands in what is around
 * them. Fails where the file has no parents. Takes 8 bytes for each call of one rank at a time, which lie in a file
 * without a name where they are many. */
int region_tree_read(struct region_file *f, const struct region_query *q, struct region_tree *ret, struct error *err);

/* The same where no call is taken to be inside another one. */
int region_tree_read_flat(struct region_file *f, const struct region_query *q, struct region_tree *ret,
			  struct error *err);

#endif
