/* UTF-8 from bytes that only claim to be: text that is shown or stored is made valid first. */
#ifndef ASSAY_BASE_UTF8_H
#define ASSAY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* How many bytes the valid character at `text` has (1 to 4), or 0 where there is none: overlong forms, surrogates and
 * cut characters are not valid. */
size_t utf8_character(const char *text, size_t length);

/* The first position at or after `from` that is not valid UTF-8; `length` where all is. */
size_t utf8_valid_until(const char *text, size_t from, size_t length);

/* Appends the text with each invalid byte replaced by U+FFFD. */
void utf8_append_clean(struct buf *out, const char *text, size_t length);

/* Appends text from elsewhere so that it may be shown on one line of a terminal: control characters, and those that
 * end a line or change the direction of what follows, become '?', and what is longer than `columns` characters ends
 * with "...". */
void utf8_append_line(struct buf *out, const char *text, size_t columns);

/* The largest length <= limit that does not cut a character in two. */
size_t utf8_cut(const char *text, size_t length, size_t limit);

#endif
