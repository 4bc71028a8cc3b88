/* Text wrapped for a terminal, with a hanging indentation: help and doctor's table are made of it. */
#ifndef ASSAY_CMD_PARAGRAPH_H
#define ASSAY_CMD_PARAGRAPH_H

#include <stddef.h>
#include <stdio.h>

#define PARAGRAPH_WIDTH 79

/* Prints the words of `text` from column `at` on; further lines start at column `indent`. Ends the line. A word that is
 * longer than a line stays whole. Width counts characters of UTF-8. */
void paragraph_print(FILE *out, const char *text, size_t at, size_t indent);

/* How many columns a text takes. */
size_t paragraph_width(const char *text);

#endif
