/* Writing layout 2: chunks of columns, by several threads, and at the end what says whose calls they are. Chunks are
 * compressed outside the library and its lock. */
#include <inttypes.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/region_hdf5_put.h"

/* Measured with chunks of 16,384, 65,536 and 262,144 rows at levels 1, 3 and 6 (docs/formats.md): of libdeflate's
 * levels 3 is the fastest, and 1 is slower and larger; larger chunks win some percent for four times the memory. */
#define LEVEL 3
#define CHUNK_BYTES (REGION_H5_CHUNK * sizeof(int64_t))

/* What one thread needs to compress a chunk; kept for the next one. */
struct press {
	struct press *next;
	struct libdeflate_compressor *compressor;
	unsigned char *shuffled, *packed;
	size_t room; /* of packed */
};

struct region_h5_out {
	hid_t file, events;
	hid_t sets[REGION_COLUMNS];
	hsize_t extents[REGION_COLUMNS];
	unsigned columns;
	char *path;
	pthread_mutex_t lock; /* of presses */
	struct press *presses;
};

static void free_press(struct press *press)
{
	if (!press)
		return;
	libdeflate_free_compressor(press->compressor);
	free(press->shuffled);
	free(press->packed);
	free(press);
}

static struct press *take_press(struct region_h5_out *out)
{
	struct press *press;

	pthread_mutex_lock(&out->lock);
	press = out->presses;
	if (press)
		out->presses = press->next;
	pthread_mutex_unlock(&out->lock);
	if (press)
		return press;
	press = calloc(1, sizeof *press);
	if (!press)
		return NULL;
	press->compressor = libdeflate_alloc_compressor(LEVEL);
	if (press->compressor) {
		press->room = libdeflate_zlib_compress_bound(press->compressor, CHUNK_BYTES);
		press->shuffled = malloc(CHUNK_BYTES);
		press->packed = malloc(press->room);
	}
	if (press->compressor && press->shuffled && press->packed)
		return press;
	free_press(press);
	return NULL;
}

static void give_press(struct region_h5_out *out, struct press *press)
{
	pthread_mutex_lock(&out->lock);
	press->next = out->presses;
	out->presses = press;
	pthread_mutex_unlock(&out->lock);
}

/* What all that is open needs before the file is closed. */
static void close_sets(struct region_h5_out *out)
{
	for (size_t i = 0; i < REGION_COLUMNS; i++)
		hdf5_close(&out->sets[i]);
	hdf5_close(&out->events);
}

static void release(struct region_h5_out *out)
{
	while (out->presses) {
		struct press *press = out->presses;

		out->presses = press->next;
		free_press(press);
	}
	pthread_mutex_destroy(&out->lock);
	free(out->path);
	free(out);
}

void region_h5_abandon(struct region_h5_out *out)
{
	if (!out)
		return;
	hdf5_lock();
	close_sets(out);
	hdf5_close(&out->file);
	H5Eclear2(H5E_DEFAULT);
	hdf5_unlock();
	release(out);
}

static int create_sets(struct region_h5_out *out, struct error *err)
{
	CLEANUP(hdf5_close) hid_t list = h5_put_chunks(REGION_H5_CHUNK);
	hsize_t none = 0, unlimited = H5S_UNLIMITED;
	CLEANUP(hdf5_close) hid_t space = H5Screate_simple(1, &none, &unlimited);

	if (list < 0 || space < 0 || H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) < 0)
		return hdf5_failed("prepare", "the columns", err);
	out->events = h5_put_group(out->file, "events", err);
	for (size_t i = 0; out->events >= 0 && i < REGION_COLUMNS; i++) {
		const char *name = region_column_name((enum region_column)i);

		if (!(out->columns & 1u << i))
			continue;
		out->sets[i] =
			H5Dcreate2(out->events, name, H5T_STD_I64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
		if (out->sets[i] < 0)
			return hdf5_failed("make the column", name, err);
	}
	return out->events < 0 ? -1 : 0;
}

static int create_file(struct region_h5_out *out, struct error *err)
{
	CLEANUP(hdf5_close) hid_t access = hdf5_access_list();
	CLEANUP(hdf5_close) hid_t type = hdf5_text_type();

	out->file = H5Fcreate(out->path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
	if (out->file < 0)
		return hdf5_failed("make", "the file", err);
	return h5_put_integer(out->file, "scope_profiler_schema", 2, err) < 0 ||
			       hdf5_put_text(out->file, type, "storage_layout", "columnar", err) < 0 ||
			       create_sets(out, err) < 0
		       ? -1
		       : 0;
}

int region_h5_create(const char *path, unsigned columns, struct region_h5_out **ret, struct error *err)
{
	struct region_h5_out *out = calloc(1, sizeof *out);
	int result;

	if (!out)
		return error_set(err, "out of memory");
	pthread_mutex_init(&out->lock, NULL);
	out->file = out->events = H5I_INVALID_HID;
	for (size_t i = 0; i < REGION_COLUMNS; i++)
		out->sets[i] = H5I_INVALID_HID;
	out->columns = columns | 1u << REGION_START | 1u << REGION_END;
	out->path = strdup(path);
	hdf5_lock();
	result = out->path ? create_file(out, err) : error_set(err, "out of memory");
	hdf5_unlock();
	if (result < 0)
		region_h5_abandon(out);
	else
		*ret = out;
	return result;
}

/* Bytes 0 of all numbers, then bytes 1, ...: times differ in their lowest bytes alone. */
static void shuffle(const int64_t *rows, unsigned char *out)
{
	for (size_t byte = 0; byte < sizeof *rows; byte++)
		for (size_t i = 0; i < REGION_H5_CHUNK; i++)
			out[byte * REGION_H5_CHUNK + i] = (unsigned char)((uint64_t)rows[i] >> (8 * byte));
}

static int write_packed(struct region_h5_out *out, enum region_column column, uint64_t index, const void *packed,
			size_t size, struct error *err)
{
	hsize_t offset = index * REGION_H5_CHUNK, end = offset + REGION_H5_CHUNK;

	if (end > out->extents[column]) {
		if (H5Dset_extent(out->sets[column], &end) < 0)
			return hdf5_failed("extend", region_column_name(column), err);
		out->extents[column] = end;
	}
	if (H5Dwrite_chunk(out->sets[column], H5P_DEFAULT, 0, &offset, size, packed) < 0)
		return hdf5_failed("write", region_column_name(column), err);
	return 0;
}

int region_h5_write(struct region_h5_out *out, enum region_column column, uint64_t index, const int64_t *rows,
		    struct error *err)
{
	struct press *press = take_press(out);
	size_t size;
	int result;

	if (!press)
		return error_set(err, "out of memory for compressing");
	shuffle(rows, press->shuffled);
	size = libdeflate_zlib_compress(press->compressor, press->shuffled, CHUNK_BYTES, press->packed, press->room);
	hdf5_lock();
	result = size ? write_packed(out, column, index, press->packed, size, err)
		      : error_set(err, "a chunk of %s cannot be compressed", region_column_name(column));
	hdf5_unlock();
	give_press(out, press);
	return result;
}

static int find_written(struct region_h5_out *out, uint64_t rows, struct region_stored *stored, struct error *err)
{
	hsize_t extent = rows;

	stored->piece_count = 1;
	for (size_t i = 0; i < REGION_COLUMNS; i++) {
		if (out->sets[i] < 0)
			continue;
		stored->pieces[i] = calloc(1, sizeof *stored->pieces[i]);
		if (!stored->pieces[i])
			return error_set(err, "out of memory");
		if (H5Dset_extent(out->sets[i], &extent) < 0)
			return hdf5_failed("extend", region_column_name((enum region_column)i), err);
	}
	if (H5Fflush(out->file, H5F_SCOPE_LOCAL) < 0)
		return hdf5_failed("write", "the columns", err);
	for (size_t i = 0; i < REGION_COLUMNS; i++)
		if (stored->pieces[i] && region_h5_piece(out->sets[i], rows, stored->pieces[i], err) < 0)
			return -1;
	return 0;
}

int region_h5_written(struct region_h5_out *out, uint64_t rows, struct region_stored *stored, struct error *err)
{
	int result;

	hdf5_lock();
	result = find_written(out, rows, stored, err);
	hdf5_unlock();
	return result;
}

int region_h5_finish(struct region_h5_out *out, const struct regions *regions, const struct region_summary *summaries,
		     struct error *err)
{
	int result;

	hdf5_lock();
	result = region_h5_put_index(out->file, regions, summaries, err);
	close_sets(out);
	if (H5Fclose(out->file) < 0 && result == 0)
		result = hdf5_failed("close", "the file", err);
	H5Eclear2(H5E_DEFAULT);
	hdf5_unlock();
	release(out);
	return result;
}
