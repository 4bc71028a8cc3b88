/* What every format of `assay check` says in words: figures with their unit, a sentence per row, the verdict. */
#ifndef ASSAY_REPORT_CHECK_WORDS_H
#define ASSAY_REPORT_CHECK_WORDS_H

#include "base/buf.h"
#include "base/table.h"
#include "base/units.h"
#include "report/check_format.h"

struct units_text check_words_value(double value, const char *unit); /* "1.23 s" of ns, "12.3 %", "50.1 tokens/s" */
struct units_text check_words_change(const struct check_row *row);    /* "+12.3%", "from 0", "-" */

/* "total went from 1.20 s to 1.50 s, +25.0%": for an annotation or a test's message. No name, no newline. */
void check_words_sentence(const struct check_report *r, const struct check_row *row, struct buf *out);

/* "failed: 2 (1 regressed, 1 vanished); 7 compared", "passed: 5 compared (4 within the budget, 1 improved), 2 new". */
void check_words_verdict(const struct check_report *r, struct buf *out);

/* "total of each region, at most 5% worse; new ones fail" */
void check_words_budget(const struct check_report *r, struct buf *out);

/* The rows as a table that is cut to what is to be shown: what passed only with r->all, but always what is new or
 * vanished. Fills *t, which it initialises; names are at most `columns` wide (0: whole). Returns how many were left
 * out. */
size_t check_words_table(const struct check_report *r, size_t columns, struct table *t, const char **ret_align);

#endif
