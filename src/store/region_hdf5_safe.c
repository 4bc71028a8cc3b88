/* Opening and reading what a file holds, believing nothing: links that lead elsewhere are refused, data of other files
 * is not read, types and sizes are looked at before memory is asked for. Knows nothing of regions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "store/region_hdf5.h"

#define TEXT_MAX ((size_t)1 << 20)    /* bytes of one text of fixed length, and of one attribute */
#define TEXTS_AT_ONCE 1024u
#define FIXED_AT_ONCE ((size_t)4 << 20) /* bytes */
#define ELEMENTS_MAX 64               /* of an attribute that is an array */
#define RATIO_MAX 100000u
#define CHUNK_INDEX_MIN 4u /* bytes */

int h5_has(hid_t at, const char *path, struct error *err)
{
	CLEANUP(free_cleanup) char *part = strdup(path);
	char *slash = part;

	if (!part)
		return error_set(err, "out of memory");
	while (slash) {
		H5L_info_t info;
		char cut;

		slash += strspn(slash, "/");
		slash += strcspn(slash, "/");
		cut = *slash;
		*slash = '\0';
		if (H5Lexists(at, part, H5P_DEFAULT) <= 0) {
			H5Eclear2(H5E_DEFAULT);
			return 0;
		}
		if (H5Lget_info(at, part, &info, H5P_DEFAULT) < 0)
			return hdf5_failed("look at", part, err);
		if (info.type != H5L_TYPE_HARD)
			return error_set(err, "%.200s is a link to elsewhere, which is not followed", part);
		*slash = cut;
		if (!cut)
			slash = NULL;
	}
	return 1;
}

static int require(hid_t at, const char *path, struct error *err)
{
	int has = h5_has(at, path, err);

	if (has == 0)
		return error_set(err, "it has no %.200s", path);
	return has;
}

hid_t h5_open_group(hid_t at, const char *path, struct error *err)
{
	hid_t group;

	if (require(at, path, err) < 0)
		return H5I_INVALID_HID;
	group = H5Gopen2(at, path, H5P_DEFAULT);
	if (group < 0)
		hdf5_failed("open the group", path, err);
	return group;
}

/* Data that lies in other files is not read; what HDF5 says of a missing filter is of folders that it looked in. */
static int look_at_storage(hid_t set, const char *path, struct error *err)
{
	CLEANUP(hdf5_close) hid_t list = H5Dget_create_plist(set);

	if (list < 0)
		return hdf5_failed("look at", path, err);
	if (H5Pget_layout(list) == H5D_VIRTUAL || H5Pget_external_count(list) > 0)
		return error_set(err, "%.200s lies in another file, which is not read", path);
	for (int i = 0, count = H5Pget_nfilters(list); i < count; i++) {
		unsigned flags;
		size_t values = 0;
		H5Z_filter_t filter = H5Pget_filter2(list, (unsigned)i, &flags, &values, NULL, 0, NULL, NULL);

		if (filter >= 0 && H5Zfilter_avail(filter) <= 0) {
			H5Eclear2(H5E_DEFAULT);
			return error_set(err, "%.200s is stored with the HDF5 filter %d, which is not installed", path,
					 (int)filter);
		}
	}
	return 0;
}

static int look_at_rows(hid_t set, const char *path, hsize_t *rows, struct error *err)
{
	CLEANUP(hdf5_close) hid_t space = H5Dget_space(set);
	hsize_t length;

	if (space < 0)
		return hdf5_failed("look at", path, err);
	if (H5Sget_simple_extent_type(space) != H5S_SIMPLE || H5Sget_simple_extent_ndims(space) != 1)
		return error_set(err, "%.200s is no column: it has not one dimension", path);
	if (H5Sget_simple_extent_dims(space, &length, NULL) < 0)
		return hdf5_failed("look at", path, err);
	if (rows && *rows && length != *rows)
		return error_set(err, "%.200s has %" PRIu64 " rows where %" PRIu64 " are expected", path,
				 (uint64_t)length, (uint64_t)*rows);
	if (rows)
		*rows = length;
	return 0;
}

hid_t h5_open_set(hid_t at, const char *path, hsize_t *rows, struct error *err)
{
	hid_t set;

	if (require(at, path, err) < 0)
		return H5I_INVALID_HID;
	set = H5Dopen2(at, path, H5P_DEFAULT);
	if (set < 0) {
		hdf5_failed("open", path, err);
		return set;
	}
	if (look_at_storage(set, path, err) < 0 || look_at_rows(set, path, rows, err) < 0)
		hdf5_close(&set);
	return set;
}

/* How many chunks so many rows have; 0 where they are not in chunks. */
static hsize_t chunks_of(hid_t set, hsize_t rows)
{
	CLEANUP(hdf5_close) hid_t list = H5Dget_create_plist(set);
	hsize_t chunk = 0;

	if (list < 0 || H5Pget_layout(list) != H5D_CHUNKED || H5Pget_chunk(list, 1, &chunk) != 1 || chunk == 0)
		return 0;
	return rows / chunk;
}

int h5_plausible(hid_t set, const char *path, hsize_t rows, struct error *err)
{
	CLEANUP(hdf5_close) hid_t type = H5Dget_type(set);
	CLEANUP(hdf5_close) hid_t file = H5Iget_file_id(set);
	hsize_t stored = H5Dget_storage_size(set), file_size = 0;
	size_t size = type < 0 ? 0 : H5Tget_size(type);

	if (size == 0 || file < 0 || H5Fget_filesize(file, &file_size) < 0)
		return hdf5_failed("look at", path, err);
	/* A chunk that is there takes some bytes in an index: of those that are not, a file could have any number. */
	if (rows / RATIO_MAX > stored / size || chunks_of(set, rows) > file_size / CHUNK_INDEX_MIN)
		return error_set(err, "%.200s says that it has %" PRIu64 " rows, and holds %" PRIu64 " bytes", path,
				 (uint64_t)rows, (uint64_t)stored);
	return 0;
}

static int is_number(hid_t type)
{
	H5T_class_t class = H5Tget_class(type);

	return (class == H5T_INTEGER || class == H5T_FLOAT || class == H5T_ENUM) && H5Tget_size(type) <= 16;
}

int h5_read_numbers(hid_t at, const char *path, hsize_t rows, hid_t type, void *out, struct error *err)
{
	hsize_t there = 0;
	CLEANUP(hdf5_close) hid_t set = h5_open_set(at, path, &there, err);
	CLEANUP(hdf5_close) hid_t in_file = set < 0 ? H5I_INVALID_HID : H5Dget_type(set);

	if (set < 0)
		return -1;
	if (there != rows)
		return error_set(err, "%.200s has %" PRIu64 " rows where %" PRIu64 " are expected", path,
				 (uint64_t)there, (uint64_t)rows);
	if (in_file < 0 || !is_number(in_file) ||
	    (H5Tget_class(type) == H5T_INTEGER && H5Tget_class(in_file) == H5T_FLOAT))
		return error_set(err, "%.200s holds no %s", path,
				 H5Tget_class(type) == H5T_INTEGER ? "whole numbers" : "numbers");
	if (rows && H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) < 0)
		return hdf5_failed("read", path, err);
	return 0;
}

/* A text of `length` bytes at most as valid UTF-8; owned. */
static char *clean_text(const char *text, size_t length)
{
	struct buf clean;

	buf_init(&clean);
	utf8_append_clean(&clean, text, strnlen(text, length));
	return buf_detach(&clean);
}

char *h5_clean_name(const char *name)
{
	return clean_text(name, strlen(name));
}

static int take_text(const char *text, size_t length, uint64_t *budget, char **ret, struct error *err)
{
	length = text ? strnlen(text, length) : 0;
	if (length > *budget)
		return error_set(err, "its texts take more memory than is reasonable");
	*budget -= length;
	*ret = text ? clean_text(text, length) : strdup("");
	return *ret ? 0 : error_set(err, "out of memory for a text of %zu bytes", length);
}

/* The end of a text of fixed length. */
static size_t fixed_length(hid_t type, const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	while (H5Tget_strpad(type) == H5T_STR_SPACEPAD && length && text[length - 1] == ' ')
		length--;
	return length;
}

struct texts {
	hid_t set, type;
	bool variable;
	size_t size; /* bytes of a row in memory */
	const char *path;
	char *rows;
};

static int give_texts(const struct texts *t, hsize_t first, hsize_t count, uint64_t *budget,
		      int (*text)(void *context, hsize_t row, char *text, struct error *err), void *context,
		      struct error *err)
{
	CLEANUP(hdf5_close) hid_t in_memory = H5Screate_simple(1, &count, NULL);
	CLEANUP(hdf5_close) hid_t in_file = H5Dget_space(t->set);
	int result = 0;

	if (H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &first, NULL, &count, NULL) < 0 ||
	    H5Dread(t->set, t->type, in_memory, in_file, H5P_DEFAULT, t->rows) < 0)
		return hdf5_failed("read", t->path, err);
	for (hsize_t i = 0; i < count && result == 0; i++) {
		const char *row = t->rows + i * t->size, *start = row;
		size_t length = TEXT_MAX;
		char *own;

		if (t->variable)
			memcpy(&start, row, sizeof start);
		else
			length = fixed_length(t->type, row, t->size);
		result = take_text(start, length, budget, &own, err);
		if (result == 0)
			result = text(context, first + i, own, err);
	}
	if (t->variable)
		H5Dvlen_reclaim(t->type, in_memory, H5P_DEFAULT, t->rows);
	return result;
}

int h5_read_texts(hid_t at, const char *path, hsize_t rows, uint64_t *budget,
		  int (*text)(void *context, hsize_t row, char *text, struct error *err), void *context,
		  struct error *err)
{
	hsize_t there = 0, at_once = TEXTS_AT_ONCE;
	CLEANUP(hdf5_close) hid_t set = h5_open_set(at, path, &there, err);
	CLEANUP(hdf5_close) hid_t type = set < 0 ? H5I_INVALID_HID : H5Dget_type(set);
	CLEANUP(free_cleanup) char *memory = NULL;
	struct texts t = {.set = set, .type = type, .path = path};

	if (set < 0)
		return -1;
	if (there != rows)
		return error_set(err, "%.200s has %" PRIu64 " rows where %" PRIu64 " are expected", path,
				 (uint64_t)there, (uint64_t)rows);
	if (type < 0 || H5Tget_class(type) != H5T_STRING)
		return error_set(err, "%.200s holds no texts", path);
	t.variable = H5Tis_variable_str(type) > 0;
	t.size = t.variable ? sizeof(char *) : H5Tget_size(type);
	if (t.size > TEXT_MAX)
		return error_set(err, "%.200s holds texts of %zu bytes", path, t.size);
	if (at_once > FIXED_AT_ONCE / t.size)
		at_once = FIXED_AT_ONCE / t.size;
	t.rows = memory = calloc(at_once, t.size);
	if (!memory)
		return error_set(err, "out of memory for %.200s", path);
	for (hsize_t first = 0; first < rows; first += at_once)
		if (give_texts(&t, first, rows - first < at_once ? rows - first : at_once, budget, text, context,
			       err) < 0)
			return -1;
	return 0;
}

int h5_attribute_integer(hid_t at, const char *name, int64_t *ret, struct error *err)
{
	htri_t there = H5Aexists(at, name);
	CLEANUP(hdf5_close) hid_t attribute = there > 0 ? H5Aopen(at, name, H5P_DEFAULT) : H5I_INVALID_HID;
	CLEANUP(hdf5_close) hid_t type = attribute < 0 ? H5I_INVALID_HID : H5Aget_type(attribute);
	CLEANUP(hdf5_close) hid_t space = attribute < 0 ? H5I_INVALID_HID : H5Aget_space(attribute);

	if (there == 0)
		return 0;
	if (attribute < 0 || type < 0 || space < 0)
		return hdf5_failed("read the attribute", name, err);
	if (H5Tget_class(type) != H5T_INTEGER || H5Sget_simple_extent_npoints(space) != 1)
		return error_set(err, "its attribute %s is no whole number", name);
	if (H5Aread(attribute, H5T_NATIVE_INT64, ret) < 0)
		return hdf5_failed("read the attribute", name, err);
	return 1;
}

/* Numbers of an attribute, "1, 2.5". */
static int numbers_text(hid_t attribute, hid_t type, size_t count, char **ret)
{
	bool whole = H5Tget_class(type) != H5T_FLOAT;
	int64_t integers[ELEMENTS_MAX] = {0};
	double reals[ELEMENTS_MAX] = {0};
	struct buf text;

	if (H5Aread(attribute, whole ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE, whole ? (void *)integers : reals) < 0)
		return -1;
	buf_init(&text);
	for (size_t i = 0; i < count; i++) {
		buf_puts(&text, i ? ", " : "");
		if (whole)
			buf_printf(&text, "%" PRId64, integers[i]);
		else
			buf_printf(&text, "%.17g", reals[i]);
	}
	*ret = buf_detach(&text);
	return *ret ? 1 : -1;
}

static int string_text(hid_t attribute, hid_t type, char **ret)
{
	CLEANUP(hdf5_close) hid_t space = H5Screate(H5S_SCALAR);
	CLEANUP(free_cleanup) char *fixed = NULL;
	char *variable = NULL;

	if (H5Tis_variable_str(type) > 0) {
		if (H5Aread(attribute, type, &variable) < 0)
			return -1;
		*ret = variable ? clean_text(variable, TEXT_MAX) : strdup("");
		H5Dvlen_reclaim(type, space, H5P_DEFAULT, &variable);
	} else {
		size_t size = H5Tget_size(type);

		fixed = calloc(1, size + 1);
		if (!fixed || H5Aread(attribute, type, fixed) < 0)
			return -1;
		*ret = clean_text(fixed, fixed_length(type, fixed, size));
	}
	return *ret ? 1 : -1;
}

int h5_attribute_text(hid_t at, const char *name, char **ret, struct error *err)
{
	htri_t there = H5Aexists(at, name);
	CLEANUP(hdf5_close) hid_t attribute = there > 0 ? H5Aopen(at, name, H5P_DEFAULT) : H5I_INVALID_HID;
	CLEANUP(hdf5_close) hid_t type = attribute < 0 ? H5I_INVALID_HID : H5Aget_type(attribute);
	CLEANUP(hdf5_close) hid_t space = attribute < 0 ? H5I_INVALID_HID : H5Aget_space(attribute);
	hssize_t count;
	int result;

	if (there == 0)
		return 0;
	if (attribute < 0 || type < 0 || space < 0)
		return hdf5_failed("read the attribute", name, err);
	count = H5Sget_simple_extent_npoints(space);
	if (count < 1 || count > ELEMENTS_MAX || H5Aget_storage_size(attribute) > TEXT_MAX)
		return 0;
	if (H5Tget_class(type) == H5T_STRING && count == 1)
		result = string_text(attribute, type, ret);
	else if (is_number(type))
		result = numbers_text(attribute, type, (size_t)count, ret);
	else
		return 0;
	return result < 0 ? hdf5_failed("read the attribute", name, err) : result;
}

int h5_whole_numbers(hid_t set, const char *path, struct error *err)
{
	CLEANUP(hdf5_close) hid_t type = H5Dget_type(set);

	if (type < 0 || H5Tget_class(type) != H5T_INTEGER || H5Tget_size(type) > 8)
		return error_set(err, "%.200s holds no whole numbers", path);
	return 0;
}
