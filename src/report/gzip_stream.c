#include "report/gzip_stream.h"

#include <limits.h>

#define GZIP_WRAPPER 16 /* added to the window's bits: a gzip header instead of zlib's */

int gzip_stream_begin(struct gzip_stream *g, FILE *out, struct error *err)
{
	g->out = out;
	g->z = (z_stream){0};
	/* Stacks repeat themselves so much that the fastest level leaves little to gain. */
	if (deflateInit2(&g->z, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + GZIP_WRAPPER, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return error_set(err, "out of memory for compressing");
	return 0;
}

static void pump(struct gzip_stream *g, int flush)
{
	do {
		g->z.next_out = g->buffer;
		g->z.avail_out = sizeof g->buffer;
		deflate(&g->z, flush);
		fwrite_unlocked(g->buffer, 1, sizeof g->buffer - g->z.avail_out, g->out);
	} while (g->z.avail_out == 0);
}

void gzip_stream_put(struct gzip_stream *g, const void *bytes, size_t length)
{
	for (const unsigned char *from = bytes; length > 0;) {
		unsigned step = length < UINT_MAX ? (unsigned)length : UINT_MAX;

		g->z.next_in = (Bytef *)from; /* zlib's own type lacks the const */
		g->z.avail_in = step;
		pump(g, Z_NO_FLUSH);
		from += step;
		length -= step;
	}
}

void gzip_stream_end(struct gzip_stream *g)
{
	g->z.next_in = NULL;
	g->z.avail_in = 0;
	pump(g, Z_FINISH);
	deflateEnd(&g->z);
}
