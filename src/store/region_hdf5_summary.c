/* The compound of statistics, of one region on one rank: as it is in memory, and reading a column of it. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "store/region_hdf5.h"

hid_t region_h5_summary_type(void)
{
	static const struct {
		const char *name;
		size_t offset;
		enum { SIGNED, UNSIGNED, REAL } kind;
	} members[] = {
		{"total", offsetof(struct region_summary, total), SIGNED},
		{"minimum", offsetof(struct region_summary, minimum), SIGNED},
		{"maximum", offsetof(struct region_summary, maximum), SIGNED},
		{"first", offsetof(struct region_summary, first), SIGNED},
		{"last", offsetof(struct region_summary, last), SIGNED},
		{"start_minimum", offsetof(struct region_summary, start_minimum), SIGNED},
		{"end_maximum", offsetof(struct region_summary, end_maximum), SIGNED},
		{"gpu_count", offsetof(struct region_summary, gpu_count), UNSIGNED},
		{"gpu_total", offsetof(struct region_summary, gpu_total), SIGNED},
		{"mean", offsetof(struct region_summary, mean), REAL},
		{"m2", offsetof(struct region_summary, m2), REAL},
	};
	const hid_t kinds[] = {H5T_NATIVE_INT64, H5T_NATIVE_UINT64, H5T_NATIVE_DOUBLE};
	hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(struct region_summary));

	for (size_t i = 0; type >= 0 && i < sizeof members / sizeof *members; i++)
		if (H5Tinsert(type, members[i].name, members[i].offset, kinds[members[i].kind]) < 0)
			hdf5_close(&type);
	return type;
}

/* Members that are not in the file stay 0; others must be numbers. */
static int look_at_members(hid_t in_file, const char *path, struct error *err)
{
	int count = H5Tget_nmembers(in_file);

	if (H5Tget_class(in_file) != H5T_COMPOUND || count < 0)
		return error_set(err, "%s holds no statistics", path);
	for (int i = 0; i < count; i++) {
		H5T_class_t class = H5Tget_member_class(in_file, (unsigned)i);

		if (class != H5T_INTEGER && class != H5T_FLOAT)
			return error_set(err, "%s holds statistics that are no numbers", path);
	}
	return 0;
}

int h5_read_summaries(hid_t at, const char *path, hsize_t rows, struct region_summary **ret, struct error *err)
{
	hsize_t there = 0;
	CLEANUP(hdf5_close) hid_t type = region_h5_summary_type();
	CLEANUP(hdf5_close) hid_t set = h5_open_set(at, path, &there, err);
	CLEANUP(hdf5_close) hid_t in_file = set < 0 ? H5I_INVALID_HID : H5Dget_type(set);
	CLEANUP(free_cleanup) struct region_summary *all = NULL;

	if (set < 0)
		return -1;
	if (there != rows)
		return error_set(err, "%s has %" PRIu64 " rows where %" PRIu64 " are expected", path, (uint64_t)there,
				 (uint64_t)rows);
	if (type < 0 || in_file < 0)
		return hdf5_failed("look at", path, err);
	if (look_at_members(in_file, path, err) < 0)
		return -1;
	all = calloc(rows + 1, sizeof *all);
	if (!all)
		return error_set(err, "out of memory for %" PRIu64 " statistics", (uint64_t)rows);
	if (rows && H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) < 0)
		return hdf5_failed("read", path, err);
	*ret = all;
	all = NULL;
	return 0;
}
