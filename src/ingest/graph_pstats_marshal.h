/* Python's marshal format (versions 0 to 5, and what Python 2 wrote), as far as data goes: no code objects.
 *
 * Nothing is built in memory. One scan looks whether the whole is well-formed and notes where objects lie that are
 * referred to; afterwards values are read where they are, and need no more checks of bounds. References into an object
 * that is not complete yet (circles) are errors of the scan. */
#ifndef ASSAY_INGEST_GRAPH_PSTATS_MARSHAL_H
#define ASSAY_INGEST_GRAPH_PSTATS_MARSHAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define MARSHAL_REFERENCE_BYTES 5

struct marshal_positions {
	uint32_t *items;
	size_t count, room;
};

struct marshal {
	const unsigned char *bytes;
	size_t length;
	const char *source;                /* for errors */
	struct marshal_positions refs;     /* of objects that may be referred to, by number */
	struct marshal_positions interned; /* the same of Python 2's texts */
	struct marshal_positions members;  /* of the outermost dictionary: key, value, key, value, ... */
	size_t end;                        /* of the outermost object */
};

enum marshal_kind {
	MARSHAL_INT,
	MARSHAL_HUGE, /* an integer beyond int64_t */
	MARSHAL_REAL,
	MARSHAL_TEXT,
	MARSHAL_SEQUENCE, /* tuple or list */
	MARSHAL_DICT,
	MARSHAL_OTHER,
};

struct marshal_value {
	enum marshal_kind kind;
	int64_t integer;
	double real;
	const char *text; /* borrowed */
	size_t count;     /* bytes of a text, members of a sequence */
	bool latin1;      /* the text's bytes are characters, not UTF-8 */
	size_t contents;  /* of a sequence and a dictionary: where the first member stands */
};

/* *m must be {.bytes, .length, .source} and is released also after a failure. */
int marshal_scan(struct marshal *m, struct error *err);
void marshal_release(struct marshal *m);

/* The value at *at, or that it refers to. *at moves behind it, but of a sequence or dictionary that stands right there
 * to its contents: whoever reads those gets to the end. */
struct marshal_value marshal_read(const struct marshal *m, size_t *at);

/* The number of the reference at `at`, which takes MARSHAL_REFERENCE_BYTES; UINT32_MAX: something else stands there. */
uint32_t marshal_reference(const struct marshal *m, size_t at);

/* Whether a dictionary ends at `at`. */
bool marshal_dict_ends(const struct marshal *m, size_t at);

/* Appends a text as UTF-8 (single surrogates as three bytes). */
void marshal_append_text(struct buf *out, const struct marshal_value *v);

#endif
