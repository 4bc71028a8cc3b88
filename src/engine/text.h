/* Reading a log line: where a phrase is, and the numbers behind it, whatever the locale they were printed in.
 *
 * Lines may hold zeros and end anywhere; nothing here reads past line->text[line->length], which is 0. */
#ifndef ASSAY_ENGINE_TEXT_H
#define ASSAY_ENGINE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"

/* The position behind the first occurrence of the phrase, or NULL. */
const char *line_after(const struct log_line *line, const char *phrase);
bool line_has(const struct log_line *line, const char *phrase);

/* Whether `at` goes on with `word`, after blanks; then *at is moved behind it. */
bool text_skip(const char **at, const char *word);

/* A number at *at, after blanks; moves *at behind it. The decimal mark may be a comma, if a digit follows it. "inf" and
 * "nan" are numbers, too: *ret is then NaN. */
bool text_number(const char **at, double *ret);

/* Digits with an optional minus sign at *at, after blanks. */
bool text_integer(const char **at, int64_t *ret);

/* The integer behind the first "KEY" of the line that is one, as in `id_slot=3`, `"id_slot":3` and `n_past = 3`; -1
 * where there is none. */
int64_t line_field(const struct log_line *line, const char *key);

/* Copies from `at` to the first of these ends or the line's, without blanks around it. */
void text_copy(char *ret, size_t size, const char *at, const char *const *ends);

#endif
