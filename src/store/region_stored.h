/* Where the calls of an HDF5 file of regions lie in it, so that they can be read without the HDF5 library. Found in the
 * child process behind the fence (region_fence.h) or by the writer; shared by the program and the plug-in. */
#ifndef ASSAY_STORE_REGION_STORED_H
#define ASSAY_STORE_REGION_STORED_H

#include "model/regions.h"

#define REGION_WINDOW 65536u /* rows that are read at once where the file suggests nothing better */
#define REGION_WINDOW_MIN 4096u
#define REGION_WINDOW_MAX (UINT64_C(1) << 20)

/* Of a chunk that is read past the library. */
#define REGION_CHUNK_ROWS_MIN 16u
#define REGION_CHUNK_ROWS_MAX (UINT64_C(4) << 20)

struct region_chunk {
	uint64_t at, size; /* bytes in the file */
};

enum region_piece_kind {
	REGION_PIECE_NONE,   /* no data set: unknown */
	REGION_PIECE_WHOLE,  /* native int64, one behind the other */
	REGION_PIECE_CHUNKS, /* native int64 in chunks, all there; the last one may reach behind the end */
	REGION_PIECE_FENCED, /* anything else: through the library alone */
};

struct region_piece {
	enum region_piece_kind kind;
	bool shuffle, deflate; /* how chunks are filtered */
	uint64_t at;           /* WHOLE: byte in the file */
	uint64_t chunk_rows;
	struct region_chunk *chunks;
	size_t chunk_count;
};

struct region_stored {
	bool deltas;     /* layout 3: columns START and END hold start deltas and durations */
	uint64_t window; /* rows that are best read at once, beginning at multiples of it */
	/* Of each column one piece, or (layout 1) one for each part; NULL: no such column. */
	struct region_piece *pieces[REGION_COLUMNS];
	size_t piece_count;
};

void region_stored_init(struct region_stored *s);
void region_stored_release(struct region_stored *s);

/* One piece more, of kind NONE, in each of these columns (bits). */
int region_stored_add(struct region_stored *s, unsigned columns, struct error *err);

/* Where all that is said of the calls can be in a file of that size. *err says what cannot. */
int region_stored_check(const struct region_stored *s, const struct regions *r, uint64_t file_size,
			struct error *err);

/* Whether any calls are read through the library. */
bool region_stored_needs_fence(const struct region_stored *s, const struct regions *r);

/* "start_times", ... */
const char *region_column_name(enum region_column column);

#endif
