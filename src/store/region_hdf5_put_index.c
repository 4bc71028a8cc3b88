/* The index of layout 2, and what assay adds to it (docs/formats.md). Columns that say nothing are left out. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/region_hdf5_put.h"
#include "wire/regions.h"

/* Numbers of parts, threads and so on are gathered column by column into one array. */
struct gather {
	const struct regions *r;
	int64_t *numbers;

};

static const char *name_text(const void *context, hsize_t i)
{
	return ((const struct regions *)context)->names[i];
}

static const char *file_text(const void *context, hsize_t i)
{
	return ((const struct regions *)context)->parts[i].file;
}

static const char *source_text(const void *context, hsize_t i)
{
	return ((const struct regions *)context)->parts[i].text;
}

static const char *tags_text(const void *context, hsize_t i)
{
	return ((const struct regions *)context)->parts[i].tags;
}

static const char *metadata_text(const void *context, hsize_t i)
{
	return ((const struct regions *)context)->parts[i].metadata;
}

static const char *thread_text(const void *context, hsize_t i)
{
	return ((const struct regions *)context)->threads[i].name;
}

static const char *note_text(const void *context, hsize_t i)
{
	return ((const struct regions *)context)->notes[i];
}

static const char *example_text(const void *context, hsize_t i)
{
	return ((const struct regions *)context)->troubles[i].example;
}

enum part_number { P_REGION, P_RANK, P_FIRST, P_COUNT, P_LINE, P_EXCLUSIVE, P_CALLS, P_DROPPED, P_TIMED };

static int64_t part_number(const struct region_part *part, enum part_number which)
{
	switch (which) {
	case P_REGION:
		return part->region;
	case P_RANK:
		return part->rank;
	case P_FIRST:
		return (int64_t)part->first;
	case P_COUNT:
		return (int64_t)part->count;
	case P_LINE:
		return part->line;
	case P_EXCLUSIVE:
		return part->exclusive;
	case P_CALLS:
		return (int64_t)part->calls;
	case P_DROPPED:
		return (int64_t)part->dropped;
	case P_TIMED:
		return (int64_t)part->timed;
	}
	return REGIONS_UNKNOWN;
}

static int put_part_numbers(hid_t group, const struct gather *g, struct error *err)
{
	const hid_t types[] = {H5T_STD_U32LE, H5T_STD_U64LE, H5T_STD_I64LE};
	static const struct {
		const char *name;
		enum part_number which;
		enum { U32, U64, I64 } type;
	} columns[] = {
		{"region_ids", P_REGION, U32},   {"ranks", P_RANK, U32},
		{"event_offsets", P_FIRST, U64}, {"event_counts", P_COUNT, U64},
		{"source_lines", P_LINE, I64},   {"exclusive_totals", P_EXCLUSIVE, I64},
		{"calls", P_CALLS, U64},         {"dropped", P_DROPPED, U64},
		{"timed", P_TIMED, U64},
	};

	for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
		for (size_t i = 0; i < g->r->part_count; i++)
			g->numbers[i] = part_number(&g->r->parts[i], columns[c].which);
		if (h5_put_column(group, columns[c].name, types[columns[c].type], H5T_NATIVE_INT64, g->r->part_count,
				  g->numbers, err) < 0)
			return -1;
	}
	return 0;
}

static int put_parts(hid_t file, const struct gather *g, const struct region_summary *summaries, struct error *err)
{
	CLEANUP(hdf5_close) hid_t table = h5_put_group(file, "region_table", err);
	CLEANUP(hdf5_close) hid_t group = table < 0 ? H5I_INVALID_HID : h5_put_group(file, "rank_region_index", err);
	CLEANUP(hdf5_close) hid_t type = region_h5_summary_type();
	const struct regions *r = g->r;

	if (group < 0)
		return -1;
	return h5_put_texts(table, "names", r->name_count, name_text, r, err) < 0 ||
			       put_part_numbers(group, g, err) < 0 ||
			       h5_put_texts(group, "source_files", r->part_count, file_text, r, err) < 0 ||
			       h5_put_texts(group, "source_texts", r->part_count, source_text, r, err) < 0 ||
			       h5_put_texts(group, "tags", r->part_count, tags_text, r, err) < 0 ||
			       h5_put_texts(group, "event_metadata", r->part_count, metadata_text, r, err) < 0 ||
			       h5_put_column(group, "summary_statistics", type, type, r->part_count, summaries, err) <
				       0
		       ? -1
		       : 0;
}

enum thread_number { T_RANK, T_INDEX, T_IDENT, T_NATIVE, T_DAEMON, T_START, T_END, T_CPU };

static int64_t thread_number(const struct region_thread_row *row, enum thread_number which)
{
	switch (which) {
	case T_RANK:
		return row->rank;
	case T_INDEX:
		return row->index;
	case T_IDENT:
		return row->ident;
	case T_NATIVE:
		return row->native_id;
	case T_DAEMON:
		return row->daemon;
	case T_START:
		return row->start;
	case T_END:
		return row->end;
	case T_CPU:
		return row->cpu;
	}
	return REGIONS_UNKNOWN;
}

static int put_threads(hid_t file, const struct gather *g, struct error *err)
{
	static const char *const names[] = {"ranks",  "index",    "ident",  "native_id",
					    "daemon", "start_ns", "end_ns", "cpu_ns"};
	CLEANUP(hdf5_close) hid_t group = H5I_INVALID_HID;
	const struct regions *r = g->r;

	if (r->thread_count == 0)
		return 0;
	group = h5_put_group(file, "thread_table", err);
	if (group < 0)
		return -1;
	for (enum thread_number which = T_RANK; which <= T_CPU; which++) {
		hid_t type = which == T_RANK ? H5T_STD_U32LE : which == T_DAEMON ? H5T_STD_I8LE : H5T_STD_I64LE;

		for (size_t i = 0; i < r->thread_count; i++)
			g->numbers[i] = thread_number(&r->threads[i], which);
		if (h5_put_column(group, names[which], type, H5T_NATIVE_INT64, r->thread_count, g->numbers, err) < 0)
			return -1;
	}
	return h5_put_texts(group, "name", r->thread_count, thread_text, r, err);
}

static int put_troubles(hid_t own, const struct gather *g, struct error *err)
{
	CLEANUP(hdf5_close) hid_t group = h5_put_group(own, "troubles", err);
	const struct regions *r = g->r;
	hsize_t rows = r->trouble_count;

	if (group < 0)
		return -1;
	for (size_t i = 0; i < rows; i++)
		g->numbers[i] = r->troubles[i].rank;
	if (h5_put_column(group, "ranks", H5T_STD_U32LE, H5T_NATIVE_INT64, rows, g->numbers, err) < 0)
		return -1;
	for (size_t i = 0; i < rows; i++)
		g->numbers[i] = r->troubles[i].kind;
	if (h5_put_column(group, "kinds", H5T_STD_U32LE, H5T_NATIVE_INT64, rows, g->numbers, err) < 0)
		return -1;
	for (size_t i = 0; i < rows; i++)
		g->numbers[i] = (int64_t)r->troubles[i].count;
	if (h5_put_column(group, "counts", H5T_STD_U64LE, H5T_NATIVE_INT64, rows, g->numbers, err) < 0)
		return -1;
	return h5_put_texts(group, "examples", rows, example_text, r, err);
}

/* All histograms, one behind the other. */
static int put_buckets(hid_t group, const struct gather *g, hsize_t parts, struct error *err)
{
	hsize_t rows = parts * REGION_BUCKETS, count = REGION_BUCKETS, first = 0;
	CLEANUP(hdf5_close) hid_t list = h5_put_chunks(parts < 8 ? rows : 8 * count);
	CLEANUP(hdf5_close) hid_t space = H5Screate_simple(1, &rows, NULL);
	CLEANUP(hdf5_close) hid_t in_memory = H5Screate_simple(1, &count, NULL);
	CLEANUP(hdf5_close) hid_t set =
		H5Dcreate2(group, "buckets", H5T_STD_U64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);

	for (size_t i = 0; set >= 0 && i < g->r->part_count; i++) {
		const struct region_part *part = &g->r->parts[i];

		if (!part->summarised)
			continue;
		if (part->buckets &&
		    (H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &count, NULL) < 0 ||
		     H5Dwrite(set, H5T_NATIVE_UINT64, in_memory, space, H5P_DEFAULT, part->buckets) < 0))
			return hdf5_failed("write", "buckets", err);
		first += REGION_BUCKETS;
	}
	return set < 0 ? hdf5_failed("write", "buckets", err) : 0;
}

static int put_summarised(hid_t own, const struct gather *g, struct error *err)
{
	CLEANUP(hdf5_close) hid_t group = H5I_INVALID_HID;
	CLEANUP(hdf5_close) hid_t type = region_h5_summary_type();
	CLEANUP(free_cleanup) struct region_summary *summaries = NULL;
	CLEANUP(free_cleanup) double *units = NULL;
	const struct regions *r = g->r;
	size_t count = 0;

	summaries = calloc(r->part_count + 1, sizeof *summaries);
	units = calloc(r->part_count + 1, sizeof *units);
	if (!summaries || !units)
		return error_set(err, "out of memory for %zu summaries", r->part_count);
	for (size_t i = 0; i < r->part_count; i++) {
		if (!r->parts[i].summarised)
			continue;
		g->numbers[count] = (int64_t)i;
		summaries[count] = r->parts[i].summary;
		units[count++] = r->parts[i].buckets ? r->parts[i].ns_per_unit : 0;
	}
	if (count == 0)
		return 0;
	group = h5_put_group(own, "summarised", err);
	return group < 0 ||
			       h5_put_column(group, "parts", H5T_STD_U64LE, H5T_NATIVE_INT64, count, g->numbers, err) <
				       0 ||
			       h5_put_column(group, "statistics", type, type, count, summaries, err) < 0 ||
			       h5_put_column(group, "ns_per_unit", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, count, units,
					     err) < 0 ||
			       put_buckets(group, g, count, err) < 0
		       ? -1
		       : 0;
}

static int put_own(hid_t file, const struct gather *g, struct error *err)
{
	CLEANUP(hdf5_close) hid_t own = h5_put_group(file, "assay", err);
	const struct regions *r = g->r;

	if (own < 0)
		return -1;
	for (size_t i = 0; i < r->rank_count; i++)
		g->numbers[i] = r->ranks[i];
	return h5_put_column(own, "ranks", H5T_STD_U32LE, H5T_NATIVE_INT64, r->rank_count, g->numbers, err) < 0 ||
			       h5_put_texts(own, "notes", r->note_count, note_text, r, err) < 0 ||
			       put_troubles(own, g, err) < 0 || put_summarised(own, g, err) < 0
		       ? -1
		       : 0;
}

static size_t largest(const struct regions *r)
{
	size_t counts[] = {r->part_count, r->thread_count, r->trouble_count, r->rank_count}, most = 1;

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		most = counts[i] > most ? counts[i] : most;
	return most;
}

int region_h5_put_index(hid_t file, const struct regions *r, const struct region_summary *summaries, struct error *err)
{
	CLEANUP(free_cleanup) int64_t *numbers = calloc(largest(r), sizeof *numbers);
	struct gather g = {.r = r, .numbers = numbers};

	if (!numbers)
		return error_set(err, "out of memory for %zu regions of ranks", r->part_count);
	return h5_put_facts(file, r, err) < 0 || put_parts(file, &g, summaries, err) < 0 ||
			       put_threads(file, &g, err) < 0 || put_own(file, &g, err) < 0
		       ? -1
		       : 0;
}
