/* The pieces of JSON that is too large to be built in memory first: what is written is the caller's order of calls.
 *
 * Errors of the stream are left in it (ferror). Not for several threads on one stream. */
#ifndef ASSAY_REPORT_JSON_STREAM_H
#define ASSAY_REPORT_JSON_STREAM_H

#include <stdint.h>
#include <stdio.h>

/* Punctuation and keys, as they stand. */
void json_stream_raw(FILE *out, const char *text);

/* A quoted string; what is not UTF-8 becomes U+FFFD. NULL is "". */
void json_stream_text(FILE *out, const char *text);

void json_stream_number(FILE *out, uint64_t value);

/* A key of an object behind what stands `before` it: `"key": `. */
void json_stream_key(FILE *out, const char *before, const char *key);

/* A key and its value. */
void json_stream_key_number(FILE *out, const char *before, const char *key, uint64_t value);
void json_stream_key_real(FILE *out, const char *before, const char *key, double value);

/* The fewest digits that read back as the same double, whole numbers without a point; null where it is not finite. */
void json_stream_real(FILE *out, double value);

/* Nanoseconds as microseconds with their fraction: 1234.567. */
void json_stream_us(FILE *out, int64_t ns);

#endif
