#include "report/region_order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "report/region_lanes.h"

#define SLICE_CALLS ((uint64_t)1 << 21) /* 40 bytes each, twice while they are sorted */
#define SLICE_BINS 4096
#define LANES_MAX ((size_t)1 << 20)
#define TIME_LIMIT ((int64_t)1 << 61) /* 73 years: sums and differences of two such times are no overflow */

/* Calls are in the order of keys first: rank and thread, or the same for all. */
struct region_order_group {
	uint64_t low, high;  /* keys, both within */
	int64_t first, last; /* starts lie within */
	uint64_t calls;
};

bool region_call_is_sound(int64_t start, int64_t end)
{
	return start <= end && start > -TIME_LIMIT && end < TIME_LIMIT;
}

/* Names first: they are far fewer than parts where there are many ranks. */
bool *region_wanted_parts(const struct regions *r, const struct region_query *q, struct error *err)
{
	CLEANUP(free_cleanup) bool *wanted = calloc(r->part_count + 1, sizeof *wanted);
	CLEANUP(free_cleanup) bool *names = calloc(r->name_count + 1, sizeof *names);
	bool *ret = wanted;

	if (!wanted || !names) {
		error_set(err, "out of memory for %zu regions of ranks", r->part_count);
		return NULL;
	}
	if (region_query_names(q, (const char *const *)r->names, r->name_count, names, err) < 0)
		return NULL;
	for (size_t i = 0; i < r->part_count; i++)
		wanted[i] = names[r->parts[i].region] && region_query_takes_rank(q, r->parts[i].rank);
	wanted = NULL; /* handed over */
	return ret;
}

static int span_block(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct region_span *s = context;
	const int64_t *starts = b->columns[REGION_START], *ends = b->columns[REGION_END];

	(void)worker, (void)err;
	for (size_t i = 0; i < b->n; i++) {
		if (!region_call_is_sound(starts[i], ends[i])) {
			s->senseless++;
			continue;
		}
		s->first = s->calls == 0 || starts[i] < s->first ? starts[i] : s->first;
		s->last = s->calls == 0 || ends[i] > s->last ? ends[i] : s->last;
		s->calls++;
	}
	return 0;
}

int region_span_read(struct region_file *f, const bool *wanted, struct region_span *ret, struct error *err)
{
	const struct regions *r = region_file_regions(f);
	struct region_span span = {0};
	struct region_scan scan = {.wanted = wanted, .workers = 1, .block = span_block, .context = &span};

	if (region_file_scan(f, &scan, err) < 0)
		return -1;
	for (size_t i = 0; i < r->part_count; i++) {
		if (!wanted[i])
			continue;
		span.untimed += r->parts[i].calls > r->parts[i].count ? r->parts[i].calls - r->parts[i].count : 0;
		span.dropped += r->parts[i].dropped;
	}
	*ret = span;
	return 0;
}

void region_order_init(struct region_order *o)
{
	*o = (struct region_order){.slice_calls = SLICE_CALLS};
}

void region_order_release(struct region_order *o)
{
	free(o->groups);
	region_order_init(o);
}

int region_order_by_time(struct region_order *o, struct region_file *f, const bool *wanted,
			 const struct region_span *span, struct error *err)
{
	o->file = f;
	o->wanted = wanted;
	o->groups = calloc(1, sizeof *o->groups);
	if (!o->groups)
		return error_set(err, "out of memory for the order of %" PRIu64 " calls", span->calls);
	o->groups[0] = (struct region_order_group){.first = span->first, .last = span->last, .calls = span->calls};
	o->group_count = 1;
	return 0;
}

/* Threads that a file gives impossible numbers are one that it does not tell. */
static int32_t thread_of(const struct region_block *b, size_t i)
{
	int64_t thread = b->columns[REGION_THREAD][i];

	return thread >= 0 && thread <= INT32_MAX ? (int32_t)thread : -1;
}

static uint64_t key_of(uint32_t rank, int32_t thread)
{
	return (uint64_t)rank << 32 | (uint32_t)(thread + 1);
}

/* Counting the calls of each thread: a group for each lane, in the order of lanes at first. */
struct counting {
	struct region_order *order;
	const struct regions *regions;
	struct region_lanes lanes;
	size_t room;
};

static int find_group(struct counting *c, uint32_t rank, int32_t thread, struct region_order_group **ret,
		      struct error *err)
{
	struct region_order *o = c->order;
	size_t lane;

	if (region_lanes_find(&c->lanes, rank, thread, LANES_MAX, &lane, err) < 0)
		return -1;
	if (lane == REGION_LANE_NONE)
		return error_set(err, "%s: there are more than %zu threads in it: choose with --ranks",
				 c->regions->path, LANES_MAX);
	if (c->lanes.room > c->room) {
		struct region_order_group *groups = reallocarray(o->groups, c->lanes.room, sizeof *groups);

		if (!groups)
			return error_set(err, "out of memory for %zu threads", c->lanes.room);
		o->groups = groups;
		c->room = c->lanes.room;
	}
	if (lane == o->group_count) {
		uint64_t key = key_of(rank, thread);

		o->groups[o->group_count++] =
			(struct region_order_group){.low = key, .high = key, .first = INT64_MAX, .last = INT64_MIN};
	}
	*ret = &o->groups[lane];
	return 0;
}

static int count_threads(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct counting *c = context;
	const int64_t *starts = b->columns[REGION_START], *ends = b->columns[REGION_END];
	uint32_t rank = c->regions->parts[b->part].rank;
	struct region_order_group *group = NULL;
	int32_t last = -1;

	(void)worker;
	for (size_t i = 0; i < b->n; i++) {
		int32_t thread = thread_of(b, i);

		if (!region_call_is_sound(starts[i], ends[i]))
			continue;
		if ((!group || thread != last) && find_group(c, rank, thread, &group, err) < 0)
			return -1;
		last = thread;
		group->calls++;
		group->first = starts[i] < group->first ? starts[i] : group->first;
		group->last = starts[i] > group->last ? starts[i] : group->last;
	}
	return 0;
}

static int by_key(const void *left, const void *right)
{
	const struct region_order_group *a = left, *b = right;

	return (a->low > b->low) - (a->low < b->low);
}

/* Threads that follow each other and fit into one slice are one group. */
static void join_groups(struct region_order *o)
{
	size_t kept = 0;

	for (size_t i = 1; i < o->group_count; i++) {
		struct region_order_group *into = &o->groups[kept], *g = &o->groups[i];

		if (into->calls + g->calls > o->slice_calls) {
			o->groups[++kept] = *g;
			continue;
		}
		into->high = g->high;
		into->first = g->first < into->first ? g->first : into->first;
		into->last = g->last > into->last ? g->last : into->last;
		into->calls += g->calls;
	}
	o->group_count = o->group_count ? kept + 1 : 0;
}

int region_order_by_thread(struct region_order *o, struct region_file *f, const bool *wanted, struct error *err)
{
	struct counting c = {.order = o, .regions = region_file_regions(f)};
	struct region_scan scan = {
		.wanted = wanted, .columns = 1u << REGION_THREAD, .workers = 1, .block = count_threads, .context = &c};
	int got;

	o->file = f;
	o->wanted = wanted;
	o->by_thread = true;
	region_lanes_init(&c.lanes);
	got = region_file_scan(f, &scan, err);
	region_lanes_release(&c.lanes);
	if (got < 0)
		return -1;
	if (o->group_count)
		qsort(o->groups, o->group_count, sizeof *o->groups, by_key);
	join_groups(o);
	return 0;
}

/* One visit of a group: a slice of it at a time is held. */
struct visiting {
	const struct region_order *order;
	const struct region_visit *visit;
	const struct region_part *parts;
	const struct region_order_group *group;
	bool *wanted;	  /* parts that the group may lie in */
	int64_t from, to; /* the slice: starts within [from, to] */
	struct region_call *calls;
	uint64_t count, room;
	uint64_t *bins, bin_width;
};

static bool in_slice(const struct visiting *v, const struct region_block *b, size_t i)
{
	int64_t start = b->columns[REGION_START][i], end = b->columns[REGION_END][i];
	uint64_t key;

	if (start < v->from || start > v->to || !region_call_is_sound(start, end))
		return false;
	if (end < v->visit->from || start > v->visit->to)
		return false;
	if (!v->order->by_thread)
		return true;
	key = key_of(v->parts[b->part].rank, thread_of(b, i));
	return key >= v->group->low && key <= v->group->high;
}

static int count_block(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct visiting *v = context;

	(void)worker, (void)err;
	for (size_t i = 0; i < b->n; i++)
		if (in_slice(v, b, i))
			v->bins[(uint64_t)(b->columns[REGION_START][i] - v->from) / v->bin_width]++;
	return 0;
}

static int collect_block(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct visiting *v = context;
	const int64_t *calls = b->columns[REGION_CALL], *parents = b->columns[REGION_PARENT];

	(void)worker;
	for (size_t i = 0; i < b->n; i++) {
		if (!in_slice(v, b, i))
			continue;
		if (v->count == v->room)
			return error_set(err, "the file changed while it was read");
		v->calls[v->count++] = (struct region_call){
			.start = b->columns[REGION_START][i],
			.end = b->columns[REGION_END][i],
			.call = calls ? calls[i] : -1,
			.parent = parents ? parents[i] : -1,
			.part = (uint32_t)b->part,
			.thread = thread_of(b, i),
		};
	}
	return 0;
}

/* Calls that began and ended together: the one around the others has the lowest number. */
static int by_start(const struct region_call *a, const struct region_call *b)
{
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	if (a->call != b->call)
		return a->call < b->call ? -1 : 1;
	return a->part < b->part ? -1 : a->part > b->part;
}

static int in_order(const void *left, const void *right, void *context)
{
	const struct visiting *v = context;
	const struct region_call *a = left, *b = right;
	uint64_t first, second;

	if (v->group->low == v->group->high)
		return by_start(a, b);
	first = key_of(v->parts[a->part].rank, a->thread);
	second = key_of(v->parts[b->part].rank, b->thread);
	return first != second ? (first < second ? -1 : 1) : by_start(a, b);
}

static int scan(struct visiting *v, unsigned columns,
		int (*block)(void *context, unsigned worker, const struct region_block *b, struct error *err),
		struct error *err)
{
	struct region_scan s = {.wanted = v->wanted,
				.columns = columns | 1u << REGION_THREAD,
				.workers = 1,
				.block = block,
				.context = v};

	return region_file_scan(v->order->file, &s, err);
}

static int visit_slice(struct visiting *v, int64_t from, int64_t to, uint64_t count, struct error *err)
{
	CLEANUP(free_cleanup) struct region_call *calls = NULL;

	if (count == 0)
		return 0;
	calls = reallocarray(NULL, count, sizeof *calls);
	if (!calls)
		return error_set(err, "out of memory for %" PRIu64 " calls", count);
	v->calls = calls;
	v->room = count;
	v->count = 0;
	v->from = from;
	v->to = to;
	if (scan(v, v->visit->columns, collect_block, err) < 0)
		return -1;
	qsort_r(calls, v->count, sizeof *calls, in_order, v);
	for (uint64_t i = 0; i < v->count; i++)
		if (v->visit->call(v->visit->context, &calls[i], err) < 0)
			return -1;
	return 0;
}

/* A range of more calls than a slice holds is cut at the bins of a histogram, and a bin that is too full again. */
static int visit_range(struct visiting *v, int64_t from, int64_t to, uint64_t count, struct error *err)
{
	CLEANUP(free_cleanup) uint64_t *bins = NULL;
	uint64_t width = (uint64_t)(to - from) / SLICE_BINS + 1, held = 0;
	int64_t slice = from;

	if (count <= v->order->slice_calls)
		return visit_slice(v, from, to, count, err);
	if (from == to)
		return error_set(err, "%s calls begin in the same nanosecond: too many to be put in order",
				 units_count((double)count).text);
	bins = calloc(SLICE_BINS, sizeof *bins);
	if (!bins)
		return error_set(err, "out of memory for the order of %" PRIu64 " calls", count);
	v->bins = bins;
	v->bin_width = width;
	v->from = from;
	v->to = to;
	if (scan(v, 0, count_block, err) < 0)
		return -1;
	for (size_t i = 0; i < SLICE_BINS; i++) {
		int64_t begin = from + (int64_t)(i * width);

		if (begin > to)
			break;
		if (held && held + bins[i] > v->order->slice_calls) {
			if (visit_range(v, slice, begin - 1, held, err) < 0)
				return -1;
			held = 0;
		}
		if (held == 0)
			slice = begin;
		held += bins[i];
	}
	return visit_range(v, slice, to, held, err);
}

/* Of the wanted parts those of the ranks that the group has. */
static void choose_parts(struct visiting *v, const struct regions *r)
{
	uint64_t low = v->group->low >> 32, high = v->group->high >> 32;

	for (size_t i = 0; i < r->part_count; i++)
		v->wanted[i] = v->order->wanted[i] &&
			       (!v->order->by_thread || (r->parts[i].rank >= low && r->parts[i].rank <= high));
}

int region_order_visit(const struct region_order *o, const struct region_visit *visit, struct error *err)
{
	const struct regions *r = region_file_regions(o->file);
	CLEANUP(free_cleanup) bool *wanted = calloc(r->part_count + 1, sizeof *wanted);
	struct visiting v = {.order = o, .visit = visit, .parts = r->parts, .wanted = wanted};

	if (!wanted)
		return error_set(err, "out of memory for %zu regions of ranks", r->part_count);
	/* Counted before the window is heeded: the first cut then knows how many there are in it. */
	for (size_t i = 0; i < o->group_count; i++) {
		v.group = &o->groups[i];
		choose_parts(&v, r);
		if (visit_range(&v, v.group->first, v.group->last, v.group->calls, err) < 0)
			return error_prefix(err, "%s", r->path);
	}
	return 0;
}
