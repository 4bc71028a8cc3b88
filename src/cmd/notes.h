/* What a command has to say beside its answer: sentences on stderr, a line each, safe for a terminal. */
#ifndef ASSAY_CMD_NOTES_H
#define ASSAY_CMD_NOTES_H

#include "model/warnings.h"

/* `who` begins each line: "assay merge". Of a warning list also how many more there were. */
void notes_print(const char *who, const struct warnings *notes);
void notes_print_texts(const char *who, char *const *texts, size_t count);
void notes_print_text(const char *who, const char *text);

#endif
