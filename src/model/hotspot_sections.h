/* Which part of the answer a moment counts for: the phase groups, or the named phases of group "other" one by one.
 *
 * Sections are numbered in the order in which they occur. Samples are not known here. Inside src/model only. */
#ifndef ASSAY_MODEL_HOTSPOT_SECTIONS_H
#define ASSAY_MODEL_HOTSPOT_SECTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/phase.h"

#define SECTIONS_MAX (GROUP_COUNT + 1) /* the groups, and what is before them; no fewer than HOTSPOT_PHASES_MAX */
#define SECTION_NONE SECTIONS_MAX

struct section {
	const char *name;
	char *phases;       /* owned: names of its phases, each once, the first few; NULL: it has none */
	size_t phase_names; /* how many there are */
	size_t first;       /* the first of its phases; 0: it has none */
	double wall_s;      /* that its phases lasted; NaN: it has none */
};

struct sections {
	const struct phases *phases;
	uint8_t *of_phase; /* SECTION_NONE: not asked for */
	uint8_t outside;   /* of moments before the first phase */
	struct section items[SECTIONS_MAX];
	size_t count;
};

void sections_release(struct sections *s); /* *s starts as zeroes */

/* The groups; `wanted` NULL, or the only group or phase name that counts: the section is called so then. No section
 * where nothing is called that. */
int sections_of_groups(struct sections *ret, const struct phases *phases, const char *wanted, struct error *err);

/* The phases of group "other" by their names; no section where there are fewer than two names, or too many. */
int sections_of_phases(struct sections *ret, const struct phases *phases, struct error *err);

/* The section of a moment, or SECTION_NONE. */
unsigned sections_at(const struct sections *s, int64_t t);

#endif
