#include "report/region_timeline.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"

void region_timeline_init(struct region_timeline *t)
{
	*t = (struct region_timeline){0};
}

void region_timeline_release(struct region_timeline *t)
{
	free(t->calls);
	free(t->tracks);
	region_timeline_init(t);
}

struct reading {
	const struct regions *regions;
	struct region_timeline *timeline;
	size_t room;
};

static int take_block(void *context, unsigned worker, const struct region_block *block, struct error *err)
{
	struct reading *r = context;
	const struct region_part *part = &r->regions->parts[block->part];

	(void)worker;
	if (block->n > r->room - r->timeline->count)
		return error_set(err, "%s: there are more calls in it than its index says", r->regions->path);
	for (size_t i = 0; i < block->n; i++) {
		int64_t start = block->columns[REGION_START][i], end = block->columns[REGION_END][i];
		int64_t thread = block->columns[REGION_THREAD][i];

		r->timeline->calls[r->timeline->count++] = (struct timeline_call){
			.start = start,
			.end = end > start ? end : start,
			.region = part->region,
			.rank = part->rank,
			.thread = thread >= 0 && thread < INT32_MAX ? (int32_t)thread : -1,
		};
	}
	return 0;
}

static int in_order(const void *left, const void *right)
{
	const struct timeline_call *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return a->region < b->region ? -1 : a->region > b->region;
}

/* The ends of the calls of a lane that are open, outermost first. */
struct lane {
	int64_t *ends;
	size_t depth, room;
};

struct lanes {
	struct lane *items;
	uint32_t count;
};

static void lanes_release(struct lanes *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		free(l->items[i].ends);
	free(l->items);
}

static int push(struct lane *lane, int64_t end, struct error *err)
{
	if (lane->depth == lane->room) {
		size_t room = lane->room ? 2 * lane->room : 64;
		int64_t *ends = reallocarray(lane->ends, room, sizeof *ends);

		if (!ends)
			return error_set(err, "out of memory for %zu calls inside each other", room);
		lane->ends = ends;
		lane->room = room;
	}
	lane->ends[lane->depth++] = end;
	return 0;
}

static int find_lane(struct lanes *l, struct timeline_call *c, struct error *err)
{
	for (c->lane = 0; c->lane + 1 < l->count; c->lane++) {
		struct lane *lane = &l->items[c->lane];

		while (lane->depth && lane->ends[lane->depth - 1] <= c->start)
			lane->depth--;
		if (!lane->depth || c->end <= lane->ends[lane->depth - 1])
			return push(lane, c->end, err);
	}
	return 0;
}

static int add_tracks(struct region_timeline *t, uint32_t most_lanes, struct error *err)
{
	CLEANUP(lanes_release) struct lanes lanes = {calloc(most_lanes, sizeof *lanes.items), most_lanes};
	struct timeline_track *track = NULL;
	size_t count = 0;

	for (size_t i = 0; i < t->count; i++)
		count += !i || t->calls[i].rank != t->calls[i - 1].rank || t->calls[i].thread != t->calls[i - 1].thread;
	t->tracks = calloc(count + 1, sizeof *t->tracks);
	if (!lanes.items) {
		lanes.count = 0;
		return error_set(err, "out of memory for %" PRIu32 " lanes", most_lanes);
	}
	if (!t->tracks)
		return error_set(err, "out of memory for %zu threads", count);
	for (size_t i = 0; i < t->count; i++) {
		struct timeline_call *c = &t->calls[i];

		if (!track || c->rank != c[-1].rank || c->thread != c[-1].thread) {
			track = &t->tracks[t->track_count++];
			track->first = i;
			for (uint32_t k = 0; k < lanes.count; k++)
				lanes.items[k].depth = 0;
		}
		if (find_lane(&lanes, c, err) < 0)
			return -1;
		track->count++;
		track->lanes = c->lane + 1 > track->lanes ? c->lane + 1 : track->lanes;
	}
	return 0;
}

int region_timeline_read(struct region_timeline *t, const struct region_export *e, uint32_t most_lanes,
			 struct error *err)
{
	const struct regions *r = region_file_regions(e->file);
	CLEANUP(free_cleanup) bool *parts = region_export_parts(e);
	struct reading reading = {.regions = r, .timeline = t};
	struct region_scan scan = {.wanted = parts,
				   .columns = 1u << REGION_THREAD,
				   .workers = 1,
				   .block = take_block,
				   .context = &reading};
	uint64_t calls = 0;

	if (!parts)
		return error_set(err, "out of memory for %zu regions of ranks", r->part_count);
	for (size_t i = 0; i < r->part_count; i++)
		calls += parts[i] ? r->parts[i].count : 0;
	if (calls > REGION_TIMELINE_CALLS_MAX)
		return error_set(err,
				 "%s: %" PRIu64
				 " calls are too many to be put in order for this format (at most %" PRIu64
				 "): choose with --ranks, --include or --exclude",
				 r->path, calls, REGION_TIMELINE_CALLS_MAX);
	reading.room = (size_t)calls;
	t->calls = calloc(reading.room + 1, sizeof *t->calls);
	if (!t->calls)
		return error_set(err, "out of memory for %" PRIu64 " calls", calls);
	if (region_file_scan(e->file, &scan, err) < 0)
		return -1;
	qsort(t->calls, t->count, sizeof *t->calls, in_order);
	return add_tracks(t, most_lanes, err);
}
