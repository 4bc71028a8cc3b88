/* Numbers and sizes from text, in the C locale whatever the user's is, with nothing left over allowed. */
#ifndef ASSAY_BASE_PARSE_H
#define ASSAY_BASE_PARSE_H

#include <stdbool.h>
#include <stdint.h>

/* The whole text must be one number (no blanks around it) inside the type's range; else false and *ret is untouched.
 * parse_double takes no hexadecimal, "inf" or "nan". */
bool parse_i64(const char *text, int64_t *ret);
bool parse_u64(const char *text, uint64_t *ret);
bool parse_double(const char *text, double *ret);

/* strtod in the C locale: reads the number at the start of the text and moves *end behind it; *end == text if none. */
double parse_double_prefix(const char *text, const char **end);

#endif
