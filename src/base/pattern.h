/* Regular expressions of users: PCRE2, so what they know from Python and Perl holds. Matched at the start of a text,
 * as Python's re.match does; not necessarily to its end. */
#ifndef ASSAY_BASE_PATTERN_H
#define ASSAY_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct pattern;

/* Fails for a bad expression: the sentence names it and the place in it. */
int pattern_new(const char *expression, struct pattern **ret, struct error *err);
void pattern_free(struct pattern *p);

/* Whether a text matches. Fails where that would take unreasonably long: an answer that is not known is neither. */
int pattern_match(const struct pattern *p, const char *text, bool *ret, struct error *err);

#endif
