/* What rows of hot spots are called: each name once, numbered.
 *
 * A label is a name and the module that it belongs to; functions of one name in one module share it, wherever else
 * they may differ. Inside src/model only: readers of hot spots see rows. */
#ifndef ASSAY_MODEL_HOTSPOT_NAMES_H
#define ASSAY_MODEL_HOTSPOT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile.h"

#define LABEL_NONE UINT32_MAX

struct row_name {
	const char *name, *module; /* borrowed from the profile, or from `owned`; module NULL: it has none */
	char *owned;
	bool known;
};

struct row_names {
	struct row_name *items;
	size_t count, room;
	uint32_t *slots; /* number + 1, 0: free */
	size_t slot_count;
};

void row_names_release(struct row_names *l); /* *l starts as zeroes */

/* The number of the label, new where there is none. `known` is true once any use of it was. LABEL_NONE and *err when
 * out of memory. row_names_copy keeps a copy of the name. */
uint32_t row_names_add(struct row_names *l, const char *name, const char *module, bool known, struct error *err);
uint32_t row_names_copy(struct row_names *l, const char *name, const char *module, bool known, struct error *err);

/* "file:line function"; the function alone where line or file are not known. */
uint32_t row_names_add_line(struct row_names *l, const struct profile *p, const struct profile_frame *frame,
			 struct error *err);

/* The name of the program in an image: the last part of its path, or else of its command line. */
uint32_t row_names_add_image(struct row_names *l, const struct profile_image *image, struct error *err);

/* Whether a shell pattern (or the very text) is the name, with or without a C++ function's parameters. */
bool label_matches(const char *pattern, const char *name);

/* Any of a NULL-ended list, which may be NULL. */
bool label_matches_any(const char *const *patterns, const char *name);

#endif
