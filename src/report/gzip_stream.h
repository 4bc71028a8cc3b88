/* Bytes compressed on their way into a stream, as one gzip member without a name or a time, so that the same input
 * gives the same file. Errors of the stream are left in it (ferror). */
#ifndef ASSAY_REPORT_GZIP_STREAM_H
#define ASSAY_REPORT_GZIP_STREAM_H

#include <stdio.h>
#include <zlib.h>

#include "base/error.h"

struct gzip_stream {
	FILE *out;
	z_stream z;
	unsigned char buffer[16384];
};

/* Fails when out of memory; nothing is to be ended then. */
int gzip_stream_begin(struct gzip_stream *g, FILE *out, struct error *err);
void gzip_stream_put(struct gzip_stream *g, const void *bytes, size_t length);

/* Writes what is left, and frees. */
void gzip_stream_end(struct gzip_stream *g);

#endif
