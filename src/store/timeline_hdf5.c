/* The plug-in that writes timeline.h5: everything that knows HDF5, and nothing that knows segments. It is loaded with
 * RTLD_LOCAL and never unloaded; HDF5's own printing, its atexit handler and its aborting version check are turned off.
 *
 * Memory grows with the number of series, not of points: each buffers up to one chunk, all together BUFFERED_MAX bytes
 * or BUFFERED_EACH for each, and data sets are open only while they are written to. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/hdf5_common.h"
#include "store/timeline_plugin.h"

#define CHUNK 1024u /* points */
#define ROOM_MIN 32u
#define POINT_BYTES (sizeof(int64_t) + sizeof(double))
#define BUFFERED_MAX ((size_t)6 << 20)  /* bytes in all series' buffers, or else ... */
#define BUFFERED_EACH ((size_t)1 << 10) /* ... this for each: thousands would else be written point by point */
#define DEFLATE_LEVEL 1

struct series {
	char *name;
	int64_t *t;
	double *v;
	uint32_t count, room; /* of the buffers, in points; room 0: none */
	uint64_t written;
	bool made; /* the two data sets exist */
};

struct timeline_h5 {
	hid_t file, group, text_type;
	struct series *series;
	size_t count, room;
	size_t buffered; /* bytes of all buffers */
};

static void free_series(struct timeline_h5 *h5, struct series *s)
{
	h5->buffered -= s->room * POINT_BYTES;
	free(s->t);
	free(s->v);
	s->t = NULL;
	s->v = NULL;
	s->count = s->room = 0;
}

static void release(struct timeline_h5 *h5)
{
	for (size_t i = 0; i < h5->count; i++) {
		free_series(h5, &h5->series[i]);
		free(h5->series[i].name);
	}
	free(h5->series);
	free(h5);
}

static void abandon(struct timeline_h5 *h5)
{
	if (!h5)
		return;
	hdf5_close(&h5->text_type);
	hdf5_close(&h5->group);
	if (h5->file >= 0)
		H5Fclose(h5->file);
	H5Eclear2(H5E_DEFAULT);
	release(h5);
}

static void abandon_cleanup(struct timeline_h5 **h5)
{
	abandon(*h5);
}

static int create(const char *path, struct timeline_h5 **ret, struct error *err)
{
	CLEANUP(abandon_cleanup) struct timeline_h5 *h5 = calloc(1, sizeof *h5);
	CLEANUP(hdf5_close) hid_t list = hdf5_access_list();

	if (!h5)
		return error_set(err, "out of memory");
	h5->file = h5->group = H5I_INVALID_HID;
	h5->text_type = H5Tcopy(H5T_C_S1);
	/* Of variable length, since readers such as h5py give those, and only those, as text. */
	if (list < 0 || h5->text_type < 0 || H5Tset_size(h5->text_type, H5T_VARIABLE) < 0 ||
	    H5Tset_cset(h5->text_type, H5T_CSET_UTF8) < 0)
		return hdf5_failed("prepare", "the file", err);
	h5->file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
	if (h5->file < 0)
		return hdf5_failed("make", "the file", err);
	h5->group = H5Gcreate2(h5->file, "series", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	if (h5->group < 0)
		return hdf5_failed("make", "the group of all series", err);
	*ret = h5;
	h5 = NULL;
	return 0;
}

static int put_attribute(hid_t at, const char *name, hid_t file_type, hid_t type, const void *value, struct error *err)
{
	CLEANUP(hdf5_close) hid_t space = H5Screate(H5S_SCALAR);
	CLEANUP(hdf5_close) hid_t attribute = H5Acreate2(at, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT);

	if (attribute < 0 || H5Awrite(attribute, type, value) < 0)
		return hdf5_failed("write the attribute", name, err);
	return 0;
}

static int put_text_at(struct timeline_h5 *h5, hid_t at, const char *name, const char *value, struct error *err)
{
	return put_attribute(at, name, h5->text_type, h5->text_type, &value, err);
}

static int put_text(struct timeline_h5 *h5, const char *name, const char *value, struct error *err)
{
	return put_text_at(h5, h5->file, name, value, err);
}

static int put_integer(struct timeline_h5 *h5, const char *name, int64_t value, struct error *err)
{
	return put_attribute(h5->file, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value, err);
}

/* The name, or NAME#ID where an earlier series has it: process ids come back. Owned; NULL when out of memory. */
static char *free_name(const struct timeline_h5 *h5, const char *name)
{
	char *other;

	if (H5Lexists(h5->group, name, H5P_DEFAULT) <= 0)
		return strdup(name);
	return asprintf(&other, "%s#%zu", name, h5->count) < 0 ? NULL : other;
}

static int define(struct timeline_h5 *h5, const struct timeline_h5_series *series, struct error *err)
{
	CLEANUP(hdf5_close) hid_t group = H5I_INVALID_HID;
	CLEANUP(free_cleanup) char *name = NULL;

	if (h5->count == h5->room) {
		size_t room = h5->room ? 2 * h5->room : 64;
		struct series *more = reallocarray(h5->series, room, sizeof *more);

		if (!more)
			return error_set(err, "out of memory for %zu series", room);
		h5->series = more;
		h5->room = room;
	}
	name = free_name(h5, series->name);
	if (!name)
		return error_set(err, "out of memory for the series %s", series->name);
	group = H5Gcreate2(h5->group, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	if (group < 0)
		return hdf5_failed("make the series", name, err);
	if (put_text_at(h5, group, "unit", series->unit, err) < 0 ||
	    put_text_at(h5, group, "source", series->source, err) < 0 ||
	    put_text_at(h5, group, "scope", series->scope, err) < 0 ||
	    put_text_at(h5, group, "kind", series->kind, err) < 0)
		return -1;
	h5->series[h5->count++] = (struct series){.name = name};
	name = NULL;
	return 0;
}

/* The creation properties of a data set. One that holds all its points is stored in one piece, because the index of
 * chunks would be larger than a short series; else it grows by compressed chunks. */
static hid_t creation_list(bool whole)
{
	hid_t list = H5Pcreate(H5P_DATASET_CREATE);
	hsize_t chunk = CHUNK;

	if (list < 0)
		return list;
	if (H5Pset_obj_track_times(list, false) < 0 ||
	    (!whole && (H5Pset_chunk(list, 1, &chunk) < 0 || H5Pset_shuffle(list) < 0 ||
			H5Pset_deflate(list, DEFLATE_LEVEL) < 0))) {
		H5Pclose(list);
		return H5I_INVALID_HID;
	}
	return list;
}

/* Opens or makes the data set and extends it to `end` points. */
static hid_t open_column(const struct series *s, hid_t group, const char *name, hid_t file_type, hsize_t end,
			 bool whole)
{
	CLEANUP(hdf5_close) hid_t list = H5I_INVALID_HID;
	CLEANUP(hdf5_close) hid_t space = H5I_INVALID_HID;
	hsize_t unlimited = H5S_UNLIMITED;
	hid_t set;

	if (s->made) {
		set = H5Dopen2(group, name, H5P_DEFAULT);
		if (set >= 0 && H5Dset_extent(set, &end) < 0) {
			H5Dclose(set);
			return H5I_INVALID_HID;
		}
		return set;
	}
	list = creation_list(whole);
	space = H5Screate_simple(1, &end, whole ? NULL : &unlimited);
	return H5Dcreate2(group, name, file_type, space, H5P_DEFAULT, list, H5P_DEFAULT);
}

static bool write_column(const struct series *s, hid_t group, const char *name, hid_t file_type, hid_t type,
			 const void *values, bool whole)
{
	hsize_t begin = s->written, length = s->count, end = begin + length;
	hid_t set = open_column(s, group, name, file_type, end, whole);
	bool good = set >= 0;

	if (good && length > 0) {
		CLEANUP(hdf5_close) hid_t in_memory = H5Screate_simple(1, &length, NULL);
		CLEANUP(hdf5_close) hid_t in_file = H5Dget_space(set);

		good = H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &begin, NULL, &length, NULL) >= 0 &&
		       H5Dwrite(set, type, in_memory, in_file, H5P_DEFAULT, values) >= 0;
	}
	/* Closing writes the last chunk, and so may be what fails. */
	return set >= 0 && H5Dclose(set) >= 0 && good;
}

/* Writes the buffer, which stays. `last`: no point comes after it. */
static int flush(struct timeline_h5 *h5, struct series *s, bool last, struct error *err)
{
	CLEANUP(hdf5_close) hid_t group = H5I_INVALID_HID;
	bool whole = last && !s->made;

	if (s->count == 0 && s->made)
		return 0;
	/* What could not be read is absent: a series without a point would look like one. */
	if (s->count == 0 && last)
		return H5Ldelete(h5->group, s->name, H5P_DEFAULT) < 0 ? hdf5_failed("drop the series", s->name, err)
								      : 0;
	group = H5Gopen2(h5->group, s->name, H5P_DEFAULT);
	if (group < 0 || !write_column(s, group, "t", H5T_STD_I64LE, H5T_NATIVE_INT64, s->t, whole) ||
	    !write_column(s, group, "v", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, s->v, whole))
		return hdf5_failed("write the series", s->name, err);
	s->made = true;
	s->written += s->count;
	s->count = 0;
	return 0;
}

/* Writes and frees all buffers of average size and above: one pass over thousands of series frees much at once. */
static int make_space(struct timeline_h5 *h5, struct error *err)
{
	size_t average = h5->buffered / h5->count;

	for (size_t i = 0; i < h5->count; i++) {
		struct series *s = &h5->series[i];

		if (s->room == 0 || s->room * POINT_BYTES < average)
			continue;
		if (s->count > 0 && flush(h5, s, false, err) < 0)
			return -1;
		free_series(h5, s);
	}
	return 0;
}

static int grow(struct timeline_h5 *h5, struct series *s, struct error *err)
{
	uint32_t room = s->room ? 2 * s->room : ROOM_MIN;
	int64_t *t;
	double *v;

	t = reallocarray(s->t, room, sizeof *t);
	if (t)
		s->t = t;
	v = reallocarray(s->v, room, sizeof *v);
	if (v)
		s->v = v;
	if (!t || !v)
		return error_set(err, "out of memory for the series %s", s->name);
	h5->buffered += (room - s->room) * POINT_BYTES;
	s->room = room;
	return 0;
}

static int append(struct timeline_h5 *h5, uint32_t id, int64_t t, double value, struct error *err)
{
	struct series *s = &h5->series[id];

	if (s->count == s->room) {
		bool full = h5->buffered >= BUFFERED_MAX && h5->buffered / BUFFERED_EACH >= h5->count;

		if (full && make_space(h5, err) < 0)
			return -1;
		if (s->count == s->room && grow(h5, s, err) < 0)
			return -1;
	}
	s->t[s->count] = t;
	s->v[s->count++] = value;
	/* Up to the end of the chunk on file: a chunk that is written in two parts is compressed twice. */
	return s->count == CHUNK - s->written % CHUNK ? flush(h5, s, false, err) : 0;
}

static int end_series(struct timeline_h5 *h5, uint32_t id, struct error *err)
{
	struct series *s = &h5->series[id];

	if (flush(h5, s, true, err) < 0)
		return -1;
	free_series(h5, s);
	return 0;
}

static int finish(struct timeline_h5 *h5, struct error *err)
{
	int result = 0;

	hdf5_close(&h5->text_type);
	hdf5_close(&h5->group);
	if (H5Fclose(h5->file) < 0)
		result = hdf5_failed("close", "the file", err);
	release(h5);
	return result;
}

extern const struct timeline_plugin assay_timeline_plugin;

__attribute__((visibility("default"))) const struct timeline_plugin assay_timeline_plugin = {
	.version = TIMELINE_PLUGIN_VERSION,
	.start = hdf5_start,
	.create = create,
	.put_text = put_text,
	.put_integer = put_integer,
	.define = define,
	.append = append,
	.end_series = end_series,
	.finish = finish,
	.abandon = abandon,
};
