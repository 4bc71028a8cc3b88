/* Reads calls. Chunks that are stored in a way that is known here (native int64, shuffled and deflated or not) are read
 * and inflated past the library, by as many threads as like; all else goes through H5Dread under its lock. */
#include <inttypes.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/region_hdf5.h"
#include "store/region_parts.h"

#define RAW_CHUNK_MIN 256u
#define RAW_CHUNK_MAX ((hsize_t)4 << 20)

struct region_h5_reader {
	struct region_h5 *h5;
	struct libdeflate_decompressor *inflater;
	unsigned char *stored, *plain; /* one chunk, as it is stored and inflated */
	size_t stored_room, plain_room;
};

static const char *const names[REGION_COLUMNS] = {
	"start_times", "end_times", "gpu_durations", "call_ids", "parent_ids", "thread_ids", "task_ids", "await_ns",
};

void region_h5_column_kind(struct h5_column *column, bool may_be_raw)
{
	CLEANUP(hdf5_close) hid_t list = H5Dget_create_plist(column->set);
	CLEANUP(hdf5_close) hid_t type = H5Dget_type(column->set);
	int count = list < 0 ? -1 : H5Pget_nfilters(list);

	column->chunk = 0;
	column->raw = column->shuffle = column->deflate = false;
	if (list < 0 || type < 0 || H5Pget_layout(list) != H5D_CHUNKED || H5Pget_chunk(list, 1, &column->chunk) != 1)
		return;
	column->raw = may_be_raw && H5Tequal(type, H5T_NATIVE_INT64) > 0 && count >= 0 && count <= 2 &&
		      column->chunk >= RAW_CHUNK_MIN && column->chunk <= RAW_CHUNK_MAX;
	for (int i = 0; i < count; i++) {
		unsigned flags, values[8];
		size_t value_count = 8;
		H5Z_filter_t filter = H5Pget_filter2(list, (unsigned)i, &flags, &value_count, values, 0, NULL, NULL);

		if (filter == H5Z_FILTER_SHUFFLE && i == 0)
			column->shuffle = true;
		else if (filter == H5Z_FILTER_DEFLATE && !column->deflate)
			column->deflate = true;
		else
			column->raw = false;
	}
}

int region_h5_reader_new(struct region_h5 *h5, struct region_h5_reader **ret, struct error *err)
{
	struct region_h5_reader *reader = calloc(1, sizeof *reader);

	if (!reader)
		return error_set(err, "out of memory");
	reader->h5 = h5;
	reader->inflater = libdeflate_alloc_decompressor();
	if (!reader->inflater) {
		free(reader);
		return error_set(err, "out of memory");
	}
	*ret = reader;
	return 0;
}

void region_h5_reader_free(struct region_h5_reader *reader)
{
	if (!reader)
		return;
	libdeflate_free_decompressor(reader->inflater);
	free(reader->stored);
	free(reader->plain);
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

/* Rows of a data set, through the library. Its lock is held. */
static int read_locked(hid_t set, const char *name, hsize_t first, hsize_t count, int64_t *out, struct error *err)
{
	CLEANUP(hdf5_close) hid_t in_memory = H5Screate_simple(1, &count, NULL);
	CLEANUP(hdf5_close) hid_t in_file = H5Dget_space(set);

	if (H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &first, NULL, &count, NULL) < 0 ||
	    H5Dread(set, H5T_NATIVE_INT64, in_memory, in_file, H5P_DEFAULT, out) < 0)
		return hdf5_failed("read", name, err);
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

/* Where a chunk lies: 1 and *at, *size, or 0 where only the library can read it. */
static int find_chunk(const struct h5_column *column, hsize_t index, uint64_t file_size, haddr_t *at, hsize_t *size)
{
	hsize_t offset = index * column->chunk;
	unsigned skipped = 0;
	herr_t got;

	hdf5_lock();
	got = H5Dget_chunk_info_by_coord(column->set, &offset, &skipped, at, size);
	if (got < 0)
		H5Eclear2(H5E_DEFAULT);
	hdf5_unlock();
	/* What deflate could not make smaller is at most some thousandths larger. */
	return got >= 0 && *at != HADDR_UNDEF && skipped == 0 && *at <= file_size && *size <= file_size - *at &&
	       *size <= column->chunk * 9;
}

static int read_stored(struct region_h5_reader *reader, haddr_t at, size_t size, struct error *err)
{
	if (make_room(&reader->stored, &reader->stored_room, size, err) < 0)
		return -1;
	for (size_t done = 0; done < size;) {
		ssize_t got = pread(reader->h5->fd, reader->stored + done, size - done, (off_t)(at + done));

		if (got <= 0)
			return error_set(err, "it is cut short: %zu bytes at %" PRIu64 " cannot be read", size,
					 (uint64_t)at);
		done += (size_t)got;
	}
	return 0;
}

/* Rows [first, first + count) of one chunk, numbered within it. 0: not in this way. */
static int read_raw(struct region_h5_reader *reader, enum region_column c, hsize_t index, size_t first, size_t count,
		    int64_t *out, struct error *err)
{
	const struct h5_column *column = &reader->h5->columns[c];
	size_t bytes = column->chunk * sizeof *out;
	const unsigned char *plain;
	haddr_t at = HADDR_UNDEF;
	hsize_t size = 0;

	if (!column->raw || !find_chunk(column, index, reader->h5->file_size, &at, &size))
		return 0;
	if (read_stored(reader, at, size, err) < 0)
		return -1;
	plain = reader->stored;
	if (column->deflate) {
		if (make_room(&reader->plain, &reader->plain_room, bytes, err) < 0)
			return -1;
		if (libdeflate_zlib_decompress(reader->inflater, reader->stored, size, reader->plain, bytes, NULL) !=
		    LIBDEFLATE_SUCCESS)
			return error_set(err, "chunk %" PRIu64 " of %s is damaged", (uint64_t)index, names[c]);
		plain = reader->plain;
	} else if (size != bytes) {
		return error_set(err, "chunk %" PRIu64 " of %s is damaged", (uint64_t)index, names[c]);
	}
	if (column->shuffle)
		unshuffle(plain, column->chunk, first, count, out);
	else
		memcpy(out, plain + first * sizeof *out, count * sizeof *out);
	return 1;
}

/* Rows of a column as they stand in the file. */
static int read_column(struct region_h5_reader *reader, enum region_column c, uint64_t first, uint64_t count,
		       int64_t *out, struct error *err)
{
	const struct h5_column *column = &reader->h5->columns[c];

	while (count) {
		uint64_t step = count, within = column->chunk ? first % column->chunk : 0;
		int done = 0;

		if (column->raw) {
			step = column->chunk - within < count ? column->chunk - within : count;
			done = read_raw(reader, c, first / column->chunk, within, step, out, err);
		}
		if (done == 0) {
			hdf5_lock();
			done = read_locked(column->set, names[c], first, step, out, err);
			hdf5_unlock();
		}
		if (done < 0)
			return -1;
		first += step;
		count -= step;
		out += step;
	}
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

	if (h5->open_part != index) {
		close_part(h5);
		h5->open_part = index;
	}
	if (h5->open_sets[c] < 0) {
		CLEANUP(free_cleanup) char *path = region_h5_old_path(h5->regions, part);
		/* All links were looked at when the file was opened. */
		CLEANUP(hdf5_close) hid_t group = path ? H5Gopen2(h5->file, path, H5P_DEFAULT) : H5I_INVALID_HID;

		if (c != REGION_GPU || H5Lexists(group, names[c], H5P_DEFAULT) > 0) {
			h5->open_sets[c] = H5Dopen2(group, names[c], H5P_DEFAULT);
			if (h5->open_sets[c] < 0)
				return hdf5_failed("open", names[c], err);
		}
	}
	if (h5->open_sets[c] >= 0)
		return read_locked(h5->open_sets[c], names[c], first - part->first, count, out, err);
	for (uint64_t i = 0; i < count; i++) /* gpu_durations, which other regions have */
		out[i] = REGIONS_UNKNOWN;
	return 0;
}

static int read_old(struct region_h5 *h5, enum region_column c, uint64_t first, uint64_t count, int64_t *out,
		    struct error *err)
{
	int result = 0;

	hdf5_lock();
	for (size_t index = region_part_at(h5->regions, first); count && result == 0; index++) {
		const struct region_part *part = &h5->regions->parts[index];
		uint64_t left = part->first + part->count - first, step = left < count ? left : count;

		if (!part->count)
			continue;
		result = read_part(h5, c, index, first, step, out, err);
		first += step;
		count -= step;
		out += step;
	}
	hdf5_unlock();
	return result;
}

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

/* Layout 3: the start before each window, so that one can begin in the middle. */
static int find_carry(struct region_h5_reader *reader, int64_t *rows, struct error *err)
{
	struct region_h5 *h5 = reader->h5;
	uint64_t all = h5->regions->call_count, windows = all / h5->window + 1;
	int64_t *carry = calloc(windows, sizeof *carry), start = 0;

	if (!carry)
		return error_set(err, "out of memory for %" PRIu64 " calls", all);
	for (uint64_t i = 0; i < windows; i++) {
		uint64_t first = i * h5->window, left = all - first;
		uint64_t count = left < h5->window ? left : h5->window;

		carry[i] = start;
		if (read_column(reader, REGION_START, first, count, rows, err) < 0) {
			free(carry);
			return -1;
		}
		start = add_up(h5->regions, first, count, start, rows);
	}
	h5->carry = carry;
	return 0;
}

/* Starts, or ends, of rows that lie in one window. */
static int read_window(struct region_h5_reader *reader, enum region_column c, uint64_t first, uint64_t count,
		       int64_t *rows, int64_t *out, struct error *err)
{
	struct region_h5 *h5 = reader->h5;
	uint64_t window = first / h5->window, begin = window * h5->window, skip = first - begin;

	if (read_column(reader, REGION_START, begin, skip + count, rows, err) < 0)
		return -1;
	add_up(h5->regions, begin, skip + count, h5->carry[window], rows);
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

static int read_deltas(struct region_h5_reader *reader, enum region_column c, uint64_t first, uint64_t count,
		       int64_t *out, struct error *err)
{
	uint64_t window = reader->h5->window;
	CLEANUP(free_cleanup) int64_t *rows = malloc(window * sizeof *rows);

	if (!rows)
		return error_set(err, "out of memory for %" PRIu64 " calls", window);
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

static pthread_mutex_t carry_lock = PTHREAD_MUTEX_INITIALIZER;

static int need_carry(struct region_h5_reader *reader, struct error *err)
{
	CLEANUP(free_cleanup) int64_t *rows = NULL;
	int result = 0;

	pthread_mutex_lock(&carry_lock);
	if (!reader->h5->carry) {
		rows = malloc(reader->h5->window * sizeof *rows);
		result = rows ? find_carry(reader, rows, err) : error_set(err, "out of memory");
	}
	pthread_mutex_unlock(&carry_lock);
	return result;
}

int region_h5_read(struct region_h5_reader *reader, enum region_column column, uint64_t first, uint64_t count,
		   int64_t *out, struct error *err)
{
	struct region_h5 *h5 = reader->h5;

	if (h5->layout == 1)
		return read_old(h5, column, first, count, out, err);
	if (!h5->deltas || column > REGION_END)
		return read_column(reader, column, first, count, out, err);
	return need_carry(reader, err) < 0 ? -1 : read_deltas(reader, column, first, count, out, err);
}
