#include "store/region_stored.h"

#include <inttypes.h>
#include <stdlib.h>

#define RATIO_MAX 100000u /* nobody compresses better */

void region_stored_init(struct region_stored *s)
{
	*s = (struct region_stored){.window = REGION_WINDOW};
}

void region_stored_release(struct region_stored *s)
{
	for (size_t c = 0; c < REGION_COLUMNS; c++) {
		for (size_t i = 0; s->pieces[c] && i < s->piece_count; i++)
			free(s->pieces[c][i].chunks);
		free(s->pieces[c]);
	}
	region_stored_init(s);
}

/* Room for the pieces is always the next power of two. */
int region_stored_add(struct region_stored *s, unsigned columns, struct error *err)
{
	size_t count = s->piece_count;

	for (size_t c = 0; c < REGION_COLUMNS; c++) {
		struct region_piece *pieces = s->pieces[c];

		if (!(columns & 1u << c))
			continue;
		if (!(count & (count - 1)))
			pieces = reallocarray(pieces, count ? 2 * count : 1, sizeof *pieces);
		if (!pieces)
			return error_set(err, "out of memory for the columns of %zu regions", count + 1);
		pieces[count] = (struct region_piece){.kind = REGION_PIECE_NONE};
		s->pieces[c] = pieces;
	}
	s->piece_count++;
	return 0;
}

static int check_chunks(const struct region_piece *piece, uint64_t rows, uint64_t file_size)
{
	uint64_t plain = piece->chunk_rows * sizeof(int64_t), sum = 0;

	if (piece->chunk_rows < REGION_CHUNK_ROWS_MIN || piece->chunk_rows > REGION_CHUNK_ROWS_MAX ||
	    piece->chunk_count != rows / piece->chunk_rows + (rows % piece->chunk_rows > 0))
		return -1;
	for (size_t i = 0; i < piece->chunk_count; i++) {
		const struct region_chunk *chunk = &piece->chunks[i];

		/* What deflate could not make smaller is at most some thousandths, or some bytes, larger. */
		if (chunk->at > file_size || chunk->size > file_size - chunk->at || chunk->size > plain + plain / 8 ||
		    (!piece->deflate && chunk->size != plain))
			return -1;
		sum += chunk->size;
		/* Chunks that lie on each other would make of a small file any number of calls. */
		if (sum > file_size)
			return -1;
	}
	return 0;
}

static int check_piece(const struct region_piece *piece, enum region_column c, uint64_t rows, uint64_t file_size)
{
	switch (piece->kind) {
	case REGION_PIECE_NONE:
		return c == REGION_GPU || rows == 0 ? 0 : -1;
	case REGION_PIECE_WHOLE:
		return piece->at > file_size || rows > (file_size - piece->at) / sizeof(int64_t) ? -1 : 0;
	case REGION_PIECE_CHUNKS:
		return check_chunks(piece, rows, file_size);
	case REGION_PIECE_FENCED:
		return 0;
	}
	return -1;
}

int region_stored_check(const struct region_stored *s, const struct regions *r, uint64_t file_size,
			struct error *err)
{
	if (s->piece_count != (r->layout == 1 ? r->part_count : 1) || s->window < REGION_WINDOW_MIN ||
	    s->window > REGION_WINDOW_MAX || r->call_count / RATIO_MAX > file_size)
		return error_set(err, "it says that it has %" PRIu64 " calls in %" PRIu64 " bytes", r->call_count,
				 file_size);
	for (enum region_column c = 0; c < REGION_COLUMNS; c++) {
		if (!(r->columns & 1u << c))
			continue;
		for (size_t i = 0; s->pieces[c] && i < s->piece_count; i++) {
			uint64_t rows = r->layout == 1 ? r->parts[i].count : r->call_count;

			if (check_piece(&s->pieces[c][i], c, rows, file_size) < 0)
				return error_set(err, "%" PRIu64 " rows of %s cannot lie in it as it says", rows,
						 region_column_name(c));
		}
		if (!s->pieces[c] && r->call_count)
			return error_set(err, "it says nothing of where %s lies", region_column_name(c));
	}
	return 0;
}

bool region_stored_needs_fence(const struct region_stored *s, const struct regions *r)
{
	for (size_t c = 0; c < REGION_COLUMNS; c++)
		for (size_t i = 0; s->pieces[c] && i < s->piece_count; i++)
			if (s->pieces[c][i].kind == REGION_PIECE_FENCED &&
			    (r->layout == 1 ? r->parts[i].count : r->call_count) > 0)
				return true;
	return false;
}

const char *region_column_name(enum region_column column)
{
	static const char *const names[REGION_COLUMNS] = {
		"start_times", "end_times",  "gpu_durations", "call_ids",
		"parent_ids",  "thread_ids", "task_ids",      "await_ns",
	};

	return names[column];
}
