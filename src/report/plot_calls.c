#include "report/plot_calls.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define SLICE_CALLS (1u << 21) /* 40 bytes each, twice while they are sorted */
#define SLICE_BINS 4096
#define TIME_LIMIT ((int64_t)1 << 61) /* 73 years: sums and differences of two such times are no overflow */

bool plot_call_is_sound(int64_t start, int64_t end)
{
	return start <= end && start > -TIME_LIMIT && end < TIME_LIMIT;
}

bool *plot_wanted_parts(const struct regions *r, const struct region_query *q)
{
	bool *wanted = calloc(r->part_count ? r->part_count : 1, sizeof *wanted);
	bool *names = calloc(r->name_count ? r->name_count : 1, sizeof *names);

	for (size_t i = 0; names && i < r->name_count; i++)
		names[i] = region_query_takes_name(q, r->names[i]);
	for (size_t i = 0; wanted && names && i < r->part_count; i++)
		wanted[i] = names[r->parts[i].region] && region_query_takes_rank(q, r->parts[i].rank);
	if (!names) {
		free(wanted);
		wanted = NULL;
	}
	free(names);
	return wanted;
}

static int span_block(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct plot_span *s = context;
	const int64_t *starts = b->columns[REGION_START], *ends = b->columns[REGION_END];

	(void)worker, (void)err;
	for (size_t i = 0; i < b->n; i++) {
		if (!plot_call_is_sound(starts[i], ends[i])) {
			s->senseless++;
			continue;
		}
		s->first = s->calls == 0 || starts[i] < s->first ? starts[i] : s->first;
		s->last = s->calls == 0 || ends[i] > s->last ? ends[i] : s->last;
		s->calls++;
	}
	return 0;
}

int plot_calls_span(struct region_file *f, const bool *wanted, struct plot_span *ret, struct warnings *notes,
		    struct error *err)
{
	const struct regions *r = region_file_regions(f);
	struct plot_span span = {0};
	struct region_scan scan = {.wanted = wanted, .workers = 1, .block = span_block, .context = &span};

	if (region_file_scan(f, &scan, err) < 0)
		return -1;
	for (size_t i = 0; i < r->part_count; i++)
		if (wanted[i] && r->parts[i].calls > r->parts[i].count)
			span.untimed += r->parts[i].calls - r->parts[i].count;
	if (span.untimed)
		warnings_add(notes,
			     "%s: %" PRIu64 " calls were only counted or added up, without a time of their own: the"
			     " figure leaves them out",
			     r->path, span.untimed);
	if (span.senseless)
		warnings_add(notes,
			     "%s: %" PRIu64 " calls end before they begin, or at no possible time: the figure leaves"
			     " them out",
			     r->path, span.senseless);
	*ret = span;
	return 0;
}

/* One visit: a slice of it at a time is held. */
struct ordering {
	struct region_file *file;
	const struct plot_visit *visit;
	int64_t from, to; /* the slice: starts within [from, to] */
	struct plot_call *calls;
	uint64_t count, room;
	uint64_t *bins, bin_width;
};

static bool in_slice(const struct ordering *o, int64_t start, int64_t end)
{
	return start >= o->from && start <= o->to && end >= o->visit->from && start <= o->visit->to &&
	       plot_call_is_sound(start, end);
}

static int count_block(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct ordering *o = context;
	const int64_t *starts = b->columns[REGION_START], *ends = b->columns[REGION_END];

	(void)worker, (void)err;
	for (size_t i = 0; i < b->n; i++)
		if (in_slice(o, starts[i], ends[i]))
			o->bins[(uint64_t)(starts[i] - o->from) / o->bin_width]++;
	return 0;
}

static int collect_block(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct ordering *o = context;
	const int64_t *starts = b->columns[REGION_START], *ends = b->columns[REGION_END];
	const int64_t *calls = b->columns[REGION_CALL], *parents = b->columns[REGION_PARENT];
	const int64_t *threads = b->columns[REGION_THREAD];

	(void)worker;
	for (size_t i = 0; i < b->n; i++) {
		int64_t thread = threads ? threads[i] : -1;

		if (!in_slice(o, starts[i], ends[i]))
			continue;
		if (o->count == o->room)
			return error_set(err, "the file changed while it was read");
		o->calls[o->count++] = (struct plot_call){
			.start = starts[i],
			.end = ends[i],
			.call = calls ? calls[i] : -1,
			.parent = parents ? parents[i] : -1,
			.part = (uint32_t)b->part,
			.thread = thread >= 0 && thread <= INT32_MAX ? (int32_t)thread : -1,
		};
	}
	return 0;
}

/* Calls that began and ended together: the one around the others has the lowest number. */
static int by_start(const void *left, const void *right)
{
	const struct plot_call *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	if (a->call != b->call)
		return a->call < b->call ? -1 : 1;
	return a->part < b->part ? -1 : a->part > b->part;
}

static int scan(struct ordering *o, unsigned columns, int (*block)(void *, unsigned, const struct region_block *,
								     struct error *), struct error *err)
{
	struct region_scan s = {
		.wanted = o->visit->wanted, .columns = columns, .workers = 1, .block = block, .context = o};

	return region_file_scan(o->file, &s, err);
}

static int visit_slice(struct ordering *o, int64_t from, int64_t to, uint64_t count, struct error *err)
{
	unsigned columns = 1u << REGION_THREAD | (o->visit->parents ? 1u << REGION_CALL | 1u << REGION_PARENT : 0);
	CLEANUP(free_cleanup) struct plot_call *calls = NULL;

	if (count == 0)
		return 0;
	calls = reallocarray(NULL, count, sizeof *calls);
	if (!calls)
		return error_set(err, "out of memory for %" PRIu64 " calls", count);
	o->calls = calls;
	o->room = count;
	o->count = 0;
	o->from = from;
	o->to = to;
	if (scan(o, columns, collect_block, err) < 0)
		return -1;
	qsort(calls, o->count, sizeof *calls, by_start);
	for (uint64_t i = 0; i < o->count; i++)
		if (o->visit->call(o->visit->context, &calls[i], err) < 0)
			return -1;
	return 0;
}

/* A range of more calls than a slice holds is cut at the bins of a histogram, and a bin that is too full again. */
static int visit_range(struct ordering *o, int64_t from, int64_t to, uint64_t count, struct error *err)
{
	CLEANUP(free_cleanup) uint64_t *bins = NULL;
	uint64_t width = (uint64_t)(to - from) / SLICE_BINS + 1, held = 0;
	int64_t slice = from;

	if (count <= SLICE_CALLS)
		return visit_slice(o, from, to, count, err);
	if (from == to)
		return error_set(err, "%" PRIu64 " calls begin in the same nanosecond, which no figure can order",
				 count);
	bins = calloc(SLICE_BINS, sizeof *bins);
	if (!bins)
		return error_set(err, "out of memory for the order of %" PRIu64 " calls", count);
	o->bins = bins;
	o->bin_width = width;
	o->from = from;
	o->to = to;
	if (scan(o, 0, count_block, err) < 0)
		return -1;
	for (size_t i = 0; i < SLICE_BINS; i++) {
		int64_t begin = from + (int64_t)(i * width);

		if (begin > to)
			break;
		if (held && held + bins[i] > SLICE_CALLS) {
			if (visit_range(o, slice, begin - 1, held, err) < 0)
				return -1;
			held = 0;
		}
		if (held == 0)
			slice = begin;
		held += bins[i];
	}
	return visit_range(o, slice, to, held, err);
}

int plot_calls_visit(struct region_file *f, const struct plot_span *span, const struct plot_visit *v,
		     struct error *err)
{
	struct ordering o = {.file = f, .visit = v};
	const char *path = region_file_regions(f)->path;

	/* Counted before the window is heeded: the first cut then knows how many there are in it. */
	if (span->calls && visit_range(&o, span->first, span->last, span->calls, err) < 0)
		return error_prefix(err, "%s", path);
	return 0;
}
