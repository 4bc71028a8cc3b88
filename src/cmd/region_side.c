#include "cmd/region_side.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "store/region_rows.h"

#define NS_PER_S INT64_C(1000000000)
#define REFUSED_KEY "libassay_refused" /* among the facts of a file: why libassay stopped recording */
#define ROW_NOTES_MOST 8 /* of a file's own notes */

void region_side_init(struct region_side *s)
{
	*s = (struct region_side){0};
}

void region_side_release(struct region_side *s)
{
	for (size_t i = 0; i < s->count; i++) {
		region_table_release(&s->tables[i]);
		free(s->ranks[i]);
		free(s->files[i]);
	}
	free(s->tables);
	free(s->started);
	free(s->ranks);
	free(s->layouts);
	free(s->files);
	region_side_init(s);
}

/* Seconds east of UTC of "Z", "+02:00", "-0530"; 0 where there is none: local time, of one place on both sides. */
static int64_t zone_offset(const char *zone)
{
	unsigned hours, minutes;

	if ((*zone != '+' && *zone != '-') ||
	    (sscanf(zone + 1, "%2u:%2u", &hours, &minutes) != 2 && sscanf(zone + 1, "%2u%2u", &hours, &minutes) != 2))
		return 0;
	return (*zone == '-' ? -1 : 1) * (int64_t)(hours * 3600 + minutes * 60);
}

/* "2026-11-29T16:30:41.909590", with or without a fraction and a zone. */
static bool parse_timestamp(const char *text, int64_t *ret_ns)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	int64_t fraction = 0, unit = NS_PER_S;

	if (!end || tm.tm_year < 0 || tm.tm_year > 300) /* of what int64_t holds in ns */
		return false;
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9'; end++)
			if (unit > 1)
				fraction += (*end - '0') * (unit /= 10);
	*ret_ns = ((int64_t)timegm(&tm) - zone_offset(end)) * NS_PER_S + fraction;
	return true;
}

static int64_t start_of(const struct regions *r)
{
	const char *timestamp = regions_fact(r, "timestamp");
	int64_t ns;

	return timestamp && parse_timestamp(timestamp, &ns) ? ns : INT64_MIN;
}

/* The selected ranks of the file as "0-3,8"; NULL when out of memory. */
static char *ranks_text(const struct regions *r, const struct region_query *q)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	for (size_t i = 0; i < r->rank_count;) {
		uint32_t first = r->ranks[i], last = first;

		if (!region_query_takes_rank(q, first)) {
			i++;
			continue;
		}
		for (i++; i < r->rank_count && r->ranks[i] == last + 1 && region_query_takes_rank(q, last + 1); i++)
			last++;
		buf_printf(&text, "%s%" PRIu32, text.length ? "," : "", first);
		if (last > first)
			buf_printf(&text, "-%" PRIu32, last);
	}
	return buf_detach(&text);
}

static void note_file(const struct regions *r, const struct region_table *t, const struct region_query *q,
		      struct warnings *notes)
{
	CLEANUP(free_cleanup) char *missing = region_query_missing_ranks(q, r);
	const char *refused = regions_fact(r, REFUSED_KEY);
	uint64_t dropped = 0;
	size_t names = 0;

	if (missing)
		warnings_add(notes, "%s", missing);
	for (size_t i = 0; i < r->note_count && i < ROW_NOTES_MOST; i++)
		warnings_add(notes, "%s: %s", r->path, r->notes[i]);
	if (r->note_count > ROW_NOTES_MOST)
		warnings_add(notes, "%s: more such notes, which `assay inspect` shows: %s", r->path,
			     units_count((double)(r->note_count - ROW_NOTES_MOST)).text);
	for (size_t i = 0; i < t->note_count; i++)
		warnings_add(notes, "%s: %s", r->path, t->notes[i]);
	for (size_t i = 0; i < t->count; i++) {
		dropped += t->rows[i].dropped;
		names += t->rows[i].dropped > 0;
	}
	if (dropped)
		warnings_add(notes, "%s: calls that found no room and are in no figure: %s, of %s region%s", r->path,
			     units_count((double)dropped).text, units_count((double)names).text,
			     names == 1 ? "" : "s");
	if (refused)
		warnings_add(notes, "%s: a process could not record all of its regions: %s", r->path, refused);
}

/* Room for one more of everything. */
static int grow(struct region_side *s, struct error *err)
{
	size_t room = s->count + 1;
	struct region_table *tables = reallocarray(s->tables, room, sizeof *tables);
	int64_t *started = reallocarray(s->started, room, sizeof *started);
	char **ranks = reallocarray(s->ranks, room, sizeof *ranks);
	unsigned *layouts = reallocarray(s->layouts, room, sizeof *layouts);
	char **files = reallocarray(s->files, room, sizeof *files);

	s->tables = tables ? tables : s->tables;
	s->started = started ? started : s->started;
	s->ranks = ranks ? ranks : s->ranks;
	s->layouts = layouts ? layouts : s->layouts;
	s->files = files ? files : s->files;
	return tables && started && ranks && layouts && files ? 0 : error_set(err, "out of memory for %zu files", room);
}

static bool has_file(const struct region_side *s, const char *file)
{
	for (size_t i = 0; file && i < s->count; i++)
		if (s->files[i] && strcmp(s->files[i], file) == 0)
			return true;
	return false;
}

int region_side_add(struct region_side *s, const char *path, const struct region_query *q, struct warnings *notes,
		    struct error *err)
{
	CLEANUP(region_file_cleanup) struct region_file *file = NULL;
	CLEANUP(region_table_release) struct region_table table = {0};
	CLEANUP(free_cleanup) char *real = NULL;
	const struct regions *regions;
	char *ranks;

	if (s->count == REGION_RUNS_MOST)
		return error_set(err, "%s: a side has more than %d files", path, REGION_RUNS_MOST);
	if (grow(s, err) < 0 || region_file_open(path, &file, err) < 0 ||
	    region_rows(file, q, REGION_ROWS_BY_REGION, &table, err) < 0)
		return -1;
	regions = region_file_regions(file);
	real = realpath(regions->path, NULL);
	if (has_file(s, real)) {
		warnings_add(notes, "%s: it is named more than once on its side, and counts once", path);
		return 0;
	}
	ranks = ranks_text(regions, q);
	if (!ranks)
		return error_set(err, "%s: out of memory for its ranks", path);
	note_file(regions, &table, q, notes);
	s->tables[s->count] = table;
	s->started[s->count] = start_of(regions);
	s->layouts[s->count] = regions->layout;
	s->files[s->count] = real;
	s->ranks[s->count++] = ranks;
	real = NULL; /* handed over, like the next */
	region_table_init(&table);
	return 0;
}

/* Whichever file differs from the first one; NULL: none does. */
static const struct region_side *differing(const struct region_side *sides[2], bool by_layout, size_t *ret)
{
	for (int side = 0; side < 2; side++) {
		for (size_t i = 0; i < sides[side]->count; i++) {
			*ret = i;
			if (by_layout ? sides[side]->layouts[i] != sides[0]->layouts[0]
				      : strcmp(sides[side]->ranks[i], sides[0]->ranks[0]) != 0)
				return sides[side];
		}
	}
	return NULL;
}

static const char *rank_words(const char *ranks)
{
	return *ranks ? ranks : "none";
}

void region_sides_note(const struct region_side *a, const struct region_side *b, const struct region_diff *d,
		       struct warnings *notes)
{
	const struct region_side *sides[2] = {a, b}, *other;
	bool approximate = false;
	size_t at;

	if (!a->count || !b->count)
		return;
	other = differing(sides, false, &at);
	if (other)
		warnings_add(notes, "the files are of different ranks (%s: %s; %s: %s), and totals are sums over ranks",
			     a->tables[0].path, rank_words(a->ranks[0]), other->tables[at].path,
			     rank_words(other->ranks[at]));
	other = differing(sides, true, &at);
	if (other)
		warnings_add(notes, "%s is of layout %u and %s of layout %u", a->tables[0].path, a->layouts[0],
			     other->tables[at].path, other->layouts[at]);
	for (size_t i = 0; i < d->count; i++)
		approximate |= d->rows[i].approximate;
	if (approximate)
		warnings_add(notes, "some percentiles come from histograms (mode aggregate), within 1/16 of them");
}
