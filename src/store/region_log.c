/* The tables of processes. Records of unknown types are passed over; those that are too short for what they say they
 * are count as damage, and what stands behind damage is not read. */
#include "store/region_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "store/segments.h"

#define THREADS_MAX (1u << 22) /* a table that tells of more is a hostile one */
#define PAIRS_MAX (1u << 22)

/* A record's payload that is looked through from its beginning. */
struct payload {
	const char *at;
	size_t left;
};

typedef int (*record_reader)(void *context, uint16_t type, struct payload p, struct error *err);

/* Copies a fixed part; what the record lacks is an error of -1 without a sentence. */
static int take(struct payload *p, void *to, size_t size)
{
	if (p->left < size)
		return -1;
	memcpy(to, p->at, size);
	p->at += size;
	p->left -= size;
	return 0;
}

/* The next text, valid UTF-8; owned. "" where none is left. */
static char *take_text(struct payload *p)
{
	CLEANUP(buf_release) struct buf clean;
	size_t length = strnlen(p->at, p->left);
	const char *text = p->at;

	buf_init(&clean);
	p->at += length;
	p->left -= length;
	if (p->left) {
		p->at++;
		p->left--;
	}
	utf8_append_clean(&clean, text, length);
	return buf_detach(&clean);
}

/* Makes room in an array whose room is always a power of two. */
static int grow(void *array, size_t count, size_t size, struct error *err)
{
	void *old, *room;

	if (count & (count - 1))
		return 0;
	memcpy(&old, array, sizeof old);
	room = reallocarray(old, count ? 2 * count : 1, size);
	if (!room)
		return error_set(err, "out of memory for the table of a process");
	memcpy(array, &room, sizeof room);
	return 0;
}

static int short_record(uint16_t type, struct error *err)
{
	error_set(err, "a record of type %u is too short", (unsigned)type);
	return 1;
}

/* Gives each record to `each`: which returns 0; 1 with *err where the record is bad (damage); -1 with *err to stop.
 * *ret_damage: owned, NULL: none. */
static int read_table(const struct region_log *l, record_reader each, void *context, char **ret_damage,
		      struct segment_facts *ret_facts, struct error *err)
{
	CLEANUP(segment_reader_cleanup) struct segment_reader *reader = NULL;
	CLEANUP(free_cleanup) char *path = region_log_table_path(l);
	struct segment_record record;
	struct error reason;
	const void *payload;
	int got;

	if (!path)
		return error_set(err, "out of memory for the name of a table");
	if (segment_reader_open(path, SEGMENT_KIND_REGIONS, &reader, err) < 0)
		return -1;
	segment_reader_facts(reader, ret_facts);
	while ((got = segment_reader_next(reader, &record, &payload, &reason)) == 1) {
		int bad = each(context, record.type, (struct payload){payload, record.used}, &reason);

		if (bad < 0)
			return error_set(err, "%s", reason.text);
		if (bad > 0) {
			error_prefix(&reason, "%s: damaged", path);
			got = -1;
			break;
		}
	}
	if (got < 0) {
		*ret_damage = strdup(reason.text);
		if (!*ret_damage)
			return error_set(err, "out of memory for a note");
	}
	return 0;
}

struct log_reading {
	struct region_log *log;
	bool begun;
};

static int read_process(struct log_reading *reading, struct payload p, struct error *err)
{
	struct region_log *l = reading->log;
	struct region_process process;

	if (take(&p, &process, sizeof process) < 0)
		return short_record(REGION_RECORD_PROCESS, err);
	if (process.layout != REGION_LAYOUT_VERSION) {
		error_set(err, "layout %u of recordings, this program reads layout %d", (unsigned)process.layout,
			  REGION_LAYOUT_VERSION);
		return 1;
	}
	if (process.clock != REGION_CLOCK_MONOTONIC && process.clock != REGION_CLOCK_TSC) {
		error_set(err, "no such clock: %u", (unsigned)process.clock);
		return 1;
	}
	process.boot_id[sizeof process.boot_id - 1] = 0;
	free(l->host);
	free(l->command);
	l->process = process;
	l->host = take_text(&p);
	l->command = take_text(&p);
	if (!l->host || !l->command)
		return error_set(err, "out of memory for the table of a process");
	reading->begun = true;
	return 0;
}

static int read_log_record(void *context, uint16_t type, struct payload p, struct error *err)
{
	struct log_reading *reading = context;
	struct region_log *l = reading->log;

	if (!reading->begun && type != REGION_RECORD_PROCESS) {
		error_set(err, "its first record does not tell of the process");
		return 1;
	}
	switch (type) {
	case REGION_RECORD_PROCESS:
		return read_process(reading, p, err);
	case REGION_RECORD_RANK:
		if (take(&p, &l->rank, sizeof l->rank) < 0)
			return short_record(type, err);
		l->ranked = true;
		return 0;
	case REGION_RECORD_OFFSET:
		if (grow(&l->offsets, l->offset_count, sizeof *l->offsets, err) < 0)
			return -1;
		if (take(&p, &l->offsets[l->offset_count], sizeof *l->offsets) < 0)
			return short_record(type, err);
		l->offset_count += l->offset_count < PAIRS_MAX;
		return 0;
	case REGION_RECORD_CLOCK:
		if (grow(&l->pairs, l->pair_count, sizeof *l->pairs, err) < 0)
			return -1;
		if (take(&p, &l->pairs[l->pair_count], sizeof *l->pairs) < 0)
			return short_record(type, err);
		l->pair_count += l->pair_count < PAIRS_MAX;
		return 0;
	default:
		return 0;
	}
}

int region_log_read(struct region_log *l, struct error *err)
{
	struct log_reading reading = {.log = l};
	struct segment_facts facts;

	if (read_table(l, read_log_record, &reading, &l->damage, &facts, err) < 0)
		return -1;
	if (!reading.begun)
		return l->damage ? error_set(err, "%s", l->damage)
				 : error_set(err, "%s/%s%s: holds no record", l->folder, l->name, REGION_TABLE_SUFFIX);
	l->closed = facts.closed;
	l->lost = facts.dropped;
	return 0;
}

void region_details_init(struct region_details *d)
{
	*d = (struct region_details){0};
}

static void release_name(struct region_log_name *n)
{
	free(n->name);
	free(n->file);
	free(n->tags);
}

void region_details_release(struct region_details *d)
{
	for (size_t i = 0; i < d->name_count; i++)
		release_name(&d->names[i]);
	for (size_t i = 0; i < d->thread_count; i++)
		free(d->threads[i].name);
	for (size_t i = 0; i < d->fact_count; i++) {
		free(d->facts[i].key);
		free(d->facts[i].value);
	}
	free(d->names);
	free(d->threads);
	free(d->facts);
	region_details_init(d);
}

static int room_for_name(struct region_details *d, uint32_t id, struct error *err)
{
	while (d->name_count <= id) {
		if (grow(&d->names, d->name_count, sizeof *d->names, err) < 0)
			return -1;
		d->names[d->name_count++] = (struct region_log_name){0};
	}
	return 0;
}

static int read_name(struct region_details *d, struct payload p, struct error *err)
{
	struct region_log_name name = {0};
	struct region_name head;

	if (take(&p, &head, sizeof head) < 0)
		return short_record(REGION_RECORD_NAME, err);
	if (head.id == 0 || head.id > REGION_ID_MAX) {
		error_set(err, "a region of number %u cannot be", (unsigned)head.id);
		return 1;
	}
	if (room_for_name(d, head.id, err) < 0)
		return -1;
	name.line = head.line;
	name.name = take_text(&p);
	name.file = take_text(&p);
	name.tags = take_text(&p);
	if (!name.name || !name.file || !name.tags) {
		release_name(&name);
		return error_set(err, "out of memory for the name of a region");
	}
	release_name(&d->names[head.id]);
	d->names[head.id] = name;
	return 0;
}

static int read_thread(struct region_details *d, struct payload p, struct error *err)
{
	struct region_thread_born born;
	struct region_log_thread *t;

	if (take(&p, &born, sizeof born) < 0)
		return short_record(REGION_RECORD_THREAD, err);
	if (d->thread_count >= THREADS_MAX) {
		error_set(err, "more than %u threads", THREADS_MAX);
		return 1;
	}
	if (grow(&d->threads, d->thread_count, sizeof *d->threads, err) < 0)
		return -1;
	t = &d->threads[d->thread_count];
	*t = (struct region_log_thread){
		.index = born.index, .tid = born.tid, .start = born.mono_ns, .end = -1, .cpu = -1};
	t->name = take_text(&p);
	if (!t->name)
		return error_set(err, "out of memory for the name of a thread");
	d->thread_count++;
	return 0;
}

/* An end is kept as a thread of its own without a name, which close_threads() then joins with its beginning. */
static int read_thread_end(struct region_details *d, struct payload p, struct error *err)
{
	struct region_thread_end end;

	if (take(&p, &end, sizeof end) < 0)
		return short_record(REGION_RECORD_THREAD_END, err);
	if (d->thread_count >= THREADS_MAX) {
		error_set(err, "more than %u threads", THREADS_MAX);
		return 1;
	}
	if (grow(&d->threads, d->thread_count, sizeof *d->threads, err) < 0)
		return -1;
	d->threads[d->thread_count++] = (struct region_log_thread){
		.index = end.index, .start = -1, .end = end.mono_ns, .cpu = end.cpu_ns};
	return 0;
}

static int read_fact(struct region_details *d, struct payload p, struct error *err)
{
	struct region_log_fact fact;

	if (grow(&d->facts, d->fact_count, sizeof *d->facts, err) < 0)
		return -1;
	fact.key = take_text(&p);
	fact.value = take_text(&p);
	if (!fact.key || !fact.value) {
		free(fact.key);
		free(fact.value);
		return error_set(err, "out of memory for the metadata of a process");
	}
	d->facts[d->fact_count++] = fact;
	return 0;
}

static int read_details_record(void *context, uint16_t type, struct payload p, struct error *err)
{
	struct region_details *d = context;
	struct region_trouble_note trouble;

	switch (type) {
	case REGION_RECORD_NAME:
		return read_name(d, p, err);
	case REGION_RECORD_THREAD:
		return read_thread(d, p, err);
	case REGION_RECORD_THREAD_END:
		return read_thread_end(d, p, err);
	case REGION_RECORD_METADATA:
		return read_fact(d, p, err);
	case REGION_RECORD_TROUBLE:
		if (take(&p, &trouble, sizeof trouble) < 0)
			return short_record(type, err);
		if (trouble.kind < REGION_TROUBLES && !d->examples[trouble.kind] && trouble.region <= REGION_ID_MAX)
			d->examples[trouble.kind] = trouble.region;
		return 0;
	default:
		return 0;
	}
}

/* Beginnings before ends, of each thread. */
static int by_index(const void *a, const void *b)
{
	const struct region_log_thread *one = a, *other = b;

	if (one->index != other->index)
		return (one->index > other->index) - (one->index < other->index);
	return !one->name - !other->name;
}

static void close_threads(struct region_details *d)
{
	size_t kept = 0;

	if (d->thread_count)
		qsort(d->threads, d->thread_count, sizeof *d->threads, by_index);
	for (size_t i = 0; i < d->thread_count; i++) {
		struct region_log_thread *t = &d->threads[i], *last = kept ? &d->threads[kept - 1] : NULL;

		if (last && last->index == t->index) {
			if (!t->name) {
				last->end = t->end;
				last->cpu = t->cpu;
			}
			free(t->name);
		} else if (t->name) {
			d->threads[kept++] = *t;
		}
	}
	d->thread_count = kept;
}

int region_details_read(const struct region_log *l, struct region_details *ret, struct error *err)
{
	CLEANUP(free_cleanup) char *damage = NULL;
	struct segment_facts facts;
	int failed = read_table(l, read_details_record, ret, &damage, &facts, err);

	close_threads(ret);
	return failed;
}

const struct region_log_thread *region_details_thread(const struct region_details *d, uint32_t index)
{
	size_t low = 0, high = d->thread_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (d->threads[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->thread_count && d->threads[low].index == index ? &d->threads[low] : NULL;
}
