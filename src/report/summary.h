/* The summary on stderr: at most a screen, for a person at a terminal. */
#ifndef ASSAY_REPORT_SUMMARY_H
#define ASSAY_REPORT_SUMMARY_H

#include <stdbool.h>

#include "base/buf.h"
#include "model/run.h"

/* `columns` is how wide lines of text may be; what is aligned in columns of its own may be wider. 0: no terminal; then
 * a warning is one line, as a search in a log expects. `where` is the run directory, or NULL where there is no run.json
 * in it. */
void summary_print(const struct run *run, const char *where, bool colour, size_t columns, struct buf *out);

#endif
