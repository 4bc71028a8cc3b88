/* Names for benchmarks that were run with several settings: those settings that tell rows of the same name apart are
 * added to it. A file in which each name occurs with one setting keeps its names as they are, so that two files
 * match whatever their settings are. */
#ifndef ASSAY_INGEST_FOREIGN_NAMES_H
#define ASSAY_INGEST_FOREIGN_NAMES_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"

/* Notes a row. `groups` is an object of the caller's, empty at first; of `settings` (may be NULL) the members that
 * are text, numbers, true or false count, but for those in `ignored` (ends with NULL). Fails only when out
 * of memory, which the error says of `source`. */
int foreign_names_note(json_t *groups, const char *name, json_t *settings, const char *const *ignored,
		       const char *source, struct error *err);

/* "NAME" or "NAME (KEY=VALUE, ...)", keys in the order of the alphabet; once all rows are noted. */
void foreign_names_append(struct buf *to, const json_t *groups, const char *name, json_t *settings);

#endif
