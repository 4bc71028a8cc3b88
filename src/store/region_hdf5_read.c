/* Finds where calls lie in a file, so that they can be read past the library by as many threads as like; and reads, by
 * the library, those that lie in any other way. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "store/region_hdf5.h"
#include "store/region_parts.h"

/* The library looks for each chunk from the first one on: with more of them it is faster to let it read. */
#define CHUNKS_MAX 65536u

/* Filters of chunks that the program knows: shuffle, deflate, both in that order. */
static bool known_filters(hid_t list, struct region_piece *piece)
{
	int count = H5Pget_nfilters(list);

	for (int i = 0; i < count; i++) {
		unsigned flags, values[8];
		size_t value_count = 8;
		H5Z_filter_t filter = H5Pget_filter2(list, (unsigned)i, &flags, &value_count, values, 0, NULL, NULL);

		if (filter == H5Z_FILTER_SHUFFLE && i == 0)
			piece->shuffle = true;
		else if (filter == H5Z_FILTER_DEFLATE && !piece->deflate)
			piece->deflate = true;
		else
			return false;
	}
	return count >= 0;
}

/* 1 where all chunks are there, and went through all filters; 0 where not. */
static int find_chunks(hid_t set, hsize_t rows, struct region_piece *piece, struct error *err)
{
	size_t count = rows / piece->chunk_rows + (rows % piece->chunk_rows > 0);

	piece->chunks = calloc(count + 1, sizeof *piece->chunks);
	if (!piece->chunks)
		return error_set(err, "out of memory for the index of its calls");
	for (size_t i = 0; i < count; i++) {
		hsize_t offset = i * piece->chunk_rows, size = 0;
		unsigned skipped = 0;
		haddr_t at = HADDR_UNDEF;

		if (H5Dget_chunk_info_by_coord(set, &offset, &skipped, &at, &size) < 0 || at == HADDR_UNDEF || skipped)
			return 0;
		piece->chunks[i] = (struct region_chunk){at, size};
	}
	piece->chunk_count = count;
	return 1;
}

/* 1: *piece says all; 0: not in a simple way. */
static int look_at_set(hid_t set, hsize_t rows, struct region_piece *piece, struct error *err)
{
	CLEANUP(hdf5_close) hid_t type = H5Dget_type(set);
	CLEANUP(hdf5_close) hid_t list = H5I_INVALID_HID;
	haddr_t at;
	hsize_t chunk = 0;

	if (rows == 0 || type < 0 || H5Tequal(type, H5T_NATIVE_INT64) <= 0)
		return 0;
	at = H5Dget_offset(set);
	if (at != HADDR_UNDEF) {
		piece->kind = REGION_PIECE_WHOLE;
		piece->at = at;
		return H5Dget_storage_size(set) == rows * sizeof(int64_t);
	}
	list = H5Dget_create_plist(set);
	if (list < 0 || H5Pget_layout(list) != H5D_CHUNKED || H5Pget_chunk(list, 1, &chunk) != 1 ||
	    chunk < REGION_CHUNK_ROWS_MIN || chunk > REGION_CHUNK_ROWS_MAX || rows / chunk > CHUNKS_MAX ||
	    !known_filters(list, piece))
		return 0;
	piece->kind = REGION_PIECE_CHUNKS;
	piece->chunk_rows = chunk;
	return find_chunks(set, rows, piece, err);
}

int region_h5_piece(hid_t set, hsize_t rows, struct region_piece *ret, struct error *err)
{
	struct region_piece piece = {.kind = REGION_PIECE_NONE};
	int got = look_at_set(set, rows, &piece, err);

	H5Eclear2(H5E_DEFAULT);
	if (got <= 0) {
		free(piece.chunks);
		piece = (struct region_piece){.kind = REGION_PIECE_FENCED};
	}
	*ret = piece;
	return got < 0 ? -1 : 0;
}

static int read_rows(hid_t set, const char *name, hsize_t first, hsize_t count, int64_t *out, struct error *err)
{
	CLEANUP(hdf5_close) hid_t in_memory = H5Screate_simple(1, &count, NULL);
	CLEANUP(hdf5_close) hid_t in_file = H5Dget_space(set);

	if (H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &first, NULL, &count, NULL) < 0 ||
	    H5Dread(set, H5T_NATIVE_INT64, in_memory, in_file, H5P_DEFAULT, out) < 0)
		return hdf5_failed("read", name, err);
	return 0;
}

static void close_part(struct region_h5 *h5)
{
	for (size_t i = 0; i < 3; i++)
		hdf5_close(&h5->open_sets[i]);
	h5->open_part = SIZE_MAX;
}

/* Layout 1: the sets of one part are open at a time. */
static int read_part(struct region_h5 *h5, enum region_column c, size_t index, uint64_t first, uint64_t count,
		     int64_t *out, struct error *err)
{
	const struct region_part *part = &h5->regions->parts[index];
	const char *name = region_column_name(c);

	if (h5->open_part != index) {
		close_part(h5);
		h5->open_part = index;
	}
	if (h5->open_sets[c] < 0) {
		CLEANUP(free_cleanup) char *path = region_h5_old_path(h5->regions, part);
		/* All links were looked at when the file was opened. */
		CLEANUP(hdf5_close) hid_t group = path ? H5Gopen2(h5->file, path, H5P_DEFAULT) : H5I_INVALID_HID;

		h5->open_sets[c] = H5Dopen2(group, name, H5P_DEFAULT);
		if (h5->open_sets[c] < 0)
			return hdf5_failed("open", name, err);
	}
	return read_rows(h5->open_sets[c], name, first - part->first, count, out, err);
}

static int read_old(struct region_h5 *h5, enum region_column c, uint64_t first, uint64_t count, int64_t *out,
		    struct error *err)
{
	for (size_t index = region_part_at(h5->regions, first); count; index++) {
		const struct region_part *part = &h5->regions->parts[index];
		uint64_t left = part->first + part->count - first, step = left < count ? left : count;

		if (step && read_part(h5, c, index, first, step, out, err) < 0)
			return -1;
		first += step;
		count -= step;
		out += step;
	}
	return 0;
}

int region_h5_read(struct region_h5 *h5, enum region_column column, uint64_t first, uint64_t count, int64_t *out,
		   struct error *err)
{
	int result;

	hdf5_lock();
	result = h5->layout == 1
			 ? read_old(h5, column, first, count, out, err)
			 : read_rows(h5->sets[column], region_column_name(column), first, count, out, err);
	hdf5_unlock();
	return result;
}
