/* Finding the part that a call belongs to. Shared by the program and the plug-in; it knows no file. */
#ifndef ASSAY_STORE_REGION_PARTS_H
#define ASSAY_STORE_REGION_PARTS_H

#include "model/regions.h"

/* The first part that ends behind a row, so the one that holds it where any does. */
size_t region_part_at(const struct regions *r, uint64_t row);

/* Sorts parts by `first`, and looks that they lie in the columns and share no calls. */
int region_parts_check(struct regions *r, struct error *err);

#endif
