/* What text, Markdown and the summary of a run say of hot spots alike: names that fit, shares as exact as they are,
 * tables, and the sentences about serial code. */
#ifndef ASSAY_REPORT_HOTSPOT_WORDS_H
#define ASSAY_REPORT_HOTSPOT_WORDS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/table.h"
#include "model/hotspots.h"

/* Appends a name of at most `columns` characters on one line. Of a longer one parameters go first, then template
 * arguments, then folders of files, and only then what is in the middle: the number of a line and the last part of a
 * qualified name stay as long as they fit at all. */
void hotspot_words_name(struct buf *out, const char *name, size_t columns);

/* What a group is called for people: "other" means little where the phases have names of their own. */
const char *hotspot_words_title(const struct hotspot_group *g);

/* A table of rows, filled and initialised here: share, what it is uncertain by, CPU time, threads, the busiest one's
 * part of the wall time, name, module. At most `most` rows; returns how many there are besides. */
size_t hotspot_words_table(const struct hotspot_group *g, const struct hotspot_rows *rows, const char *what,
			   size_t most, size_t columns, struct table *t, const char **ret_align);

/* What is serial and holds up the run, one sentence after another, groups in their order; a group without such code
 * gets a sentence that says so, and one with too few samples none where there are others. Of sums by function or line
 * only. `group` is a title. */
void hotspot_words_serial(const struct hotspots *h, void (*each)(void *context, const char *group, const char *text),
			  void *context);

#endif
