/* The second look at the files of a rank, from the last event to the first, so that parents come before their children:
 * each call gets its row, its parent's number, and its part in exclusive times. */
#include "store/region_merging.h"

#include <stdlib.h>

#include "base/cleanup.h"

/* The call of a depth that was read last: which the calls of one depth more that are read now may lie in. */
struct around {
	uint64_t place;
	uint64_t start; /* clock units */
	uint32_t part;
	uint32_t epoch; /* of a thread; another one's is none */
	bool detached;
};

struct placing {
	struct merging *m;
	struct merge_rank *r;
	struct merge_file *file;
	struct merge_process *process;
	struct around *around;  /* by depth, REGION_DEPTH_MAX */
	uint32_t *use_of;       /* by id: index into the file's uses; valid for those that it has */
	uint32_t epoch;
	size_t marks;           /* that lie before the event at hand */
	int64_t thread;         /* within the rank */
};

static int64_t thread_of(const struct merge_process *p, uint32_t index)
{
	const struct region_log_thread *t = region_details_thread(&p->details, index);

	return t ? p->thread_base + (t - p->details.threads) : REGIONS_UNKNOWN;
}

/* What comes now, further to the front, is of the thread of the mark before. */
static void enter_thread(struct placing *g)
{
	const struct merge_file *f = g->file;

	g->epoch++;
	g->thread = thread_of(g->process, g->marks ? f->marks[g->marks - 1].thread : f->thread);
}

/* The call that this one lies in, NULL: none. Calls that found no room, or were made while nothing was recorded, leave
 * their children to a neighbour: which began later than they did. */
static const struct around *parent_of(const struct placing *g, const struct region_event *e)
{
	const struct around *a;

	if (e->depth == 0 || e->flags & (REGION_EVENT_DETACHED | REGION_EVENT_CROSSED))
		return NULL;
	a = &g->around[e->depth - 1];
	return a->epoch == g->epoch && !a->detached && a->start <= e->start ? a : NULL;
}

static int place_call(struct placing *g, const struct region_event *e, struct error *err)
{
	struct merge_use *use = &g->file->uses[g->use_of[e->region]];
	const struct around *parent = parent_of(g, e);
	struct scatter_row row = {.start = region_clocks_at(&g->process->clocks, e->start),
				  .end = region_clocks_at(&g->process->clocks, e->end),
				  .parent = parent ? (int64_t)parent->place : REGIONS_UNKNOWN,
				  .thread = g->thread};
	uint64_t place = --use->next;

	if (row.end < row.start) {
		row.end = row.start;
		g->m->backwards++;
	}
	/* In unsigned numbers, since hostile times may run over; the sum is then wrong, and nothing else. */
	g->r->parts[use->part].exclusive =
		(int64_t)((uint64_t)g->r->parts[use->part].exclusive + (uint64_t)(row.end - row.start));
	if (parent)
		g->r->parts[parent->part].exclusive =
			(int64_t)((uint64_t)g->r->parts[parent->part].exclusive - (uint64_t)(row.end - row.start));
	/* A call that its token ends is on no stack: it lies around nothing. */
	if (e->flags & REGION_EVENT_CROSSED || !(e->flags & REGION_EVENT_DETACHED))
		g->around[e->depth] = (struct around){.place = place,
						      .start = e->start,
						      .part = use->part,
						      .epoch = g->epoch,
						      .detached = e->flags & REGION_EVENT_CROSSED};
	return region_scatter_put(g->m->scatter, g->use_of[e->region], place, &row, err);
}

static int place_event(struct placing *g, const struct region_event *e, uint64_t number, struct error *err)
{
	if (e->kind == REGION_EVENT_CALL)
		return place_call(g, e, err);
	/* The file may have changed since it was counted: only what was there then is believed. */
	if (e->kind == REGION_EVENT_THREAD && g->marks && g->file->marks[g->marks - 1].event == number) {
		g->marks--;
		enter_thread(g);
	}
	return 0;
}

static int place_open(struct placing *g, struct error *err)
{
	const struct merge_file *f = g->file;

	for (size_t i = 0; i < f->open_count; i++) {
		const struct region_open *open = &f->open[i];
		struct region_event e = {.start = open->start,
					 .end = g->process->last,
					 .region = open->region,
					 .depth = open->depth,
					 .flags = REGION_EVENT_UNFINISHED};

		if (place_call(g, &e, err) < 0)
			return -1;
	}
	return 0;
}

static int place_block(struct placing *g, const struct region_event *block, uint64_t first, size_t n,
		       uint64_t *left, struct error *err)
{
	for (size_t i = n; i-- > 0;) {
		const struct region_event *e = &block[i];
		uint32_t use = e->region <= REGION_ID_MAX ? g->use_of[e->region] : UINT32_MAX;

		if (e->kind == REGION_EVENT_CALL && e->region == 0)
			continue;
		if (e->kind == REGION_EVENT_CALL) {
			if (use >= g->file->use_count || g->file->uses[use].id != e->region || left[use] == 0)
				return error_set(err, "%s: changed while it was read", g->file->path);
			left[use]--;
		}
		if (place_event(g, e, first + i, err) < 0)
			return -1;
	}
	return merge_progress(g->m, n, err);
}

static int place_events(struct placing *g, struct error *err)
{
	CLEANUP(region_calls_cleanup) struct region_calls *c = NULL;
	CLEANUP(free_cleanup) struct region_event *block = malloc(MERGE_BLOCK * sizeof *block);
	CLEANUP(free_cleanup) uint64_t *left = calloc(g->file->use_count, sizeof *left);
	struct merge_file *f = g->file;

	if (!block || !left)
		return error_set(err, "%s: out of memory", f->path);
	if (region_calls_open(f->path, &c, err) < 0)
		return -1;
	if (region_calls_facts(c)->events < f->events)
		return error_set(err, "%s: changed while it was read", f->path);
	for (size_t i = 0; i < f->use_count; i++)
		left[i] = f->uses[i].count;
	for (size_t i = 0; i < f->open_count; i++)
		left[g->use_of[f->open[i].region]]--;
	for (uint64_t end = f->events; end > 0;) {
		size_t n = end < MERGE_BLOCK ? (size_t)end : MERGE_BLOCK;

		end -= n;
		if (region_calls_read(c, end, n, block, err) < 0 || place_block(g, block, end, n, left, err) < 0)
			return -1;
	}
	return 0;
}

static int place_file(struct placing *g, struct error *err)
{
	struct merge_file *f = g->file;

	if (f->use_count == 0)
		return 0;
	for (size_t i = 0; i < f->use_count; i++)
		g->use_of[f->uses[i].id] = (uint32_t)i;
	g->process = &g->r->processes[f->process];
	g->marks = f->mark_count;
	enter_thread(g);
	if (region_scatter_lanes(g->m->scatter, f->use_count, err) < 0)
		return -1;
	/* What was open when the writer was killed lies around all else. */
	if (place_open(g, err) < 0 || place_events(g, err) < 0)
		return -1;
	return region_scatter_flush(g->m->scatter, err);
}

int merge_place(struct merging *m, struct merge_rank *r, struct error *err)
{
	CLEANUP(free_cleanup) struct around *around = calloc(REGION_DEPTH_MAX, sizeof *around);
	CLEANUP(free_cleanup) uint32_t *use_of = calloc(REGION_ID_MAX + 1, sizeof *use_of);
	struct placing g = {.m = m, .r = r, .around = around, .use_of = use_of};

	if (!around || !use_of)
		return error_set(err, "out of memory for the calls of rank %u", (unsigned)r->rank);
	if (region_scatter_begin(m->scatter, r->rows, err) < 0)
		return -1;
	for (size_t i = 0; i < r->file_count; i++) {
		g.file = &r->files[i];
		if (place_file(&g, err) < 0)
			return -1;
	}
	return 0;
}
