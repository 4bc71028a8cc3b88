/* A command line as a shell would split it into words, and whether it takes a shell to run it. */
#ifndef ASSAY_TRIAL_BENCH_WORDS_H
#define ASSAY_TRIAL_BENCH_WORDS_H

#include <stdbool.h>

#include "base/error.h"

/* Splits at blanks; quotes and backslashes are those of sh, all else is literal. *ret ends with NULL and is owned, each
 * word too. Fails where a quote stays open or there is no word. */
int bench_words_split(const char *line, char ***ret, struct error *err);
void bench_words_free(char **words);

/* Whether a shell would see more in the line than words: pipes, redirections, variables, patterns, builtins without a
 * program of that name, an open quote. */
bool bench_words_need_shell(const char *line);

#endif
