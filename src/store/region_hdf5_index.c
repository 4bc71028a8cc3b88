/* What layouts 2 and 3 say of their calls: names, the index of regions and ranks, threads; and what assay adds in
 * /assay, and in columns of its own, which other readers pass over. docs/formats.md describes them. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "store/region_hdf5.h"
#include "store/region_parts.h"

#define TEXTS_MIN ((uint64_t)256 << 20) /* bytes of all texts of a file; of a large one 4 times its size */
#define ROWS_MIN 65536u                 /* rows of a table; of a large file one for each of its bytes */

struct index_reader {
	struct region_h5 *h5;
	struct regions *r;
	uint64_t budget;   /* bytes of texts that may still be read */
	uint32_t *names;   /* of the file's ids: index into r->names */
	hsize_t name_count;
	hsize_t rows;      /* of the table that is read */
	int64_t *numbers;  /* room for a column of `rows` */
	size_t text_field; /* offset of a char * in a row of the table */
};

/* How many rows a table has, by its column `path`: -1 with *err, or 0 and *ret. */
static int table_rows(struct index_reader *x, const char *path, hsize_t *ret, struct error *err)
{
	hsize_t rows = 0;
	CLEANUP(hdf5_close) hid_t set = h5_open_set(x->h5->file, path, &rows, err);

	if (set < 0 || h5_plausible(set, path, rows, err) < 0)
		return -1;
	if (rows > ROWS_MIN && rows - ROWS_MIN > x->h5->file_size)
		return error_set(err, "%s says that it has %" PRIu64 " rows, and the file has %" PRIu64 " bytes", path,
				 (uint64_t)rows, x->h5->file_size);
	*ret = rows;
	return 0;
}

static int begin_table(struct index_reader *x, const char *path, struct error *err)
{
	int64_t *numbers;

	if (table_rows(x, path, &x->rows, err) < 0)
		return -1;
	numbers = reallocarray(x->numbers, x->rows + 1, sizeof *numbers);
	if (!numbers)
		return error_set(err, "out of memory for %" PRIu64 " rows", (uint64_t)x->rows);
	x->numbers = numbers;
	return 0;
}

/* Reads a column of numbers into x->numbers. 1: it is there; 0: it is not, and need not be. */
static int numbers(struct index_reader *x, const char *path, bool needed, hid_t type, struct error *err)
{
	int has = needed ? 1 : h5_has(x->h5->file, path, err);

	if (has <= 0)
		return has;
	return h5_read_numbers(x->h5->file, path, x->rows, type, x->numbers, err) < 0 ? -1 : 1;
}

static int take_name(void *context, hsize_t row, char *text, struct error *err)
{
	struct index_reader *x = context;
	int64_t index = regions_name(x->r, text, err);

	free(text);
	if (index < 0)
		return -1;
	x->names[row] = (uint32_t)index;
	return 0;
}

static int read_names(struct index_reader *x, struct error *err)
{
	static const char path[] = "region_table/names";

	if (table_rows(x, path, &x->name_count, err) < 0)
		return -1;
	if (x->name_count > REGION_NAMES_MAX)
		return error_set(err, "%s has %" PRIu64 " rows", path, (uint64_t)x->name_count);
	x->names = calloc(x->name_count + 1, sizeof *x->names);
	if (!x->names)
		return error_set(err, "out of memory for %" PRIu64 " names", (uint64_t)x->name_count);
	return h5_read_texts(x->h5->file, path, x->name_count, &x->budget, take_name, x, err);
}

enum part_field { OFFSETS, COUNTS, LINES, EXCLUSIVE, CALLS, DROPPED, TIMED };

static void set_part(struct region_part *part, enum part_field field, int64_t value)
{
	switch (field) {
	case OFFSETS:
		part->first = (uint64_t)value;
		break;
	case COUNTS:
		part->count = part->calls = (uint64_t)value;
		break;
	case LINES:
		part->line = value;
		break;
	case EXCLUSIVE:
		part->exclusive = value;
		break;
	case CALLS:
		part->calls = (uint64_t)value;
		break;
	case DROPPED:
		part->dropped = (uint64_t)value;
		break;
	case TIMED:
		part->timed = (uint64_t)value;
		break;
	}
}

/* Ranks and region ids: makes the parts. */
static int make_parts(struct index_reader *x, struct error *err)
{
	if (begin_table(x, "rank_region_index/region_ids", err) < 0 ||
	    numbers(x, "rank_region_index/region_ids", true, H5T_NATIVE_INT64, err) < 0)
		return -1;
	for (hsize_t i = 0; i < x->rows; i++) {
		int64_t id = x->numbers[i];

		if (id < 0 || (uint64_t)id >= x->name_count)
			return error_set(err, "row %" PRIu64 " of rank_region_index is of region %" PRId64
					      ", and there are %" PRIu64, (uint64_t)i, id, (uint64_t)x->name_count);
		if (!regions_add_part(x->r, 0, x->names[id], err))
			return -1;
	}
	if (numbers(x, "rank_region_index/ranks", true, H5T_NATIVE_INT64, err) < 0)
		return -1;
	for (hsize_t i = 0; i < x->rows; i++) {
		if (x->numbers[i] < 0 || x->numbers[i] >= UINT32_MAX)
			return error_set(err, "row %" PRIu64 " of rank_region_index is of rank %" PRId64, (uint64_t)i,
					 x->numbers[i]);
		x->r->parts[i].rank = (uint32_t)x->numbers[i];
	}
	return h5_add_ranks(x->r, x->numbers, x->rows, err);
}

static int read_part_numbers(struct index_reader *x, struct error *err)
{
	static const struct {
		const char *path;
		enum part_field field;
		bool needed, is_signed;
	} columns[] = {
		{"rank_region_index/event_offsets", OFFSETS, true, false},
		{"rank_region_index/event_counts", COUNTS, true, false},
		{"rank_region_index/source_lines", LINES, false, true},
		{"rank_region_index/exclusive_totals", EXCLUSIVE, false, true},
		{"rank_region_index/calls", CALLS, false, false},
		{"rank_region_index/dropped", DROPPED, false, false},
		{"rank_region_index/timed", TIMED, false, false},
	};

	for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
		int got = numbers(x, columns[c].path, columns[c].needed, H5T_NATIVE_INT64, err);

		if (got < 0)
			return -1;
		for (hsize_t i = 0; got && i < x->rows; i++) {
			if (!columns[c].is_signed && x->numbers[i] < 0)
				return error_set(err, "row %" PRIu64 " of %s is below 0", (uint64_t)i, columns[c].path);
			set_part(&x->r->parts[i], columns[c].field, x->numbers[i]);
		}
	}
	return 0;
}

static int take_part_text(void *context, hsize_t row, char *text, struct error *err)
{
	struct index_reader *x = context;
	char **field = (char **)((char *)&x->r->parts[row] + x->text_field);

	(void)err;
	region_text_own(field, text);
	return 0;
}

static int read_part_texts(struct index_reader *x, struct error *err)
{
	static const struct {
		const char *path;
		size_t field;
	} columns[] = {
		{"rank_region_index/source_files", offsetof(struct region_part, file)},
		{"rank_region_index/source_texts", offsetof(struct region_part, text)},
		{"rank_region_index/tags", offsetof(struct region_part, tags)},
		{"rank_region_index/event_metadata", offsetof(struct region_part, metadata)},
	};

	for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
		int has = h5_has(x->h5->file, columns[c].path, err);

		x->text_field = columns[c].field;
		if (has < 0 || (has && h5_read_texts(x->h5->file, columns[c].path, x->rows, &x->budget,
						     take_part_text, x, err) < 0))
			return -1;
	}
	return 0;
}

static int read_part_statistics(struct index_reader *x, struct error *err)
{
	CLEANUP(free_cleanup) struct region_summary *all = NULL;
	uint64_t unkept = 0;

	int has = h5_has(x->h5->file, "rank_region_index/summary_statistics", err);

	if (has <= 0)
		return has;
	if (h5_read_summaries(x->h5->file, "rank_region_index/summary_statistics", x->rows, &all, err) < 0)
		return -1;
	for (hsize_t i = 0; i < x->rows; i++) {
		x->r->parts[i].summary = all[i];
		unkept += x->r->parts[i].calls == 0 && all[i].total > 0;
	}
	if (unkept && regions_add_note(x->r, "%" PRIu64 " regions of ranks have totals in the file, and no calls",
				       unkept) < 0)
		return error_set(err, "out of memory");
	return 0;
}

/* Opens a column where it is there; *rows of the ones before it, 0: it is the first. */
static int open_column(struct index_reader *x, enum region_column c, const char *path, hsize_t *rows,
		       struct error *err)
{
	struct region_h5 *h5 = x->h5;
	int has = c <= REGION_END ? 1 : h5_has(h5->file, path, err);
	struct region_piece *piece;
	hsize_t there = 0;
	hid_t set;

	if (has <= 0)
		return has;
	set = h5->sets[c] = h5_open_set(h5->file, path, &there, err);
	if (set < 0 || h5_whole_numbers(set, path, err) < 0)
		return -1;
	if (c > REGION_START && there != *rows)
		return error_set(err, "%s has %" PRIu64 " rows, and the first column %" PRIu64, path, (uint64_t)there,
				 (uint64_t)*rows);
	if (c <= REGION_END && h5_plausible(set, path, there, err) < 0)
		return -1;
	*rows = there;
	piece = h5->stored->pieces[c] = calloc(1, sizeof *piece);
	if (!piece)
		return error_set(err, "out of memory");
	piece->kind = REGION_PIECE_FENCED;
	x->r->columns |= 1u << c;
	return h5->raw ? region_h5_piece(set, there, piece, err) : 0;
}

static int open_columns(struct index_reader *x, struct error *err)
{
	static const char *const paths[REGION_COLUMNS] = {
		"events/start_times", "events/end_times",  "events/gpu_durations", "events/call_ids",
		"events/parent_ids",  "events/thread_ids", "events/task_ids",      "events/await_ns",
	};
	struct region_stored *stored = x->h5->stored;
	hsize_t rows = 0;

	stored->deltas = x->h5->layout == 3;
	stored->piece_count = 1;
	for (enum region_column c = 0; c < REGION_COLUMNS; c++) {
		const char *path = paths[c];

		if (stored->deltas && c <= REGION_END)
			path = c == REGION_START ? "events/start_deltas" : "events/durations";
		if (open_column(x, c, path, &rows, err) < 0)
			return -1;
	}
	if (rows > INT64_MAX)
		return error_set(err, "it says that it has %" PRIu64 " calls", (uint64_t)rows);
	x->r->call_count = rows;
	return 0;
}

enum thread_field { T_RANK, T_INDEX, T_IDENT, T_NATIVE, T_DAEMON, T_START, T_END, T_CPU };

static void set_thread(struct region_thread_row *row, enum thread_field field, int64_t value)
{
	switch (field) {
	case T_RANK:
		row->rank = (uint32_t)value;
		break;
	case T_INDEX:
		row->index = value;
		break;
	case T_IDENT:
		row->ident = value;
		break;
	case T_NATIVE:
		row->native_id = value;
		break;
	case T_DAEMON:
		row->daemon = value != 0;
		break;
	case T_START:
		row->start = value;
		break;
	case T_END:
		row->end = value;
		break;
	case T_CPU:
		row->cpu = value;
		break;
	}
}

static int take_thread_name(void *context, hsize_t row, char *text, struct error *err)
{
	struct index_reader *x = context;

	(void)err;
	region_text_own(&x->r->threads[row].name, text);
	return 0;
}

static int read_threads(struct index_reader *x, struct error *err)
{
	static const struct {
		const char *path;
		enum thread_field field;
	} columns[] = {
		{"thread_table/ranks", T_RANK},       {"thread_table/index", T_INDEX},
		{"thread_table/ident", T_IDENT},      {"thread_table/native_id", T_NATIVE},
		{"thread_table/daemon", T_DAEMON},    {"thread_table/start_ns", T_START},
		{"thread_table/end_ns", T_END},       {"thread_table/cpu_ns", T_CPU},
	};
	int has = h5_has(x->h5->file, columns[0].path, err);

	if (has <= 0)
		return has;
	if (begin_table(x, columns[0].path, err) < 0)
		return -1;
	for (hsize_t i = 0; i < x->rows; i++)
		if (!regions_add_thread(x->r, err))
			return -1;
	for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
		int got = numbers(x, columns[c].path, c < 2, H5T_NATIVE_INT64, err);

		if (got < 0)
			return -1;
		for (hsize_t i = 0; got && i < x->rows; i++) {
			if (columns[c].field == T_RANK && (x->numbers[i] < 0 || x->numbers[i] >= UINT32_MAX))
				return error_set(err, "row %" PRIu64 " of thread_table is of rank %" PRId64,
						 (uint64_t)i, x->numbers[i]);
			set_thread(&x->r->threads[i], columns[c].field, x->numbers[i]);
		}
	}
	has = h5_has(x->h5->file, "thread_table/name", err);
	return has <= 0 ? has : h5_read_texts(x->h5->file, "thread_table/name", x->rows, &x->budget, take_thread_name,
					      x, err);
}

static int read_all(struct index_reader *x, struct error *err)
{
	return read_names(x, err) < 0 || make_parts(x, err) < 0 || read_part_numbers(x, err) < 0 ||
			       read_part_texts(x, err) < 0 || read_part_statistics(x, err) < 0 ||
			       open_columns(x, err) < 0 || read_threads(x, err) < 0
		       ? -1
		       : 0;
}

int region_h5_index(struct region_h5 *h5, struct regions *r, struct error *err)
{
	uint64_t budget = h5->file_size > TEXTS_MIN / 4 ? 4 * h5->file_size : TEXTS_MIN;
	struct index_reader x = {.h5 = h5, .r = r, .budget = budget};
	int result = read_all(&x, err);

	free(x.names);
	free(x.numbers);
	if (result == 0)
		result = region_h5_index_own(h5, r, budget, err);
	return result < 0 ? -1 : region_parts_check(r, err);
}
