/* What the child behind the fence says of a file of regions, as a stream: all of struct regions and of struct
 * region_stored. What is taken off it is looked at as if it stood in a file. */
#ifndef ASSAY_STORE_REGION_TAPE_H
#define ASSAY_STORE_REGION_TAPE_H

#include "store/region_channel.h"
#include "store/region_stored.h"

void region_tape_put(struct channel *c, const struct regions *r, const struct region_stored *s);

/* Fills *r and *s, both initialised. 0; -1 where the channel's end says why; -2 with *err: there is no memory, or what
 * is said makes no sense in a file of that size. */
int region_tape_take(struct channel *c, struct regions *r, struct region_stored *s, uint64_t file_size,
		     struct error *err);

#endif
