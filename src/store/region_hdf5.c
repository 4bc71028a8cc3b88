/* Reading files of regions: tells the layouts apart and hands out the plug-in's table. The rest is in region_hdf5_*.c;
 * nothing here knows who reads, or what for. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "store/region_hdf5.h"

#define NEWEST_SCHEMA 3

static void close_h5(struct region_h5 *h5)
{
	if (!h5)
		return;
	hdf5_lock();
	for (size_t i = 0; i < REGION_COLUMNS; i++)
		hdf5_close(&h5->sets[i]);
	for (size_t i = 0; i < 3; i++)
		hdf5_close(&h5->open_sets[i]);
	hdf5_close(&h5->file);
	H5Eclear2(H5E_DEFAULT);
	hdf5_unlock();
	free(h5);
}

static void close_cleanup(struct region_h5 **h5)
{
	close_h5(*h5);
}

static int open_file(struct region_h5 *h5, const char *path, struct error *err)
{
	CLEANUP(hdf5_close) hid_t access = hdf5_access_list();
	CLEANUP(hdf5_close) hid_t creation = H5I_INVALID_HID;
	hsize_t before = 0;
	struct stat st;

	if (stat(path, &st) < 0)
		return error_set(err, "%s", strerror(errno));
	h5->file_size = (uint64_t)st.st_size;
	h5->file = H5Fopen(path, H5F_ACC_RDONLY, access);
	if (h5->file < 0)
		return hdf5_failed("open", "it", err);
	/* Addresses in a file that begins with something else do not count from its beginning. */
	creation = H5Fget_create_plist(h5->file);
	if (creation < 0 || H5Pget_userblock(creation, &before) < 0)
		return hdf5_failed("look at", "the file", err);
	h5->raw = before == 0;
	return 0;
}

/* 1 where the file does not say. */
static int find_layout(struct region_h5 *h5, struct error *err)
{
	CLEANUP(free_cleanup) char *storage = NULL;
	int64_t schema = 1;
	int got = h5_attribute_integer(h5->file, "scope_profiler_schema", &schema, err);

	if (got < 0)
		return -1;
	if (schema < 1 || schema > NEWEST_SCHEMA)
		return error_set(err, "it is of schema %" PRId64 ", and this program knows 1 to %d", schema,
				 NEWEST_SCHEMA);
	h5->layout = (unsigned)schema;
	if (schema == 1)
		return 0;
	got = h5_attribute_text(h5->file, "storage_layout", &storage, err);
	if (got < 0)
		return -1;
	if (got == 0 || strcmp(storage, "columnar") != 0)
		return error_set(err, "it is of schema %" PRId64 ", but its storage_layout is %.100s and not columnar",
				 schema, got ? storage : "missing");
	return 0;
}

struct fact_reader {
	struct regions *regions;
	struct error *err;
	unsigned count;
};

static herr_t read_fact(hid_t at, const char *name, const H5A_info_t *info, void *context)
{
	CLEANUP(free_cleanup) char *value = NULL;
	CLEANUP(free_cleanup) char *key = h5_clean_name(name);
	struct fact_reader *f = context;
	int got = h5_attribute_text(at, name, &value, f->err);

	(void)info;
	if (got <= 0)
		return got;
	if (++f->count > REGION_FACTS_MAX)
		return error_set(f->err, "its metadata has more than %u attributes", REGION_FACTS_MAX);
	return key ? regions_set_fact(f->regions, key, value, f->err) : error_set(f->err, "out of memory");
}

static int read_facts(struct region_h5 *h5, struct regions *r, struct error *err)
{
	struct fact_reader f = {.regions = r, .err = err};
	int has = h5_has(h5->file, "metadata", err);
	CLEANUP(hdf5_close) hid_t group = has > 0 ? h5_open_group(h5->file, "metadata", err) : H5I_INVALID_HID;
	hsize_t next = 0;

	if (has <= 0)
		return has;
	if (group < 0)
		return -1;
	err->text[0] = '\0';
	if (H5Aiterate2(group, H5_INDEX_NAME, H5_ITER_INC, &next, read_fact, &f) < 0)
		return err->text[0] ? -1 : hdf5_failed("go through", "the metadata", err);
	return 0;
}

/* A window is a chunk of the first column, where that is of a size to be read at once. */
static void choose_window(struct region_stored *stored)
{
	const struct region_piece *start = stored->pieces[REGION_START];

	if (stored->piece_count == 1 && start->kind == REGION_PIECE_CHUNKS &&
	    start->chunk_rows >= REGION_WINDOW_MIN && start->chunk_rows <= REGION_WINDOW_MAX)
		stored->window = start->chunk_rows;
}

static int fill(struct region_h5 *h5, const char *path, struct regions *r, struct error *err)
{
	if (open_file(h5, path, err) < 0 || find_layout(h5, err) < 0 || read_facts(h5, r, err) < 0)
		return -1;
	r->layout = h5->layout;
	if (h5->layout == 1)
		return region_h5_index_old(h5, r, err);
	if (region_h5_index(h5, r, err) < 0)
		return -1;
	choose_window(h5->stored);
	return 0;
}

static int open_regions(const char *path, struct regions *regions, struct region_stored *stored,
			struct region_h5 **ret, struct error *err)
{
	CLEANUP(close_cleanup) struct region_h5 *h5 = calloc(1, sizeof *h5);
	struct error trouble = {{0}};
	int result;

	if (!h5)
		return error_set(err, "out of memory");
	h5->regions = regions;
	h5->stored = stored;
	h5->file = H5I_INVALID_HID;
	h5->open_part = SIZE_MAX;
	for (size_t i = 0; i < REGION_COLUMNS; i++)
		h5->sets[i] = H5I_INVALID_HID;
	for (size_t i = 0; i < 3; i++)
		h5->open_sets[i] = H5I_INVALID_HID;
	hdf5_lock();
	result = fill(h5, path, regions, &trouble);
	hdf5_unlock();
	if (result < 0)
		return error_set(err, "%s", trouble.text);
	*ret = h5;
	h5 = NULL;
	return 0;
}

extern const struct region_plugin assay_region_plugin;

__attribute__((visibility("default"))) const struct region_plugin assay_region_plugin = {
	.version = REGION_PLUGIN_VERSION,
	.start = hdf5_start,
	.open = open_regions,
	.close = close_h5,
	.read = region_h5_read,
	.create = region_h5_create,
	.chunk = REGION_H5_CHUNK,
	.write = region_h5_write,
	.written = region_h5_written,
	.finish = region_h5_finish,
	.abandon = region_h5_abandon,
	.old_create = region_h5_old_create,
	.old_begin = region_h5_old_begin,
	.old_add = region_h5_old_add,
	.old_finish = region_h5_old_finish,
	.old_abandon = region_h5_old_abandon,
};
