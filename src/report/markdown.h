/* The summary as Markdown, for a pull request, a ticket or a notebook: the same tables as on the terminal, not cut to a
 * screen. */
#ifndef ASSAY_REPORT_MARKDOWN_H
#define ASSAY_REPORT_MARKDOWN_H

#include "base/buf.h"
#include "model/run.h"

void markdown_print(const struct run *run, struct buf *out);

#endif
