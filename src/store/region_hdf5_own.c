/* What assay adds to layout 2, in the group /assay: ranks without regions, notes, wrong use, and what is known of calls
 * that were only added up. Another program's file has none of it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/region_hdf5.h"
#include "wire/regions.h"

struct own_reader {
	struct region_h5 *h5;
	struct regions *r;
	uint64_t budget;
	hsize_t rows;
	int64_t *numbers;
};

static int ascending(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

int h5_add_ranks(struct regions *r, int64_t *ranks, size_t count, struct error *err)
{
	qsort(ranks, count, sizeof *ranks, ascending);
	for (size_t i = 0; i < count; i++)
		if ((i == 0 || ranks[i] != ranks[i - 1]) && regions_add_rank(r, (uint32_t)ranks[i], err) < 0)
			return -1;
	return 0;
}

/* 1 and room for x->rows numbers, or 0 where the table is not there. */
static int begin(struct own_reader *x, const char *path, struct error *err)
{
	int has = h5_has(x->h5->file, path, err);
	CLEANUP(hdf5_close) hid_t set = H5I_INVALID_HID;
	int64_t *numbers;

	if (has <= 0)
		return has;
	x->rows = 0;
	set = h5_open_set(x->h5->file, path, &x->rows, err);
	if (set < 0 || h5_plausible(set, path, x->rows, err) < 0)
		return -1;
	if (x->rows > REGION_ROWS_MAX)
		return error_set(err, "%s has %" PRIu64 " rows", path, (uint64_t)x->rows);
	numbers = reallocarray(x->numbers, x->rows + 1, sizeof *numbers);
	if (!numbers)
		return error_set(err, "out of memory for %" PRIu64 " rows", (uint64_t)x->rows);
	x->numbers = numbers;
	return 1;
}

static int numbers(struct own_reader *x, const char *path, int64_t limit, struct error *err)
{
	if (h5_read_numbers(x->h5->file, path, x->rows, H5T_NATIVE_INT64, x->numbers, err) < 0)
		return -1;
	for (hsize_t i = 0; i < x->rows; i++)
		if (x->numbers[i] < 0 || x->numbers[i] > limit)
			return error_set(err, "row %" PRIu64 " of %s is %" PRId64, (uint64_t)i, path, x->numbers[i]);
	return 0;
}

static int read_ranks(struct own_reader *x, struct error *err)
{
	int has = begin(x, "assay/ranks", err);

	if (has <= 0 || numbers(x, "assay/ranks", UINT32_MAX - 1, err) < 0)
		return has <= 0 ? has : -1;
	return h5_add_ranks(x->r, x->numbers, x->rows, err);
}

static int take_note(void *context, hsize_t row, char *text, struct error *err)
{
	struct own_reader *x = context;
	int result = regions_add_note(x->r, "%s", text);

	(void)row;
	free(text);
	return result < 0 ? error_set(err, "out of memory for a note") : 0;
}

static int read_notes(struct own_reader *x, struct error *err)
{
	int has = begin(x, "assay/notes", err);

	return has <= 0 ? has : h5_read_texts(x->h5->file, "assay/notes", x->rows, &x->budget, take_note, x, err);
}

static int take_example(void *context, hsize_t row, char *text, struct error *err)
{
	struct own_reader *x = context;

	(void)err;
	region_text_own(&x->r->troubles[row].example, text);
	return 0;
}

static int read_troubles(struct own_reader *x, struct error *err)
{
	int has = begin(x, "assay/troubles/ranks", err);

	if (has <= 0 || numbers(x, "assay/troubles/ranks", UINT32_MAX - 1, err) < 0)
		return has <= 0 ? has : -1;
	for (hsize_t i = 0; i < x->rows; i++) {
		struct region_trouble_count *row = regions_add_trouble(x->r, err);

		if (!row)
			return -1;
		row->rank = (uint32_t)x->numbers[i];
	}
	if (numbers(x, "assay/troubles/kinds", REGION_TROUBLES - 1, err) < 0)
		return -1;
	for (hsize_t i = 0; i < x->rows; i++)
		x->r->troubles[i].kind = (uint32_t)x->numbers[i];
	if (numbers(x, "assay/troubles/counts", INT64_MAX, err) < 0)
		return -1;
	for (hsize_t i = 0; i < x->rows; i++)
		x->r->troubles[i].count = (uint64_t)x->numbers[i];
	return h5_read_texts(x->h5->file, "assay/troubles/examples", x->rows, &x->budget, take_example, x, err);
}

/* The histograms lie one behind the other in one column. */
static int read_buckets(struct own_reader *x, const double *units, struct error *err)
{
	hsize_t rows = x->rows * REGION_BUCKETS, there = 0, count = REGION_BUCKETS, wanted = 0;
	CLEANUP(hdf5_close) hid_t set = h5_open_set(x->h5->file, "assay/summarised/buckets", &there, err);
	CLEANUP(hdf5_close) hid_t in_file = set < 0 ? H5I_INVALID_HID : H5Dget_space(set);
	CLEANUP(hdf5_close) hid_t in_memory = H5Screate_simple(1, &count, NULL);

	if (set < 0)
		return -1;
	if (there != rows)
		return error_set(err, "assay/summarised/buckets has %" PRIu64 " rows where %" PRIu64 " are expected",
				 (uint64_t)there, (uint64_t)rows);
	/* Chunks in which no part has a histogram are not stored. */
	for (hsize_t i = 0; i < x->rows; i++)
		wanted += units[i] > 0;
	if (wanted && h5_plausible(set, "assay/summarised/buckets", wanted * count, err) < 0)
		return -1;
	for (hsize_t i = 0; i < x->rows; i++) {
		struct region_part *part = &x->r->parts[x->numbers[i]];
		hsize_t first = i * REGION_BUCKETS;

		if (!(units[i] > 0) || part->buckets)
			continue;
		part->ns_per_unit = units[i];
		part->buckets = calloc(REGION_BUCKETS, sizeof *part->buckets);
		if (!part->buckets)
			return error_set(err, "out of memory for a histogram");
		if (H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &first, NULL, &count, NULL) < 0 ||
		    H5Dread(set, H5T_NATIVE_UINT64, in_memory, in_file, H5P_DEFAULT, part->buckets) < 0)
			return hdf5_failed("read", "assay/summarised/buckets", err);
	}
	return 0;
}

static int read_summarised(struct own_reader *x, struct error *err)
{
	int has = begin(x, "assay/summarised/parts", err);
	CLEANUP(free_cleanup) struct region_summary *summaries = NULL;
	CLEANUP(free_cleanup) double *units = NULL;

	if (has <= 0)
		return has;
	if (x->rows > REGION_SUMMARISED_MAX)
		return error_set(err, "assay/summarised has %" PRIu64 " rows", (uint64_t)x->rows);
	if (h5_read_summaries(x->h5->file, "assay/summarised/statistics", x->rows, &summaries, err) < 0)
		return -1;
	units = calloc(x->rows + 1, sizeof *units);
	if (!units)
		return error_set(err, "out of memory");
	if (h5_read_numbers(x->h5->file, "assay/summarised/ns_per_unit", x->rows, H5T_NATIVE_DOUBLE, units, err) < 0 ||
	    numbers(x, "assay/summarised/parts", (int64_t)x->r->part_count - 1, err) < 0)
		return -1;
	for (hsize_t i = 0; i < x->rows; i++) {
		x->r->parts[x->numbers[i]].summarised = true;
		x->r->parts[x->numbers[i]].summary = summaries[i];
	}
	return read_buckets(x, units, err);
}

int region_h5_index_own(struct region_h5 *h5, struct regions *r, uint64_t budget, struct error *err)
{
	struct own_reader x = {.h5 = h5, .r = r, .budget = budget};
	int result = read_ranks(&x, err) < 0 || read_notes(&x, err) < 0 || read_troubles(&x, err) < 0 ||
				     read_summarised(&x, err) < 0
			     ? -1
			     : 0;

	free(x.numbers);
	return result;
}
