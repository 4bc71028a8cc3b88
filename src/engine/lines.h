/* Lines from bytes: cuts a stream of chunks with times into clean lines for the parsers.
 *
 * Removes ANSI escape sequences and carriage returns, replaces invalid UTF-8, cuts lines over LOG_LINE_MAX (the rest is
 * passed over and counted). Bounded memory for any input. */
#ifndef ASSAY_ENGINE_LINES_H
#define ASSAY_ENGINE_LINES_H

#include "engine/engine.h"

struct line_counts {
	uint64_t lines, cut, invalid_utf8, binary; /* lines; of these cut, with invalid UTF-8, with control bytes */
};

struct line_splitter;

/* `each` gets every line of the stream. NULL when out of memory. */
struct line_splitter *line_splitter_new(int stream, void (*each)(void *context, const struct log_line *line),
					void *context);

/* Bytes that arrived at t. */
void line_splitter_feed(struct line_splitter *s, int64_t t, const char *bytes, size_t length);

/* A last line without its newline. */
void line_splitter_end(struct line_splitter *s);
void line_splitter_counts(const struct line_splitter *s, struct line_counts *ret);
void line_splitter_free(struct line_splitter *s);

#endif
