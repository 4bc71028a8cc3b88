/* The elements that a GGUF header is made of: little-endian numbers, text, typed values, taken one after the other from
 * a file of which nothing is trusted. What they mean is not known here.
 *
 * Every take fails with a sentence that names the file and the byte; nothing beyond the file's end, or beyond 256 MiB,
 * is ever asked for. */
#ifndef ASSAY_INGEST_GGUF_VALUES_H
#define ASSAY_INGEST_GGUF_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define GGUF_NAME_ROOM 128 /* of keys and tensor names; a longer one is none that is asked for */
#define GGUF_LIST_MAX 4096 /* elements of a list of numbers that are looked at; one per layer is what they are for */

struct gguf_reader {
	const char *path;
	int fd;
	uint64_t size, at; /* of the file; where the next byte is taken */
	uint64_t begin;	   /* what the buffer holds */
	size_t held;
	unsigned char buffer[65536];
};

/* What is kept of a value: of whole numbers, and of lists of them, enough for what is asked; of text what fits. */
struct gguf_value {
	uint64_t first; /* the first that is above 0; 0: none */
	uint64_t sum;	/* of those above 0 */
	uint64_t count; /* of a list; 0: no list */
	char text[GGUF_NAME_ROOM];
};

/* -1, with "PATH: byte N: WHAT" */
int gguf_wrong(const struct gguf_reader *r, struct error *err, const char *what);

int gguf_take(struct gguf_reader *r, void *to, size_t bytes, struct error *err);
int gguf_take_u32(struct gguf_reader *r, uint32_t *ret, struct error *err);
int gguf_take_u64(struct gguf_reader *r, uint64_t *ret, struct error *err);

/* The text, or "" where it has `room` bytes or more. */
int gguf_take_string(struct gguf_reader *r, char *text, size_t room, struct error *err);

/* A type, and a value of it. */
int gguf_take_value(struct gguf_reader *r, struct gguf_value *ret, struct error *err);

#endif
