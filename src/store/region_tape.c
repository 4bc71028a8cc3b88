#include "store/region_tape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/region_parts.h"
#include "store/region_plugin.h"
#include "wire/regions.h"

#define NO_MEMORY (-2)

/* All of a part but its texts and buckets, which follow it. */
struct part_record {
	uint64_t first, count, calls, dropped, timed;
	int64_t exclusive, line;
	struct region_summary summary;
	double ns_per_unit;
	uint32_t rank, region, summarised, has_buckets;
};

struct thread_record {
	int64_t index, ident, native_id, start, end, cpu;
	uint32_t rank, daemon;
};

struct trouble_record {
	uint64_t count;
	uint32_t rank, kind;
};

struct piece_record {
	uint64_t at, chunk_rows, chunk_count;
	uint32_t kind, shuffle, deflate, unused;
};

static void put_part(struct channel *c, const struct region_part *part)
{
	const struct part_record record = {
		.first = part->first,
		.count = part->count,
		.calls = part->calls,
		.dropped = part->dropped,
		.timed = part->timed,
		.exclusive = part->exclusive,
		.line = part->line,
		.summary = part->summary,
		.ns_per_unit = part->ns_per_unit,
		.rank = part->rank,
		.region = part->region,
		.summarised = part->summarised,
		.has_buckets = part->buckets != NULL,
	};

	channel_put(c, &record, sizeof record);
	channel_put_text(c, part->file);
	channel_put_text(c, part->text);
	channel_put_text(c, part->tags);
	channel_put_text(c, part->metadata);
	if (part->buckets)
		channel_put(c, part->buckets, REGION_BUCKET_COUNT * sizeof *part->buckets);
}

static void put_thread(struct channel *c, const struct region_thread_row *row)
{
	const struct thread_record record = {row->index, row->ident, row->native_id, row->start,
					     row->end,   row->cpu,   row->rank,      row->daemon};

	channel_put(c, &record, sizeof record);
	channel_put_text(c, row->name);
}

static void put_trouble(struct channel *c, const struct region_trouble_count *row)
{
	const struct trouble_record record = {row->count, row->rank, row->kind};

	channel_put(c, &record, sizeof record);
	channel_put_text(c, row->example);
}

static void put_piece(struct channel *c, const struct region_piece *piece)
{
	const struct piece_record record = {piece->at,   piece->chunk_rows, piece->chunk_count,
					    piece->kind, piece->shuffle,    piece->deflate};

	channel_put(c, &record, sizeof record);
	channel_put(c, piece->chunks, piece->chunk_count * sizeof *piece->chunks);
}

static void put_stored(struct channel *c, const struct region_stored *s)
{
	channel_put_number(c, s->deltas);
	channel_put_number(c, s->window);
	channel_put_number(c, s->piece_count);
	for (size_t column = 0; column < REGION_COLUMNS; column++) {
		channel_put_number(c, s->pieces[column] != NULL);
		for (size_t i = 0; s->pieces[column] && i < s->piece_count; i++)
			put_piece(c, &s->pieces[column][i]);
	}
}

void region_tape_put(struct channel *c, const struct regions *r, const struct region_stored *s)
{
	channel_put_number(c, r->layout);
	channel_put_number(c, r->columns);
	channel_put_number(c, r->call_count);
	channel_put_number(c, r->name_count);
	for (size_t i = 0; i < r->name_count; i++)
		channel_put_text(c, r->names[i]);
	channel_put_number(c, r->rank_count);
	for (size_t i = 0; i < r->rank_count; i++)
		channel_put_number(c, r->ranks[i]);
	channel_put_number(c, r->part_count);
	for (size_t i = 0; i < r->part_count; i++)
		put_part(c, &r->parts[i]);
	channel_put_number(c, r->thread_count);
	for (size_t i = 0; i < r->thread_count; i++)
		put_thread(c, &r->threads[i]);
	channel_put_number(c, r->trouble_count);
	for (size_t i = 0; i < r->trouble_count; i++)
		put_trouble(c, &r->troubles[i]);
	channel_put_number(c, r->fact_count);
	for (size_t i = 0; i < r->fact_count; i++) {
		channel_put_text(c, r->facts[i].key);
		channel_put_text(c, r->facts[i].value);
	}
	channel_put_number(c, r->note_count);
	for (size_t i = 0; i < r->note_count; i++)
		channel_put_text(c, r->notes[i]);
	put_stored(c, s);
}

/* Replaces *text. */
static int take_text(struct channel *c, char **text)
{
	char *came = channel_take_text(c);

	if (!came)
		return -1;
	region_text_own(text, came);
	return 0;
}

static int take_names(struct channel *c, struct regions *r, struct error *err)
{
	uint64_t count;

	if (channel_take_number(c, UINT32_MAX, &count) < 0)
		return -1;
	for (uint64_t i = 0; i < count; i++) {
		CLEANUP(free_cleanup) char *name = channel_take_text(c);
		int64_t index = name ? regions_name(r, name, err) : -1;

		if (!name)
			return -1;
		if (index < 0)
			return NO_MEMORY;
		if ((uint64_t)index != i)
			return channel_nonsense(c);
	}
	return 0;
}

static int take_ranks(struct channel *c, struct regions *r, struct error *err)
{
	uint64_t count, rank;

	if (channel_take_number(c, UINT32_MAX, &count) < 0)
		return -1;
	for (uint64_t i = 0; i < count; i++) {
		if (channel_take_number(c, UINT32_MAX - 1, &rank) < 0)
			return -1;
		if (i && rank <= r->ranks[i - 1])
			return channel_nonsense(c);
		if (regions_add_rank(r, (uint32_t)rank, err) < 0)
			return NO_MEMORY;
	}
	return 0;
}

static int by_rank(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

static bool has_rank(const struct regions *r, uint32_t rank)
{
	return r->rank_count && bsearch(&rank, r->ranks, r->rank_count, sizeof rank, by_rank);
}

static int take_buckets(struct channel *c, struct region_part *part, double ns_per_unit, struct error *err)
{
	if (!isfinite(ns_per_unit) || ns_per_unit <= 0)
		return channel_nonsense(c);
	part->buckets = calloc(REGION_BUCKET_COUNT, sizeof *part->buckets);
	if (!part->buckets)
		return error_set(err, "out of memory for a histogram"), NO_MEMORY;
	part->ns_per_unit = ns_per_unit;
	return channel_take(c, part->buckets, REGION_BUCKET_COUNT * sizeof *part->buckets);
}

static int take_part(struct channel *c, struct regions *r, struct error *err)
{
	struct part_record record;
	struct region_part *part;

	if (channel_take(c, &record, sizeof record) < 0)
		return -1;
	if (record.region >= r->name_count || !has_rank(r, record.rank) || record.calls > INT64_MAX ||
	    record.dropped > INT64_MAX || record.timed > INT64_MAX)
		return channel_nonsense(c);
	part = regions_add_part(r, record.rank, record.region, err);
	if (!part)
		return NO_MEMORY;
	part->first = record.first;
	part->count = record.count;
	part->calls = record.calls;
	part->dropped = record.dropped;
	part->timed = record.timed;
	part->exclusive = record.exclusive;
	part->line = record.line;
	part->summary = record.summary;
	part->summarised = record.summarised != 0;
	if (take_text(c, &part->file) < 0 || take_text(c, &part->text) < 0 || take_text(c, &part->tags) < 0 ||
	    take_text(c, &part->metadata) < 0)
		return -1;
	return record.has_buckets ? take_buckets(c, part, record.ns_per_unit, err) : 0;
}

static int take_thread(struct channel *c, struct regions *r, struct error *err)
{
	struct thread_record record;
	struct region_thread_row *row;

	if (channel_take(c, &record, sizeof record) < 0)
		return -1;
	row = regions_add_thread(r, err);
	if (!row)
		return NO_MEMORY;
	row->rank = record.rank;
	row->index = record.index;
	row->ident = record.ident;
	row->native_id = record.native_id;
	row->start = record.start;
	row->end = record.end;
	row->cpu = record.cpu;
	row->daemon = record.daemon != 0;
	return take_text(c, &row->name);
}

static int take_trouble(struct channel *c, struct regions *r, struct error *err)
{
	struct region_trouble_count *row;
	struct trouble_record record;

	if (channel_take(c, &record, sizeof record) < 0)
		return -1;
	if (record.kind >= REGION_TROUBLES || record.count > INT64_MAX)
		return channel_nonsense(c);
	row = regions_add_trouble(r, err);
	if (!row)
		return NO_MEMORY;
	row->rank = record.rank;
	row->kind = record.kind;
	row->count = record.count;
	return take_text(c, &row->example);
}

static int take_fact(struct channel *c, struct regions *r, struct error *err)
{
	CLEANUP(free_cleanup) char *key = channel_take_text(c);
	CLEANUP(free_cleanup) char *value = key ? channel_take_text(c) : NULL;

	if (!value)
		return -1;
	return regions_set_fact(r, key, value, err) < 0 ? NO_MEMORY : 0;
}

static int take_note(struct channel *c, struct regions *r, struct error *err)
{
	CLEANUP(free_cleanup) char *note = channel_take_text(c);

	if (!note)
		return -1;
	return regions_add_note(r, "%s", note) < 0 ? (error_set(err, "out of memory for a note"), NO_MEMORY) : 0;
}

struct tape_table {
	int (*take)(struct channel *c, struct regions *r, struct error *err);
	uint64_t limit; /* rows */
};

static int take_table(struct channel *c, struct regions *r, const struct tape_table *table, struct error *err)
{
	uint64_t count;
	int result = channel_take_number(c, table->limit, &count);

	for (uint64_t i = 0; result == 0 && i < count; i++)
		result = table->take(c, r, err);
	return result;
}

static int take_piece(struct channel *c, struct region_piece *piece, uint64_t file_size, struct error *err)
{
	struct piece_record record;

	if (channel_take(c, &record, sizeof record) < 0)
		return -1;
	/* Chunks take some bytes of the file, each. */
	if (record.kind > REGION_PIECE_FENCED || record.chunk_count > file_size)
		return channel_nonsense(c);
	piece->kind = (enum region_piece_kind)record.kind;
	piece->at = record.at;
	piece->chunk_rows = record.chunk_rows;
	piece->shuffle = record.shuffle != 0;
	piece->deflate = record.deflate != 0;
	if (record.chunk_count == 0)
		return 0;
	piece->chunks = calloc(record.chunk_count, sizeof *piece->chunks);
	if (!piece->chunks)
		return error_set(err, "out of memory for the index of its calls"), NO_MEMORY;
	piece->chunk_count = record.chunk_count;
	return channel_take(c, piece->chunks, piece->chunk_count * sizeof *piece->chunks);
}

static int take_stored(struct channel *c, const struct regions *r, struct region_stored *s, uint64_t file_size,
		       struct error *err)
{
	uint64_t deltas, count, there;

	if (channel_take_number(c, 1, &deltas) < 0 || channel_take_number(c, REGION_WINDOW_MAX, &s->window) < 0 ||
	    channel_take_number(c, r->part_count + 1, &count) < 0)
		return -1;
	s->deltas = deltas != 0;
	s->piece_count = count;
	for (size_t column = 0; column < REGION_COLUMNS; column++) {
		int result = channel_take_number(c, 1, &there);

		if (result == 0 && there) {
			s->pieces[column] = calloc(count + 1, sizeof *s->pieces[column]);
			if (!s->pieces[column])
				return error_set(err, "out of memory for the columns of %zu regions", s->piece_count),
				       NO_MEMORY;
		}
		for (size_t i = 0; result == 0 && there && i < count; i++)
			result = take_piece(c, &s->pieces[column][i], file_size, err);
		if (result < 0)
			return result;
	}
	return 0;
}

static int take_everything(struct channel *c, struct regions *r, struct region_stored *s, uint64_t file_size,
			   struct error *err)
{
	static const struct tape_table tables[] = {
		{take_part, UINT32_MAX},   {take_thread, UINT32_MAX}, {take_trouble, UINT32_MAX},
		{take_fact, REGION_FACTS_MAX},    {take_note, UINT32_MAX},
	};
	uint64_t layout, columns;
	int result;

	if (channel_take_number(c, 3, &layout) < 0 ||
	    channel_take_number(c, (1u << REGION_COLUMNS) - 1, &columns) < 0 ||
	    channel_take_number(c, INT64_MAX, &r->call_count) < 0)
		return -1;
	if (layout == 0)
		return channel_nonsense(c);
	r->layout = (unsigned)layout;
	r->columns = (unsigned)columns;
	result = take_names(c, r, err);
	if (result == 0)
		result = take_ranks(c, r, err);
	for (size_t i = 0; result == 0 && i < sizeof tables / sizeof *tables; i++)
		result = take_table(c, r, &tables[i], err);
	return result == 0 ? take_stored(c, r, s, file_size, err) : result;
}

int region_tape_take(struct channel *c, struct regions *r, struct region_stored *s, uint64_t file_size,
		     struct error *err)
{
	int result = take_everything(c, r, s, file_size, err);

	if (result < 0)
		return result;
	return region_parts_check(r, err) < 0 || region_stored_check(s, r, file_size, err) < 0 ? -2 : 0;
}
