/* Reads calls by any number of threads, a reader for each: columns that lie as they are, chunks that are inflated here
 * (several times as fast as the HDF5 library does), and what only the library can read through the fence. */
#include <inttypes.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/region_parts.h"
#include "store/region_source.h"

/* Larger chunks share one place: each thread may have as many places as columns. */
#define OWN_PLACE_MAX ((size_t)1 << 20) /* bytes */

/* A chunk as it was before it was stored: windows and parts end in the middle of chunks. */
struct place {
	const struct region_chunk *chunk; /* NULL: none */
	unsigned char *plain;
	size_t room;
};

struct region_reader {
	struct region_source *source;
	struct libdeflate_decompressor *inflater;
	unsigned char *stored; /* one chunk, as it is in the file */
	size_t stored_room;
	struct place places[REGION_COLUMNS + 1];
};

void region_source_init(struct region_source *s, const struct regions *regions)
{
	*s = (struct region_source){.regions = regions, .fd = -1, .window = REGION_WINDOW};
	region_stored_init(&s->stored);
	pthread_mutex_init(&s->carry_lock, NULL);
}

void region_source_release(struct region_source *s)
{
	region_fence_close(s->fence);
	region_stored_release(&s->stored);
	fd_cleanup(&s->fd);
	free(s->offsets);
	free(s->carry);
	pthread_mutex_destroy(&s->carry_lock);
}

int region_source_reader(struct region_source *s, struct region_reader **ret, struct error *err)
{
	struct region_reader *reader = calloc(1, sizeof *reader);

	if (!reader)
		return error_set(err, "out of memory");
	reader->source = s;
	reader->inflater = libdeflate_alloc_decompressor();
	if (!reader->inflater) {
		free(reader);
		return error_set(err, "out of memory");
	}
	*ret = reader;
	return 0;
}

void region_source_reader_free(struct region_reader *reader)
{
	if (!reader)
		return;
	libdeflate_free_decompressor(reader->inflater);
	free(reader->stored);
	for (size_t i = 0; i <= REGION_COLUMNS; i++)
		free(reader->places[i].plain);
	free(reader);
}

static int make_room(unsigned char **bytes, size_t *room, size_t size, struct error *err)
{
	unsigned char *more;

	if (size <= *room)
		return 0;
	more = realloc(*bytes, size);
	if (!more)
		return error_set(err, "out of memory for a chunk of %zu bytes", size);
	*bytes = more;
	*room = size;
	return 0;
}

static int read_bytes(int fd, uint64_t at, void *out, size_t size, struct error *err)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = pread(fd, (char *)out + done, size - done, (off_t)(at + done));

		if (got <= 0)
			return error_set(err, "it is cut short: %zu bytes at %" PRIu64 " cannot be read", size, at);
		done += (size_t)got;
	}
	return 0;
}

/* Bytes 0, then bytes 1, ... of all numbers, back to numbers [first, first + count) of `all`. */
static void unshuffle(const unsigned char *plain, size_t all, size_t first, size_t count, int64_t *out)
{
	const unsigned char *p = plain + first;

	for (size_t i = 0; i < count; i++)
		out[i] = (int64_t)((uint64_t)p[i] | (uint64_t)p[all + i] << 8 | (uint64_t)p[2 * all + i] << 16 |
				   (uint64_t)p[3 * all + i] << 24 | (uint64_t)p[4 * all + i] << 32 |
				   (uint64_t)p[5 * all + i] << 40 | (uint64_t)p[6 * all + i] << 48 |
				   (uint64_t)p[7 * all + i] << 56);
}

/* Reads and inflates a chunk, where it is not there already. */
static int need_chunk(struct region_reader *reader, struct place *place, enum region_column c,
		      const struct region_piece *piece, uint64_t index, struct error *err)
{
	const struct region_chunk *chunk = &piece->chunks[index];
	size_t bytes = piece->chunk_rows * sizeof(int64_t);
	int fd = reader->source->fd;

	if (place->chunk == chunk)
		return 0;
	place->chunk = NULL;
	if (make_room(&place->plain, &place->room, bytes, err) < 0)
		return -1;
	if (!piece->deflate) {
		if (read_bytes(fd, chunk->at, place->plain, bytes, err) < 0)
			return -1;
	} else {
		if (make_room(&reader->stored, &reader->stored_room, chunk->size, err) < 0 ||
		    read_bytes(fd, chunk->at, reader->stored, chunk->size, err) < 0)
			return -1;
		if (libdeflate_zlib_decompress(reader->inflater, reader->stored, chunk->size, place->plain, bytes,
					       NULL) != LIBDEFLATE_SUCCESS)
			return error_set(err, "chunk %" PRIu64 " of %s is damaged", index, region_column_name(c));
	}
	place->chunk = chunk;
	return 0;
}

static int read_chunks(struct region_reader *reader, enum region_column c, const struct region_piece *piece,
		       uint64_t row, uint64_t count, int64_t *out, struct error *err)
{
	bool own = piece->chunk_rows * sizeof *out <= OWN_PLACE_MAX;
	struct place *place = &reader->places[own ? c : REGION_COLUMNS];

	while (count) {
		uint64_t first = row % piece->chunk_rows, left = piece->chunk_rows - first;
		uint64_t step = left < count ? left : count;

		if (need_chunk(reader, place, c, piece, row / piece->chunk_rows, err) < 0)
			return -1;
		if (piece->shuffle)
			unshuffle(place->plain, piece->chunk_rows, first, step, out);
		else
			memcpy(out, place->plain + first * sizeof *out, step * sizeof *out);
		row += step;
		count -= step;
		out += step;
	}
	return 0;
}

/* Rows of a piece, the first of which is row `at` of the column. */
static int read_piece(struct region_reader *reader, enum region_column c, const struct region_piece *piece,
		      uint64_t at, uint64_t first, uint64_t count, int64_t *out, struct error *err)
{
	switch (piece->kind) {
	case REGION_PIECE_WHOLE:
		return read_bytes(reader->source->fd, piece->at + (first - at) * sizeof *out, out,
				  count * sizeof *out, err);
	case REGION_PIECE_CHUNKS:
		return read_chunks(reader, c, piece, first - at, count, out, err);
	case REGION_PIECE_FENCED:
		return region_fence_read(reader->source->fence, c, first, count, out, err);
	case REGION_PIECE_NONE:
		break;
	}
	for (uint64_t i = 0; i < count; i++)
		out[i] = REGIONS_UNKNOWN;
	return 0;
}

/* Rows of a column as they stand in the file. */
static int read_column(struct region_reader *reader, enum region_column c, uint64_t first, uint64_t count,
		       int64_t *out, struct error *err)
{
	const struct region_piece *pieces = reader->source->stored.pieces[c];
	const struct regions *r = reader->source->regions;

	if (r->layout != 1)
		return read_piece(reader, c, pieces, 0, first, count, out, err);
	for (size_t i = region_part_at(r, first); count; i++) {
		const struct region_part *part = &r->parts[i];
		uint64_t left = part->first + part->count - first, step = left < count ? left : count;

		if (step && read_piece(reader, c, &pieces[i], part->first, first, step, out, err) < 0)
			return -1;
		first += step;
		count -= step;
		out += step;
	}
	return 0;
}

/* ---- Layout 3 ---- */

/* Turns the deltas of rows [first, ...) into starts; `start` is that of the row before. Damage wraps around. */
static int64_t add_up(const struct regions *r, uint64_t first, uint64_t count, int64_t start, int64_t *rows)
{
	size_t index = region_part_at(r, first);
	uint64_t sum = (uint64_t)start;

	for (uint64_t i = 0; i < count; i++) {
		while (index < r->part_count && r->parts[index].first + r->parts[index].count <= first + i)
			index++;
		if (index < r->part_count && r->parts[index].first == first + i)
			sum = 0;
		sum += (uint64_t)rows[i];
		rows[i] = (int64_t)sum;
	}
	return (int64_t)sum;
}

/* The start before each window, so that one can begin in the middle. */
static int find_carry(struct region_reader *reader, int64_t *rows, struct error *err)
{
	struct region_source *s = reader->source;
	uint64_t all = s->regions->call_count, windows = all / s->window + 1;
	int64_t *carry = calloc(windows, sizeof *carry), start = 0;

	if (!carry)
		return error_set(err, "out of memory for %" PRIu64 " calls", all);
	for (uint64_t i = 0; i < windows; i++) {
		uint64_t first = i * s->window, left = all - first;
		uint64_t count = left < s->window ? left : s->window;

		carry[i] = start;
		if (count && read_column(reader, REGION_START, first, count, rows, err) < 0) {
			free(carry);
			return -1;
		}
		start = add_up(s->regions, first, count, start, rows);
	}
	s->carry = carry;
	return 0;
}

static int need_carry(struct region_reader *reader, int64_t *rows, struct error *err)
{
	struct region_source *s = reader->source;
	int result = 0;

	pthread_mutex_lock(&s->carry_lock);
	if (!s->carry)
		result = find_carry(reader, rows, err);
	pthread_mutex_unlock(&s->carry_lock);
	return result;
}

/* Starts, or ends, of rows that lie in one window. */
static int read_window(struct region_reader *reader, enum region_column c, uint64_t first, uint64_t count,
		       int64_t *rows, int64_t *out, struct error *err)
{
	struct region_source *s = reader->source;
	uint64_t window = first / s->window, begin = window * s->window, skip = first - begin;

	if (read_column(reader, REGION_START, begin, skip + count, rows, err) < 0)
		return -1;
	add_up(s->regions, begin, skip + count, s->carry[window], rows);
	if (c == REGION_START) {
		memcpy(out, rows + skip, count * sizeof *out);
		return 0;
	}
	if (read_column(reader, REGION_END, first, count, out, err) < 0)
		return -1;
	for (uint64_t i = 0; i < count; i++)
		out[i] = (int64_t)((uint64_t)out[i] + (uint64_t)rows[skip + i]);
	return 0;
}

static int read_deltas(struct region_reader *reader, enum region_column c, uint64_t first, uint64_t count,
		       int64_t *out, struct error *err)
{
	uint64_t window = reader->source->window;
	CLEANUP(free_cleanup) int64_t *rows = malloc(window * sizeof *rows);

	if (!rows)
		return error_set(err, "out of memory for %" PRIu64 " calls", window);
	if (need_carry(reader, rows, err) < 0)
		return -1;
	while (count) {
		uint64_t left = window - first % window, step = left < count ? left : count;

		if (read_window(reader, c, first, step, rows, out, err) < 0)
			return -1;
		first += step;
		count -= step;
		out += step;
	}
	return 0;
}

int region_source_read(struct region_reader *reader, enum region_column column, uint64_t first, uint64_t count,
		       int64_t *out, struct error *err)
{
	const struct region_source *s = reader->source;

	if (!(s->regions->columns & 1u << column)) {
		for (uint64_t i = 0; i < count; i++)
			out[i] = REGIONS_UNKNOWN;
		return 0;
	}
	if (s->offsets)
		return region_spt_read(s, column, first, count, out, err);
	if (s->stored.deltas && column <= REGION_END)
		return read_deltas(reader, column, first, count, out, err);
	return read_column(reader, column, first, count, out, err);
}
