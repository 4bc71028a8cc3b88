/* Writing layout 1: a group for each region of each rank, and nothing else at the root than what old readers expect. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "store/region_hdf5_put.h"

#define COMPRESS_MIN 65536u /* rows */

struct region_h5_old {
	hid_t file, sets[3];
	const struct regions *regions;
};

static const char *const names[3] = {"start_times", "end_times", "gpu_durations"};

static void close_sets(struct region_h5_old *old)
{
	for (size_t i = 0; i < 3; i++)
		hdf5_close(&old->sets[i]);
}

void region_h5_old_abandon(struct region_h5_old *old)
{
	if (!old)
		return;
	hdf5_lock();
	close_sets(old);
	hdf5_close(&old->file);
	H5Eclear2(H5E_DEFAULT);
	hdf5_unlock();
	free(old);
}

static int put_ranks(hid_t file, const struct regions *r, struct error *err)
{
	for (size_t i = 0; i < r->rank_count; i++) {
		CLEANUP(hdf5_close) hid_t rank = H5I_INVALID_HID;
		CLEANUP(hdf5_close) hid_t group = H5I_INVALID_HID;
		char name[32];

		snprintf(name, sizeof name, "rank%" PRIu32, r->ranks[i]);
		rank = h5_put_group(file, name, err);
		group = rank < 0 ? rank : h5_put_group(rank, "regions", err);
		if (group < 0)
			return -1;
	}
	return 0;
}

int region_h5_old_create(const char *path, const struct regions *regions, struct region_h5_old **ret,
			 struct error *err)
{
	struct region_h5_old *old = calloc(1, sizeof *old);
	int result;

	if (!old)
		return error_set(err, "out of memory");
	old->regions = regions;
	for (size_t i = 0; i < 3; i++)
		old->sets[i] = H5I_INVALID_HID;
	hdf5_lock();
	{
		/* Not the access list of other files: the oldest format that holds it, for the oldest readers. */
		old->file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
		result = old->file < 0 ? hdf5_failed("make", "the file", err) : h5_put_facts(old->file, regions, err);
		if (result == 0)
			result = put_ranks(old->file, regions, err);
	}
	hdf5_unlock();
	if (result < 0)
		region_h5_old_abandon(old);
	else
		*ret = old;
	return result;
}

static int put_places(hid_t group, const struct region_part *part, struct error *err)
{
	CLEANUP(hdf5_close) hid_t type = hdf5_text_type();
	const struct {
		const char *name, *text;
	} texts[] = {{"source_file", part->file}, {"source_text", part->text}, {"tags", part->tags}};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].text && *texts[i].text &&
		    hdf5_put_text(group, type, texts[i].name, texts[i].text, err) < 0)
			return -1;
	return part->line < 0 ? 0 : h5_put_integer(group, "source_lineno", part->line, err);
}

static int begin(struct region_h5_old *old, const struct region_part *part, const char *name, int gpu,
		 struct error *err)
{
	CLEANUP(free_cleanup) char *path = region_h5_old_path(old->regions, part);
	CLEANUP(hdf5_close) hid_t links = H5Pcreate(H5P_LINK_CREATE);
	CLEANUP(hdf5_close) hid_t group = H5I_INVALID_HID;
	hsize_t rows = part->count;
	CLEANUP(hdf5_close) hid_t space = H5Screate_simple(1, &rows, NULL);
	CLEANUP(hdf5_close) hid_t list = rows < COMPRESS_MIN ? H5Pcreate(H5P_DATASET_CREATE)
							       : h5_put_chunks(REGION_H5_CHUNK);

	close_sets(old);
	if (!path || links < 0 || list < 0 || H5Pset_create_intermediate_group(links, 1) < 0)
		return hdf5_failed("prepare", name, err);
	/* There already where another region's name goes on after this one. */
	group = H5Lexists(old->file, path, H5P_DEFAULT) > 0
			? H5Gopen2(old->file, path, H5P_DEFAULT)
			: H5Gcreate2(old->file, path, links, H5P_DEFAULT, H5P_DEFAULT);
	if (group < 0)
		return hdf5_failed("make the region", name, err);
	for (int i = 0; i < (gpu ? 3 : 2); i++) {
		old->sets[i] = H5Dcreate2(group, names[i], H5T_STD_I64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
		if (old->sets[i] < 0)
			return hdf5_failed("make the region", name, err);
	}
	return put_places(group, part, err);
}

int region_h5_old_begin(struct region_h5_old *old, const struct region_part *part, const char *name, int gpu,
			struct error *err)
{
	int result;

	hdf5_lock();
	result = begin(old, part, name, gpu, err);
	hdf5_unlock();
	return result;
}

static int add(hid_t set, const char *name, hsize_t at, hsize_t count, const int64_t *rows, struct error *err)
{
	CLEANUP(hdf5_close) hid_t in_memory = H5Screate_simple(1, &count, NULL);
	CLEANUP(hdf5_close) hid_t in_file = H5Dget_space(set);

	if (H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &at, NULL, &count, NULL) < 0 ||
	    H5Dwrite(set, H5T_NATIVE_INT64, in_memory, in_file, H5P_DEFAULT, rows) < 0)
		return hdf5_failed("write", name, err);
	return 0;
}

int region_h5_old_add(struct region_h5_old *old, uint64_t at, uint64_t count, const int64_t *start, const int64_t *end,
		      const int64_t *gpu, struct error *err)
{
	const int64_t *const columns[3] = {start, end, gpu};
	int result = 0;

	hdf5_lock();
	for (size_t i = 0; i < 3 && result == 0; i++)
		if (old->sets[i] >= 0)
			result = add(old->sets[i], names[i], at, count, columns[i], err);
	hdf5_unlock();
	return result;
}

int region_h5_old_finish(struct region_h5_old *old, struct error *err)
{
	int result = 0;

	hdf5_lock();
	close_sets(old);
	if (H5Fclose(old->file) < 0)
		result = hdf5_failed("close", "the file", err);
	H5Eclear2(H5E_DEFAULT);
	hdf5_unlock();
	free(old);
	return result;
}
