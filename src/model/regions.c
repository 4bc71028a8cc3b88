#include "model/regions.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void regions_init(struct regions *r)
{
	*r = (struct regions){0};
}

/* Every text that is empty: most are, and there are four to each of what may be a million parts. Plug-ins have a copy
 * of their own, so that it is told by what it holds, not by where it is. */
static char no_text[1];

static void release_text(char *text)
{
	if (text && *text)
		free(text);
}

static void release_texts(char **texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		release_text(texts[i]);
	free(texts);
}

static void release_parts(struct region_part *parts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		release_text(parts[i].file);
		release_text(parts[i].text);
		release_text(parts[i].tags);
		release_text(parts[i].metadata);
		free(parts[i].buckets);
	}
	free(parts);
}

void regions_release(struct regions *r)
{
	free(r->path);
	release_texts(r->names, r->name_count);
	free(r->name_slots);
	release_parts(r->parts, r->part_count);
	free(r->ranks);
	for (size_t i = 0; i < r->thread_count; i++)
		release_text(r->threads[i].name);
	free(r->threads);
	for (size_t i = 0; i < r->trouble_count; i++)
		release_text(r->troubles[i].example);
	free(r->troubles);
	for (size_t i = 0; i < r->fact_count; i++) {
		release_text(r->facts[i].key);
		release_text(r->facts[i].value);
	}
	free(r->facts);
	release_texts(r->notes, r->note_count);
	regions_init(r);
}

/* Makes room for one more of `count` items: their room is always the next power of two. Returns 0 or -1. */
static int grow(void *array, size_t count, size_t size, const char *what, struct error *err)
{
	void *old, *room;

	if (count & (count - 1)) /* no power of two, and not 0 */
		return 0;
	memcpy(&old, array, sizeof old);
	room = reallocarray(old, count ? 2 * count : 1, size);
	if (!room)
		return error_set(err, "out of memory for %zu %s", count + 1, what);
	memcpy(array, &room, sizeof room);
	return 0;
}

void region_text_own(char **text, char *value)
{
	release_text(*text);
	*text = value;
	if (*value)
		return;
	free(value);
	*text = no_text;
}

int region_text(char **text, const char *value, struct error *err)
{
	char *copy = strdup(value);

	if (!copy)
		return error_set(err, "out of memory for a text of %zu bytes", strlen(value));
	region_text_own(text, copy);
	return 0;
}

static size_t home_of(const struct regions *r, const char *name)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
	return (size_t)(hash ^ hash >> 29) & (r->name_slot_count - 1);
}

static int grow_slots(struct regions *r, struct error *err)
{
	size_t count = r->name_slot_count ? 2 * r->name_slot_count : 64;
	uint32_t *slots;

	if (2 * (r->name_count + 1) < r->name_slot_count)
		return 0;
	if (r->name_count >= UINT32_MAX / 4)
		return error_set(err, "more than %u names of regions", UINT32_MAX / 4);
	slots = calloc(count, sizeof *slots);
	if (!slots)
		return error_set(err, "out of memory for %zu names of regions", r->name_count + 1);
	free(r->name_slots);
	r->name_slots = slots;
	r->name_slot_count = count;
	for (size_t i = 0; i < r->name_count; i++) {
		size_t at = home_of(r, r->names[i]);

		while (slots[at])
			at = (at + 1) & (count - 1);
		slots[at] = (uint32_t)i + 1;
	}
	return 0;
}

int64_t regions_name(struct regions *r, const char *name, struct error *err)
{
	size_t at;

	if (grow_slots(r, err) < 0 || grow(&r->names, r->name_count, sizeof *r->names, "names of regions", err) < 0)
		return -1;
	for (at = home_of(r, name); r->name_slots[at]; at = (at + 1) & (r->name_slot_count - 1))
		if (strcmp(r->names[r->name_slots[at] - 1], name) == 0)
			return r->name_slots[at] - 1;
	r->names[r->name_count] = NULL;
	if (region_text(&r->names[r->name_count], name, err) < 0)
		return -1;
	r->name_slots[at] = (uint32_t)r->name_count + 1;
	return (int64_t)r->name_count++;
}

struct region_part *regions_add_part(struct regions *r, uint32_t rank, uint32_t region, struct error *err)
{
	struct region_part *part;

	if (grow(&r->parts, r->part_count, sizeof *r->parts, "regions of ranks", err) < 0)
		return NULL;
	part = &r->parts[r->part_count];
	*part = (struct region_part){.rank = rank,
				     .region = region,
				     .exclusive = -1,
				     .line = -1,
				     .file = no_text,
				     .text = no_text,
				     .tags = no_text,
				     .metadata = no_text};
	r->part_count++;
	return part;
}

int regions_add_rank(struct regions *r, uint32_t rank, struct error *err)
{
	size_t low = 0, high = r->rank_count;

	if (high && r->ranks[high - 1] < rank)
		low = high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->ranks[middle] < rank)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < r->rank_count && r->ranks[low] == rank)
		return 0;
	if (grow(&r->ranks, r->rank_count, sizeof *r->ranks, "ranks", err) < 0)
		return -1;
	memmove(r->ranks + low + 1, r->ranks + low, (r->rank_count - low) * sizeof *r->ranks);
	r->ranks[low] = rank;
	r->rank_count++;
	return 0;
}

struct region_thread_row *regions_add_thread(struct regions *r, struct error *err)
{
	struct region_thread_row *row;

	if (grow(&r->threads, r->thread_count, sizeof *r->threads, "threads", err) < 0)
		return NULL;
	row = &r->threads[r->thread_count];
	*row = (struct region_thread_row){.start = -1, .end = -1, .cpu = -1, .name = no_text};
	r->thread_count++;
	return row;
}

struct region_trouble_count *regions_add_trouble(struct regions *r, struct error *err)
{
	struct region_trouble_count *row;

	if (grow(&r->troubles, r->trouble_count, sizeof *r->troubles, "kinds of trouble", err) < 0)
		return NULL;
	row = &r->troubles[r->trouble_count];
	*row = (struct region_trouble_count){.example = no_text};
	r->trouble_count++;
	return row;
}

int regions_set_fact(struct regions *r, const char *key, const char *value, struct error *err)
{
	struct region_fact *fact;

	for (size_t i = 0; i < r->fact_count; i++)
		if (strcmp(r->facts[i].key, key) == 0)
			return region_text(&r->facts[i].value, value, err);
	if (grow(&r->facts, r->fact_count, sizeof *r->facts, "facts about the run", err) < 0)
		return -1;
	fact = &r->facts[r->fact_count];
	*fact = (struct region_fact){0};
	if (region_text(&fact->key, key, err) < 0)
		return -1;
	if (region_text(&fact->value, value, err) < 0) {
		release_text(fact->key);
		return -1;
	}
	r->fact_count++;
	return 0;
}

int regions_add_note(struct regions *r, const char *format, ...)
{
	va_list args;
	char *text;
	int got;

	va_start(args, format);
	got = vasprintf(&text, format, args);
	va_end(args);
	if (got < 0)
		return -1;
	if (grow(&r->notes, r->note_count, sizeof *r->notes, "notes", NULL) < 0) {
		free(text);
		return -1;
	}
	r->notes[r->note_count++] = text;
	return 0;
}

const char *regions_fact(const struct regions *r, const char *key)
{
	for (size_t i = 0; i < r->fact_count; i++)
		if (strcmp(r->facts[i].key, key) == 0)
			return r->facts[i].value;
	return NULL;
}

/* 16 to each octave from 16 on, one to each number below; the last one has no upper bound. */
void region_bucket_bounds(unsigned i, uint64_t *ret_low, uint64_t *ret_high)
{
	unsigned shift = i < 16 ? 0 : i / 16 - 1;
	uint64_t step = i < 16 ? i : i % 16 + 16;

	*ret_low = step << shift;
	*ret_high = i + 1 < REGION_BUCKET_COUNT ? (step + 1) << shift : UINT64_MAX;
}

/* By enum region_trouble of wire/regions.h. */
static const char *const trouble_texts[] = {
	"ended without a beginning",
	"never ended before a region around them did",
	"still open when their thread or the recording ended",
	"ended after a region that was begun before them",
	"ended in another thread than they began in",
	"open at a fork and ended in the child",
	"open while the mode of recording changed",
	"nested too deep to be kept",
	"ended by a token that was used before or is none",
	"of regions beyond the number of names that is kept",
};

const char *region_trouble_text(uint32_t kind)
{
	return kind < sizeof trouble_texts / sizeof *trouble_texts ? trouble_texts[kind] : "of an unknown kind";
}

static const char *const trouble_names[] = {
	"no_begin", "no_end",   "unfinished", "crossed",   "other_thread",
	"forked",   "switched", "too_deep",   "bad_token", "other_names",
};

const char *region_trouble_name(uint32_t kind)
{
	return kind < sizeof trouble_names / sizeof *trouble_names ? trouble_names[kind] : "unknown";
}
