/* Numbers in a line of a callgrind file. The line is [*at, end), without a 0; each function that succeeds moves *at
 * behind what it has read. Inside src/ingest only. */
#ifndef ASSAY_INGEST_GRAPH_CALLGRIND_LINE_H
#define ASSAY_INGEST_GRAPH_CALLGRIND_LINE_H

#include <stdbool.h>
#include <stdint.h>

void callgrind_skip_blanks(const char **at, const char *end);
bool callgrind_starts(const char *at, const char *end, const char *key);

/* "12" or "0x1f", with a blank or the end behind it; what is too large is cut to its last 64 bits, as an address. */
bool callgrind_read_whole(const char **at, const char *end, uint64_t *ret);

/* "12", "+3", "-3", "*": the last three relative to *position. */
bool callgrind_read_position(const char **at, const char *end, uint64_t *position);

/* A number of any size, as a double. */
bool callgrind_read_cost(const char **at, const char *end, double *ret);

#endif
