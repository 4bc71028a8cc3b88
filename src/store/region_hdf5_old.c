/* Layout 1: rank<N>/regions/NAME/{start_times,end_times}. A name with '/' is groups in groups. Every group is looked at
 * once, so hard links that lead in circles, or to one group on many ways, end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "store/region_hdf5.h"

#define DEPTH_MAX 200u
#define REGIONS_MAX ((size_t)8 << 20)
#define NAME_MAX_BYTES 65536u
#define COLUMNS (1u << REGION_START | 1u << REGION_END | 1u << REGION_GPU)

struct walk {
	struct region_h5 *h5;
	struct regions *regions;
	uint32_t rank;
	struct buf name; /* of the group that is looked at */
	unsigned depth;
	haddr_t *seen; /* addresses of groups: a hash table of `room`, HADDR_UNDEF: free */
	size_t count, room;
	struct error *err;
};

static size_t place_of(const struct walk *w, haddr_t address)
{
	size_t at = (size_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (w->room - 1);

	while (w->seen[at] != HADDR_UNDEF && w->seen[at] != address)
		at = (at + 1) & (w->room - 1);
	return at;
}

static int grow_seen(struct walk *w)
{
	haddr_t *old = w->seen;
	size_t old_room = w->room, room = old_room ? 2 * old_room : 256;

	w->seen = malloc(room * sizeof *w->seen);
	if (!w->seen) {
		w->seen = old;
		return error_set(w->err, "out of memory for %zu groups", room);
	}
	w->room = room;
	for (size_t i = 0; i < room; i++)
		w->seen[i] = HADDR_UNDEF;
	for (size_t i = 0; i < old_room; i++)
		if (old[i] != HADDR_UNDEF)
			w->seen[place_of(w, old[i])] = old[i];
	free(old);
	return 0;
}

/* 1: for the first time; 0: it was looked at. */
static int first_time(struct walk *w, haddr_t address)
{
	size_t at;

	if (2 * (w->count + 1) > w->room && grow_seen(w) < 0)
		return -1;
	at = place_of(w, address);
	if (w->seen[at] == address)
		return 0;
	if (w->count == REGIONS_MAX)
		return error_set(w->err, "it has more than %zu groups", REGIONS_MAX);
	w->seen[at] = address;
	w->count++;
	return 1;
}

/* Replaces *text where the group has the attribute. */
static int take_text(hid_t group, const char *name, char **text, struct error *err)
{
	char *value;
	int got = h5_attribute_text(group, name, &value, err);

	if (got > 0)
		region_text_own(text, value);
	return got < 0 ? -1 : 0;
}

/* The rows of a column of a region, each set of the right type, and where they lie. */
static int look_at_column(const struct walk *w, hid_t group, enum region_column c, hsize_t *rows, struct error *err)
{
	struct region_piece *piece = &w->h5->stored->pieces[c][w->h5->stored->piece_count - 1];
	const char *name = region_column_name(c), *region = w->name.text;
	CLEANUP(hdf5_close) hid_t set = h5_open_set(group, name, rows, err);
	CLEANUP(hdf5_close) hid_t type = set < 0 ? H5I_INVALID_HID : H5Dget_type(set);

	if (set < 0 || h5_plausible(set, name, *rows, err) < 0)
		return error_prefix(err, "the region %.200s", region);
	if (H5Tget_class(type) != H5T_INTEGER || H5Tget_size(type) > 8)
		return error_set(err, "the region %.200s: %s holds no whole numbers", region, name);
	piece->kind = REGION_PIECE_FENCED;
	return w->h5->raw ? region_h5_piece(set, *rows, piece, err) : 0;
}

static int add_region(struct walk *w, hid_t group)
{
	CLEANUP(free_cleanup) char *name = h5_clean_name(w->name.text);
	int gpu = h5_has(group, "gpu_durations", w->err);
	struct regions *r = w->regions;
	struct region_part *part;
	hsize_t rows = 0, again;
	int64_t region, line = REGIONS_UNKNOWN;

	if (gpu < 0 || region_stored_add(w->h5->stored, COLUMNS, w->err) < 0 ||
	    look_at_column(w, group, REGION_START, &rows, w->err) < 0)
		return -1;
	again = rows;
	if (look_at_column(w, group, REGION_END, &again, w->err) < 0)
		return -1;
	if (again != rows || rows > INT64_MAX - r->call_count)
		return error_set(w->err, "the region %.200s has %" PRIu64 " starts and %" PRIu64 " ends", w->name.text,
				 (uint64_t)rows, (uint64_t)again);
	again = rows;
	if (gpu && (look_at_column(w, group, REGION_GPU, &again, w->err) < 0 || again != rows))
		return error_set(w->err, "the region %.200s has %" PRIu64 " calls and %" PRIu64 " gpu_durations",
				 w->name.text, (uint64_t)rows, (uint64_t)again);
	if (h5_attribute_integer(group, "source_lineno", &line, w->err) < 0)
		return -1;
	region = name ? regions_name(r, name, w->err) : error_set(w->err, "out of memory for a name");
	part = region < 0 ? NULL : regions_add_part(r, w->rank, (uint32_t)region, w->err);
	if (!part)
		return -1;
	part->first = r->call_count;
	part->count = part->calls = rows;
	part->line = line;
	r->call_count += rows;
	r->columns |= gpu ? 1u << REGION_GPU : 0;
	return take_text(group, "source_file", &part->file, w->err) < 0 ||
			       take_text(group, "source_text", &part->text, w->err) < 0 ||
			       take_text(group, "tags", &part->tags, w->err) < 0
		       ? -1
		       : 0;
}

static herr_t look_at_link(hid_t at, const char *name, const H5L_info_t *link, void *context);

/* What is in the group that w->name tells. */
static int look_into(struct walk *w, hid_t group)
{
	int is_region = h5_has(group, "start_times", w->err);
	hsize_t next = 0;
	herr_t result;

	if (is_region < 0 || (is_region && w->name.length && add_region(w, group) < 0))
		return -1;
	w->err->text[0] = '\0';
	result = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &next, look_at_link, w);
	if (result < 0 && !w->err->text[0])
		return hdf5_failed("go through", w->name.length ? w->name.text : "the regions", w->err);
	return result < 0 ? -1 : 0;
}

static herr_t look_at_link(hid_t at, const char *name, const H5L_info_t *link, void *context)
{
	struct walk *w = context;
	size_t length = w->name.length;
	H5O_info_t info;
	int result;

	if (link->type != H5L_TYPE_HARD)
		return error_set(w->err, "%.200s/%.200s is a link to elsewhere, which is not followed", w->name.text,
				 name);
	if (H5Oget_info_by_name2(at, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
		return hdf5_failed("look at", name, w->err);
	if (info.type != H5O_TYPE_GROUP)
		return 0;
	result = first_time(w, info.addr);
	if (result <= 0)
		return result;
	if (w->depth == DEPTH_MAX || length + strlen(name) > NAME_MAX_BYTES)
		return error_set(w->err, "its groups are nested deeper than any name of a region");
	buf_printf(&w->name, "%s%s", length ? "/" : "", name);
	if (w->name.failed)
		return error_set(w->err, "out of memory");
	w->depth++;
	{
		CLEANUP(hdf5_close) hid_t group = H5Gopen2(at, name, H5P_DEFAULT);

		result = group < 0 ? hdf5_failed("open the group", w->name.text, w->err) : look_into(w, group);
	}
	w->depth--;
	w->name.length = length;
	w->name.text[length] = '\0';
	return result;
}

/* "rank12" is 12; -1: no such name. */
static int64_t rank_of(const char *name)
{
	char *end, again[32];
	unsigned long rank;

	if (strncmp(name, "rank", 4) != 0 || name[4] < '0' || name[4] > '9')
		return -1;
	rank = strtoul(name + 4, &end, 10);
	snprintf(again, sizeof again, "rank%lu", rank);
	return strcmp(again, name) == 0 && rank < UINT32_MAX ? (int64_t)rank : -1;
}

static herr_t look_at_root(hid_t at, const char *name, const H5L_info_t *link, void *context)
{
	struct walk *w = context;
	int64_t rank = rank_of(name);
	char path[64];
	int has;

	(void)link;
	if (rank < 0)
		return 0;
	w->rank = (uint32_t)rank;
	if (regions_add_rank(w->regions, w->rank, w->err) < 0)
		return -1;
	snprintf(path, sizeof path, "%s/regions", name);
	has = h5_has(at, path, w->err);
	if (has <= 0)
		return has;
	{
		CLEANUP(hdf5_close) hid_t group = h5_open_group(at, path, w->err);

		return group < 0 ? -1 : look_into(w, group);
	}
}

char *region_h5_old_path(const struct regions *r, const struct region_part *part)
{
	char *path;

	return asprintf(&path, "rank%" PRIu32 "/regions/%s", part->rank, r->names[part->region]) < 0 ? NULL : path;
}

int region_h5_index_old(struct region_h5 *h5, struct regions *r, struct error *err)
{
	struct walk w = {.h5 = h5, .regions = r, .err = err};
	hsize_t next = 0;
	herr_t result;

	buf_init(&w.name);
	buf_puts(&w.name, "");
	err->text[0] = '\0';
	r->columns = 1u << REGION_START | 1u << REGION_END;
	result = H5Literate(h5->file, H5_INDEX_NAME, H5_ITER_INC, &next, look_at_root, &w);
	if (result < 0 && !err->text[0])
		hdf5_failed("go through", "the ranks", err);
	buf_release(&w.name);
	free(w.seen);
	if (result >= 0 && r->rank_count == 0)
		result = error_set(err, "it is an HDF5 file, but none of regions: it has no rank<N>");
	return result < 0 ? -1 : 0;
}
