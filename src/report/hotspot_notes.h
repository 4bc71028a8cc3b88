/* What has to be explained below tables of hot spots, each once and only where it is shown. */
#ifndef ASSAY_REPORT_HOTSPOT_NOTES_H
#define ASSAY_REPORT_HOTSPOT_NOTES_H

#include <stdbool.h>

#include "model/hotspots.h"

struct hotspot_notes {
	bool wall, margin;           /* columns with figures in them */
	bool over;                   /* more than all of the wall time */
	bool place, jit, elsewhere, no_stack; /* rows that are no function's name */
};

/* Takes note of what is in a table that is shown. *n starts as zeroes. */
void hotspot_notes_add(struct hotspot_notes *n, const struct hotspot_group *g, const struct hotspot_rows *rows);

/* One sentence or two after another. */
void hotspot_notes_each(const struct hotspot_notes *n, void (*each)(void *context, const char *text), void *context);

/* A row is one function: by its name, or at least by where it begins. Code of a whole module, of no module, and time
 * without a stack may be many. */
bool hotspot_row_is_function(const struct hotspot_row *row);

#endif
