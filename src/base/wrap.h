/* Text folded into lines of a given width, with a hanging indentation. Width counts characters of UTF-8. */
#ifndef ASSAY_BASE_WRAP_H
#define ASSAY_BASE_WRAP_H

#include <stddef.h>

#include "base/buf.h"

/* How many columns a text takes. */
size_t wrap_width(const char *text);

/* Appends the words of `text`, the first at column `at`; further lines start at column `indent`. Ends the line. A word
 * that is longer than a line stays whole. */
void wrap_append(struct buf *out, const char *text, size_t at, size_t indent, size_t width);

#endif
