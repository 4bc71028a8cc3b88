/* The first look at the files of a rank, from the first event to the last: how many calls each region has, where
 * threads change, what the clock said, how far the file is good. After it, every call has its place. */
#include "store/region_merging.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define MARKS_MAX (1u << 22) /* changes of threads in a file: more are damage */

static void release_file(struct merge_file *f)
{
	free(f->path);
	free(f->uses);
	free(f->marks);
	free(f->open);
	free(f->sums);
}

void merge_rank_release(struct merge_rank *r)
{
	for (size_t i = 0; i < r->process_count; i++) {
		region_details_release(&r->processes[i].details);
		region_ramp_release(&r->processes[i].readings);
		region_clocks_release(&r->processes[i].clocks);
	}
	for (size_t i = 0; i < r->file_count; i++)
		release_file(&r->files[i]);
	for (size_t i = 0; i < r->part_count; i++)
		free(r->parts[i].buckets);
	for (size_t i = 0; i < REGION_TROUBLES; i++)
		free(r->examples[i]);
	free(r->processes);
	free(r->files);
	free(r->parts);
	*r = (struct merge_rank){0};
}

static int room_for_name(struct merging *m, size_t name, struct error *err)
{
	size_t room = m->part_of_room ? m->part_of_room : 1024;
	uint32_t *part_of;

	if (name < m->part_of_room)
		return 0;
	while (room <= name)
		room *= 2;
	part_of = reallocarray(m->part_of, room, sizeof *part_of);
	if (!part_of)
		return error_set(err, "out of memory for %zu names of regions", room);
	memset(part_of + m->part_of_room, 0, (room - m->part_of_room) * sizeof *part_of);
	m->part_of = part_of;
	m->part_of_room = room;
	return 0;
}

static int add_part(struct merge_rank *r, uint32_t name, const struct region_log_name *named, struct error *err)
{
	if ((r->part_count & (r->part_count - 1)) == 0) { /* their room is always a power of two */
		struct merge_part *parts =
			reallocarray(r->parts, r->part_count ? 2 * r->part_count : 1, sizeof *parts);

		if (!parts)
			return error_set(err, "out of memory for %zu regions", r->part_count + 1);
		r->parts = parts;
	}
	r->parts[r->part_count++] = (struct merge_part){.name = name, .named = named};
	return 0;
}

struct merge_part *merge_part_of(struct merging *m, struct merge_rank *r, struct merge_process *p, uint32_t id,
				 struct error *err)
{
	const struct region_log_name *named = id < p->details.name_count && p->details.names[id].name
						      ? &p->details.names[id]
						      : NULL;
	char number[32];
	int64_t name;

	snprintf(number, sizeof number, "(region %u)", (unsigned)id);
	name = regions_name(&m->regions, named ? named->name : number, err);
	if (name < 0 || room_for_name(m, (size_t)name, err) < 0)
		return NULL;
	if (!m->part_of[name]) {
		if (add_part(r, (uint32_t)name, named, err) < 0)
			return NULL;
		m->part_of[name] = (uint32_t)r->part_count;
		m->unnamed += !named;
	}
	return &r->parts[m->part_of[name] - 1];
}

static int add_mark(struct merge_file *f, uint64_t event, uint64_t thread, struct error *err)
{
	if ((f->mark_count & (f->mark_count - 1)) == 0) {
		struct merge_mark *marks =
			reallocarray(f->marks, f->mark_count ? 2 * f->mark_count : 1, sizeof *marks);

		if (!marks)
			return error_set(err, "out of memory for %zu changes of threads", f->mark_count + 1);
		f->marks = marks;
	}
	f->marks[f->mark_count++] = (struct merge_mark){event, thread < UINT32_MAX ? (uint32_t)thread : UINT32_MAX};
	return 0;
}

/* What a survey of one file counts up. */
struct survey {
	struct merge_file *file;
	struct merge_process *process;
	uint64_t *counts; /* by id */
	const char *damage;
	int failed; /* for want of memory */
};

static void look_at(struct survey *s, const struct region_event *e, uint64_t number, struct error *err)
{
	struct merge_file *f = s->file;

	switch (e->kind) {
	case REGION_EVENT_CALL:
		if (e->region == 0) { /* reserved, and never filled */
			f->unfilled++;
			return;
		}
		if (e->region > REGION_ID_MAX) {
			s->damage = "a call of no region";
			return;
		}
		s->counts[e->region]++;
		f->rows++;
		if (e->end > f->last)
			f->last = e->end;
		return;
	case REGION_EVENT_THREAD:
		if (f->mark_count == MARKS_MAX)
			s->damage = "too many changes of threads";
		else if (add_mark(f, number, e->start, err) < 0)
			s->failed = -1;
		return;
	case REGION_EVENT_CLOCK:
		if (region_ramp_add(&s->process->readings, e->start, (int64_t)(e->end & INT64_MAX), err) < 0)
			s->failed = -1;
		return;
	default:
		s->damage = "an event of an unknown kind";
	}
}

/* Up to the first event that cannot be. A whole block of places that nobody filled is no writer's, but a hole that a
 * damaged file has, of terabytes perhaps. */
static void look_at_block(struct survey *s, const struct region_event *block, uint64_t first, size_t n,
			  struct error *err)
{
	struct merge_file *f = s->file;
	uint64_t unfilled = f->unfilled;

	for (size_t i = 0; i < n; i++) {
		look_at(s, &block[i], first + i, err);
		if (s->failed || s->damage)
			return;
		f->events = first + i + 1;
	}
	if (n == MERGE_BLOCK && f->unfilled - unfilled == n) {
		f->unfilled = unfilled;
		f->events = first;
		s->damage = "nothing was written there";
	}
}

static int survey_events(struct merging *m, struct survey *s, struct region_calls *c, struct error *err)
{
	static const char lost[] = "calls behind that cannot be read";
	CLEANUP(free_cleanup) struct region_event *block = malloc(MERGE_BLOCK * sizeof *block);
	struct merge_file *f = s->file;
	uint64_t all = region_calls_facts(c)->events;
	char sentence[sizeof ((struct error *)0)->text];
	struct error reason;

	if (!block)
		return error_set(err, "out of memory for %zu calls", MERGE_BLOCK);
	for (uint64_t first = 0; first < all; first += MERGE_BLOCK) {
		size_t n = all - first < MERGE_BLOCK ? (size_t)(all - first) : MERGE_BLOCK;

		if (region_calls_read(c, first, n, block, &reason) < 0)
			return merge_damage(m, reason.text, err);
		look_at_block(s, block, first, n, err);
		if (s->failed)
			return -1;
		if (s->damage) {
			snprintf(sentence, sizeof sentence,
				 "%s: damaged at event %" PRIu64 " of %" PRIu64 " (%s): %s", f->path, f->events + 1,
				 all, s->damage, lost);
			return merge_damage(m, sentence, err);
		}
		if (merge_progress(m, n, err) < 0)
			return -1;
	}
	return 0;
}

/* Regions that were open when the writer was killed are calls, too. */
static int survey_open(struct merging *m, struct merge_rank *r, struct survey *s, struct region_calls *c,
		       struct error *err)
{
	struct merge_file *f = s->file;
	struct error reason;

	if (region_calls_stack(c, &f->open, &f->open_count, &reason) < 0)
		return merge_damage(m, reason.text, err);
	for (size_t i = 0; i < f->open_count; i++) {
		const struct region_open *open = &f->open[i];
		uint32_t id = open->region;

		s->counts[id]++;
		f->rows++;
		if (open->start > f->last)
			f->last = open->start;
		if (!r->examples[REGION_TROUBLE_UNFINISHED] && id < s->process->details.name_count &&
		    s->process->details.names[id].name) {
			r->examples[REGION_TROUBLE_UNFINISHED] = strdup(s->process->details.names[id].name);
			if (!r->examples[REGION_TROUBLE_UNFINISHED])
				return error_set(err, "out of memory for the name of a region");
		}
	}
	r->troubles[REGION_TROUBLE_UNFINISHED] += f->open_count;
	return 0;
}

static int make_uses(struct merging *m, struct merge_rank *r, struct survey *s, struct error *err)
{
	struct merge_file *f = s->file;
	size_t count = 0;

	for (uint32_t id = 1; id <= REGION_ID_MAX; id++)
		count += s->counts[id] > 0;
	if (count == 0)
		return 0;
	f->uses = calloc(count, sizeof *f->uses);
	if (!f->uses)
		return error_set(err, "out of memory for %zu regions", count);
	for (uint32_t id = 1; id <= REGION_ID_MAX; id++) {
		struct merge_part *part;

		if (!s->counts[id])
			continue;
		part = merge_part_of(m, r, s->process, id, err);
		if (!part)
			return -1;
		part->count += s->counts[id];
		f->uses[f->use_count++] =
			(struct merge_use){.id = id, .part = (uint32_t)(part - r->parts), .count = s->counts[id]};
	}
	return 0;
}

static int survey_sums(struct merging *m, struct survey *s, struct region_calls *c, struct error *err)
{
	size_t names = s->process->details.name_count;
	uint64_t all = region_calls_facts(c)->dropped, dropped = 0;
	struct merge_file *f = s->file;
	struct error reason;

	/* Where the table is damaged, sums may be of regions that it does not name. */
	if (region_calls_sums(c, s->process->log->damage ? REGION_ID_MAX + 1 : (uint32_t)names, &f->sums, &f->sum_count,
			      &reason) < 0)
		return merge_damage(m, reason.text, err);
	for (size_t i = 0; i < f->sum_count; i++)
		dropped += f->sums[i].dropped;
	if (all > dropped)
		m->uncounted += all - dropped;
	return 0;
}

static int survey_calls(struct merging *m, struct merge_rank *r, struct survey *s, struct region_calls *c,
			struct error *err)
{
	const struct region_calls_facts *facts = region_calls_facts(c);
	struct merge_file *f = s->file;

	f->last = facts->last;
	f->thread = facts->thread;
	for (size_t i = 0; i < REGION_TROUBLES; i++)
		r->troubles[i] += facts->troubles[i];
	if (survey_events(m, s, c, err) < 0)
		return -1;
	m->unfilled += f->unfilled;
	if (!facts->closed && survey_open(m, r, s, c, err) < 0)
		return -1;
	if (f->last > s->process->last)
		s->process->last = f->last;
	if (survey_sums(m, s, c, err) < 0)
		return -1;
	return make_uses(m, r, s, err);
}

static int survey_file(struct merging *m, struct merge_rank *r, size_t process, uint32_t number, uint64_t *counts,
		       struct error *err)
{
	CLEANUP(region_calls_cleanup) struct region_calls *c = NULL;
	struct merge_file *f = &r->files[r->file_count];
	struct survey s = {.file = f, .process = &r->processes[process], .counts = counts};
	struct error reason;

	*f = (struct merge_file){.process = process, .path = region_log_file_path(s.process->log, number)};
	if (!f->path)
		return error_set(err, "out of memory for the name of a file");
	r->file_count++;
	if (region_calls_open(f->path, &c, &reason) < 0)
		return merge_damage(m, reason.text, err);
	if (region_calls_facts(c)->clock != s.process->log->process.clock) {
		error_set(&reason, "%s: its clock is not that of its process", f->path);
		return merge_damage(m, reason.text, err);
	}
	memset(counts, 0, (REGION_ID_MAX + 1) * sizeof *counts);
	return survey_calls(m, r, &s, c, err);
}

static int note_process(const struct region_log *l, size_t *processes, char **of, struct error *err)
{
	if (!*of)
		*of = strdup(l->name);
	++*processes;
	return *of ? 0 : error_set(err, "out of memory for a note");
}

/* Threads that have no part in the recording are told nowhere else. */
static int judge_refusal(struct merging *m, const struct merge_process *p, struct error *err)
{
	for (size_t i = 0; i < p->details.fact_count; i++) {
		if (strcmp(p->details.facts[i].key, "libassay_refused") != 0)
			continue;
		if (!m->refusal)
			m->refusal = strdup(p->details.facts[i].value);
		return m->refusal ? note_process(p->log, &m->refused.processes, &m->refused.of, err)
				  : error_set(err, "out of memory for a note");
	}
	return 0;
}

static int judge_process(struct merging *m, const struct merge_process *p, struct error *err)
{
	const struct region_log *l = p->log;

	if (judge_refusal(m, p, err) < 0)
		return -1;
	if (l->damage && merge_damage(m, l->damage, err) < 0)
		return -1;
	if (!l->closed && note_process(l, &m->killed.processes, &m->killed.of, err) < 0)
		return -1;
	if (l->lost && note_process(l, &m->lossy.processes, &m->lossy.of, err) < 0)
		return -1;
	if (!p->clocks.usable)
		return note_process(l, &m->unusable.processes, &m->unusable.of, err);
	if (p->clocks.uncertain && note_process(l, &m->uncertain.processes, &m->uncertain.of, err) < 0)
		return -1;
	return p->clocks.by_wall ? note_process(l, &m->by_wall.processes, &m->by_wall.of, err) : 0;
}

/* Names of regions that each kind of wrong use happened to: for every kind the first one. */
static int take_examples(struct merge_rank *r, const struct merge_process *p, struct error *err)
{
	for (size_t i = 0; i < REGION_TROUBLES; i++) {
		uint32_t id = p->details.examples[i];

		if (r->examples[i] || !id || id >= p->details.name_count || !p->details.names[id].name)
			continue;
		r->examples[i] = strdup(p->details.names[id].name);
		if (!r->examples[i])
			return error_set(err, "out of memory for the name of a region");
	}
	return 0;
}

static int survey_process(struct merging *m, struct merge_rank *r, size_t number, uint64_t *counts, struct error *err)
{
	struct merge_process *p = &r->processes[number];
	struct error reason;

	if (region_details_read(p->log, &p->details, &reason) < 0 && merge_damage(m, reason.text, err) < 0)
		return -1;
	if (take_examples(r, p, err) < 0)
		return -1;
	for (size_t i = 0; i < p->log->file_count; i++)
		if (survey_file(m, r, number, p->log->files[i], counts, err) < 0)
			return -1;
	if (region_clocks_make(p->log, &m->machines, &p->readings, &p->clocks, err) < 0)
		return -1;
	return judge_process(m, p, err);
}

static int by_name(const void *a, const void *b, void *context)
{
	const struct merge_part *parts = context;
	uint32_t one = parts[*(const uint32_t *)a].name, other = parts[*(const uint32_t *)b].name;

	return (one > other) - (one < other);
}

/* Where the rows of each region begin, and of each file in it. */
static int lay_out(struct merge_rank *r, struct error *err)
{
	CLEANUP(free_cleanup) uint32_t *order = malloc((r->part_count ? r->part_count : 1) * sizeof *order);

	if (!order)
		return error_set(err, "out of memory for %zu regions", r->part_count);
	for (size_t i = 0; i < r->part_count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, r->part_count, sizeof *order, by_name, r->parts);
	for (size_t i = 0; i < r->part_count; i++) {
		struct merge_part *part = &r->parts[order[i]];

		part->first = part->cursor = r->rows;
		r->rows += part->count;
	}
	for (size_t i = 0; i < r->file_count; i++)
		for (size_t k = 0; k < r->files[i].use_count; k++) {
			struct merge_use *use = &r->files[i].uses[k];

			r->parts[use->part].cursor += use->count;
			use->next = r->parts[use->part].cursor;
		}
	return 0;
}

/* Calls of a process whose times nothing tells: they are counted as dropped, not guessed. */
static void give_up_times(struct merge_rank *r, struct merge_file *f)
{
	for (size_t i = 0; i < f->use_count; i++) {
		struct merge_part *part = &r->parts[f->uses[i].part];

		part->count -= f->uses[i].count;
		part->dropped += f->uses[i].count;
	}
	f->use_count = 0;
	f->rows = 0;
	f->events = 0;
	f->open_count = 0;
}

int merge_survey(struct merging *m, struct merge_rank *r, struct error *err)
{
	CLEANUP(free_cleanup) uint64_t *counts = malloc((REGION_ID_MAX + 1) * sizeof *counts);
	size_t files = 0;

	for (size_t i = 0; i < r->process_count; i++)
		files += r->processes[i].log->file_count;
	r->files = calloc(files ? files : 1, sizeof *r->files);
	if (!counts || !r->files)
		return error_set(err, "out of memory for %zu files of calls", files);
	for (size_t i = 0; i < r->process_count; i++)
		if (survey_process(m, r, i, counts, err) < 0)
			return -1;
	for (size_t i = 0; i < r->file_count; i++) {
		if (!r->processes[r->files[i].process].clocks.usable)
			give_up_times(r, &r->files[i]);
		if (merge_sums(m, r, &r->files[i], err) < 0)
			return -1;
	}
	return lay_out(r, err);
}
