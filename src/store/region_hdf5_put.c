#include "store/region_hdf5_put.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#define COMPRESS_MIN 4096u /* rows */
#define CHUNK_MAX 65536u
#define DEFLATE_LEVEL 1
#define TEXTS_AT_ONCE 1024u
#define ATTRIBUTE_MAX 60000u /* bytes; the format holds 64 KiB */

hid_t h5_put_group(hid_t at, const char *name, struct error *err)
{
	hid_t group = H5Gcreate2(at, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

	if (group < 0)
		hdf5_failed("make the group", name, err);
	return group;
}

hid_t h5_put_chunks(hsize_t rows)
{
	hid_t list = H5Pcreate(H5P_DATASET_CREATE);

	if (list >= 0 && (H5Pset_obj_track_times(list, false) < 0 || H5Pset_chunk(list, 1, &rows) < 0 ||
			  H5Pset_shuffle(list) < 0 || H5Pset_deflate(list, DEFLATE_LEVEL) < 0))
		hdf5_close(&list);
	return list;
}

static hid_t whole_list(void)
{
	hid_t list = H5Pcreate(H5P_DATASET_CREATE);

	if (list >= 0 && H5Pset_obj_track_times(list, false) < 0)
		hdf5_close(&list);
	return list;
}

int h5_put_column(hid_t at, const char *name, hid_t file_type, hid_t type, hsize_t rows, const void *values,
		  struct error *err)
{
	CLEANUP(hdf5_close) hid_t list =
		rows < COMPRESS_MIN ? whole_list() : h5_put_chunks(rows < CHUNK_MAX ? rows : CHUNK_MAX);
	CLEANUP(hdf5_close) hid_t space = H5Screate_simple(1, &rows, NULL);
	CLEANUP(hdf5_close) hid_t set = H5Dcreate2(at, name, file_type, space, H5P_DEFAULT, list, H5P_DEFAULT);

	if (set < 0 || (rows && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0))
		return hdf5_failed("write", name, err);
	return 0;
}

/* A text that is valid, or a valid copy of it in *own (owned); NULL when out of memory. */
static const char *valid_text(const char *text, char **own)
{
	size_t length = strlen(text);
	struct buf clean;

	if (utf8_valid_until(text, 0, length) == length)
		return text;
	buf_init(&clean);
	utf8_append_clean(&clean, text, length);
	*own = buf_detach(&clean);
	return *own;
}

static int put_some_texts(hid_t set, hid_t type, hsize_t first, hsize_t count,
			  const char *(*text)(const void *context, hsize_t i), const void *context)
{
	CLEANUP(hdf5_close) hid_t in_memory = H5Screate_simple(1, &count, NULL);
	CLEANUP(hdf5_close) hid_t in_file = H5Dget_space(set);
	const char *texts[TEXTS_AT_ONCE];
	char *own[TEXTS_AT_ONCE];
	bool good = H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &first, NULL, &count, NULL) >= 0;

	for (hsize_t i = 0; i < count; i++) {
		const char *given = text(context, first + i);

		own[i] = NULL;
		texts[i] = valid_text(given ? given : "", &own[i]);
		good = good && texts[i];
	}
	good = good && H5Dwrite(set, type, in_memory, in_file, H5P_DEFAULT, texts) >= 0;
	for (hsize_t i = 0; i < count; i++)
		free(own[i]);
	return good ? 0 : -1;
}

int h5_put_texts(hid_t at, const char *name, hsize_t rows, const char *(*text)(const void *context, hsize_t i),
		 const void *context, struct error *err)
{
	CLEANUP(hdf5_close) hid_t type = hdf5_text_type();
	CLEANUP(hdf5_close) hid_t list = whole_list();
	CLEANUP(hdf5_close) hid_t space = H5Screate_simple(1, &rows, NULL);
	CLEANUP(hdf5_close) hid_t set = H5Dcreate2(at, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);

	if (set < 0)
		return hdf5_failed("write", name, err);
	for (hsize_t first = 0; first < rows; first += TEXTS_AT_ONCE) {
		hsize_t left = rows - first;

		if (put_some_texts(set, type, first, left < TEXTS_AT_ONCE ? left : TEXTS_AT_ONCE, text, context) < 0)
			return hdf5_failed("write", name, err);
	}
	return 0;
}

int h5_put_integer(hid_t at, const char *name, int64_t value, struct error *err)
{
	CLEANUP(hdf5_close) hid_t space = H5Screate(H5S_SCALAR);
	CLEANUP(hdf5_close) hid_t attribute =
		H5Acreate2(at, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);

	if (attribute < 0 || H5Awrite(attribute, H5T_NATIVE_INT64, &value) < 0)
		return hdf5_failed("write the attribute", name, err);
	return 0;
}

/* Those that readers expect as numbers. */
static bool is_number(const char *key, const char *value, int64_t *ret)
{
	static const char *const keys[] = {"start_time_ns", "mpi_size", "total_cores", "omp_num_threads"};
	char *end;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		if (strcmp(key, keys[i]) != 0)
			continue;
		errno = 0;
		*ret = strtoll(value, &end, 10);
		return end > value && !*end && errno == 0;
	}
	return false;
}

static int put_fact(hid_t group, hid_t type, const struct region_fact *fact, struct error *err)
{
	CLEANUP(buf_release) struct buf key, value;
	int64_t number;

	buf_init(&key), buf_init(&value);
	if (is_number(fact->key, fact->value, &number))
		return h5_put_integer(group, fact->key, number, err);
	utf8_append_clean(&key, fact->key, strlen(fact->key));
	utf8_append_clean(&value, fact->value, strlen(fact->value));
	buf_puts(&key, "");
	buf_puts(&value, "");
	if (key.failed || value.failed)
		return error_set(err, "out of memory for the metadata");
	value.length = utf8_cut(value.text, value.length, ATTRIBUTE_MAX);
	value.text[value.length] = '\0';
	return hdf5_put_text(group, type, key.text, value.text, err);
}

int h5_put_facts(hid_t file, const struct regions *r, struct error *err)
{
	CLEANUP(hdf5_close) hid_t type = hdf5_text_type();
	CLEANUP(hdf5_close) hid_t group = h5_put_group(file, "metadata", err);

	if (group < 0)
		return -1;
	for (size_t i = 0; i < r->fact_count; i++)
		if (put_fact(group, type, &r->facts[i], err) < 0)
			return -1;
	return 0;
}
