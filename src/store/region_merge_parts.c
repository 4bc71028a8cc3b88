/* What becomes of a rank that has been merged: rows of the tables of threads, wrong use, and regions. */
#include "store/region_merging.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

int merge_threads(struct merging *m, struct merge_rank *r, struct error *err)
{
	int64_t next = 0;

	for (size_t i = 0; i < r->process_count; i++) {
		struct merge_process *p = &r->processes[i];

		p->thread_base = next;
		for (size_t k = 0; k < p->details.thread_count; k++) {
			const struct region_log_thread *t = &p->details.threads[k];
			struct region_thread_row *row = regions_add_thread(&m->regions, err);

			if (!row)
				return -1;
			row->rank = r->rank;
			row->index = next++;
			row->ident = row->native_id = t->tid;
			row->start = t->start < 0 ? REGIONS_UNKNOWN : region_clocks_mono(&p->clocks, t->start);
			row->end = t->end < 0 ? REGIONS_UNKNOWN : region_clocks_mono(&p->clocks, t->end);
			row->cpu = t->cpu < 0 ? REGIONS_UNKNOWN : t->cpu;
			if (region_text(&row->name, t->name, err) < 0)
				return -1;
		}
	}
	return 0;
}

static int add_troubles(struct merging *m, const struct merge_rank *r, struct error *err)
{
	for (uint32_t i = 0; i < REGION_TROUBLES; i++) {
		struct region_trouble_count *row;

		if (!r->troubles[i])
			continue;
		row = regions_add_trouble(&m->regions, err);
		if (!row)
			return -1;
		row->rank = r->rank;
		row->kind = i;
		row->count = r->troubles[i];
		if (r->examples[i] && region_text(&row->example, r->examples[i], err) < 0)
			return -1;
	}
	return 0;
}

static void append_json_text(struct buf *out, const char *text, size_t length)
{
	buf_putc(out, '"');
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c < 0x20)
			buf_printf(out, "\\u%04x", c);
		else
			buf_putc(out, (char)c);
	}
	buf_putc(out, '"');
}

/* "a=1,b" as {"a":"1","b":""}. */
static int set_tags(struct region_part *part, const char *tags, struct error *err)
{
	CLEANUP(buf_release) struct buf json;

	buf_init(&json);
	if (!*tags)
		return 0;
	for (const char *at = tags; *at;) {
		size_t length = strcspn(at, ","), key = strcspn(at, "=,");

		buf_puts(&json, at == tags ? "{" : ",");
		append_json_text(&json, at, key);
		buf_putc(&json, ':');
		append_json_text(&json, at + key + (key < length), length - key - (key < length));
		at += length + (at[length] == ',');
	}
	buf_putc(&json, '}');
	if (json.failed)
		return error_set(err, "out of memory for the tags of a region");
	return region_text(&part->tags, json.text, err);
}

static int fill_part(struct region_part *part, struct merge_part *from, uint64_t first, struct error *err)
{
	part->first = first + from->first;
	part->count = from->count;
	part->calls = from->count + from->added;
	part->dropped = from->dropped;
	part->timed = from->timed;
	if (from->count || from->timed)
		part->exclusive = from->exclusive < 0 ? 0 : from->exclusive;
	part->summarised = from->timed > 0;
	if (part->summarised) {
		part->summary = from->summary;
		part->buckets = from->buckets;
		part->ns_per_unit = from->ns_per_unit;
		from->buckets = NULL;
	}
	if (!from->named)
		return 0;
	if (from->named->line)
		part->line = from->named->line;
	if (region_text(&part->file, from->named->file, err) < 0)
		return -1;
	return set_tags(part, from->named->tags, err);
}

static int by_name(const void *a, const void *b)
{
	const struct merge_part *one = a, *other = b;

	return (one->name > other->name) - (one->name < other->name);
}

int merge_parts(struct merging *m, struct merge_rank *r, struct error *err)
{
	uint64_t first = m->regions.call_count;

	if (add_troubles(m, r, err) < 0)
		return -1;
	for (size_t i = 0; i < r->part_count; i++)
		m->part_of[r->parts[i].name] = 0;
	if (r->part_count)
		qsort(r->parts, r->part_count, sizeof *r->parts, by_name);
	for (size_t i = 0; i < r->part_count; i++) {
		struct region_part *part = regions_add_part(&m->regions, r->rank, r->parts[i].name, err);

		if (!part || fill_part(part, &r->parts[i], first, err) < 0)
			return -1;
	}
	m->regions.call_count += r->rows;
	return 0;
}
