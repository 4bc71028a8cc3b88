/* Text from elsewhere inside Markdown: what would be taken for markup is made plain. */
#ifndef ASSAY_REPORT_MARKDOWN_TEXT_H
#define ASSAY_REPORT_MARKDOWN_TEXT_H

#include <stddef.h>

#include "base/buf.h"

/* One line of at most so many columns, with a backslash before each of `marks`. */
void markdown_put_text(struct buf *out, const char *text, const char *marks, size_t columns);

#endif
