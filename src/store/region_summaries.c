#include "store/region_summaries.h"

#include <stdlib.h>

#include "base/cleanup.h"

/* Of some calls of one part. */
struct partial {
	uint64_t count;
	struct region_summary summary;
};

/* Blocks come in any order and from several threads. Each has a place of its own: along the rows, window or part grows
 * from block to block, so no two blocks have one sum of both, and the sums are in the order of the rows. So they can be
 * put together in that order, and the same calls always give the same last digits. */
struct partials {
	struct region_source *source;
	struct partial *items;
};

static int64_t duration(int64_t start, int64_t end)
{
	return (int64_t)((uint64_t)end - (uint64_t)start);
}

static int add_block(void *context, unsigned worker, const struct region_block *block, struct error *err)
{
	const struct partials *p = context;
	const int64_t *start = block->columns[REGION_START], *end = block->columns[REGION_END];
	const int64_t *gpu = block->columns[REGION_GPU];
	struct partial *to = &p->items[block->first / p->source->window + block->part];
	int64_t first = duration(start[0], end[0]);
	struct region_summary s = {.minimum = first, .maximum = first, .first = first,
				   .start_minimum = start[0], .end_maximum = end[0]};
	uint64_t total = 0;

	(void)worker, (void)err;
	for (size_t i = 0; i < block->n; i++) {
		int64_t took = duration(start[i], end[i]);

		total += (uint64_t)took;
		s.minimum = took < s.minimum ? took : s.minimum;
		s.maximum = took > s.maximum ? took : s.maximum;
		s.start_minimum = start[i] < s.start_minimum ? start[i] : s.start_minimum;
		s.end_maximum = end[i] > s.end_maximum ? end[i] : s.end_maximum;
	}
	s.last = duration(start[block->n - 1], end[block->n - 1]);
	s.total = (int64_t)total;
	s.mean = (double)s.total / (double)block->n;
	for (size_t i = 0; i < block->n; i++) {
		double off = (double)duration(start[i], end[i]) - s.mean;

		s.m2 += off * off;
	}
	for (size_t i = 0; gpu && i < block->n; i++) {
		s.gpu_count += gpu[i] >= 0;
		s.gpu_total += gpu[i] >= 0 ? gpu[i] : 0;
	}
	*to = (struct partial){block->n, s};
	return 0;
}

/* Chan, Golub and LeVeque's way to join means and squared differences. */
static void join(struct partial *a, const struct partial *b)
{
	struct region_summary *s = &a->summary;
	double all = (double)(a->count + b->count), off = b->summary.mean - s->mean;

	if (b->count == 0)
		return;
	if (a->count == 0) {
		*a = *b;
		return;
	}
	s->m2 += b->summary.m2 + off * off * ((double)a->count * (double)b->count / all);
	s->mean += off * ((double)b->count / all);
	s->total = (int64_t)((uint64_t)s->total + (uint64_t)b->summary.total);
	s->minimum = b->summary.minimum < s->minimum ? b->summary.minimum : s->minimum;
	s->maximum = b->summary.maximum > s->maximum ? b->summary.maximum : s->maximum;
	s->last = b->summary.last;
	s->start_minimum =
		b->summary.start_minimum < s->start_minimum ? b->summary.start_minimum : s->start_minimum;
	s->end_maximum = b->summary.end_maximum > s->end_maximum ? b->summary.end_maximum : s->end_maximum;
	s->gpu_count += b->summary.gpu_count;
	s->gpu_total += b->summary.gpu_total;
	a->count += b->count;
}

static void join_part(const struct partials *p, size_t index, struct region_summary *ret)
{
	const struct region_part *part = &p->source->regions->parts[index];
	uint64_t window = p->source->window, last = part->count ? (part->first + part->count - 1) / window : 0;
	struct partial all = {0};

	for (uint64_t i = part->first / window; part->count && i <= last; i++)
		join(&all, &p->items[i + index]);
	if (part->summarised) {
		struct partial added = {part->timed, part->summary};
		int64_t last_call = all.summary.last;
		bool both = all.count > 0;

		join(&all, &added);
		if (both) /* of calls that were only added up nobody knows when they were */
			all.summary.last = last_call;
	}
	*ret = all.summary;
}

int region_summaries(struct region_source *source, struct region_summary **ret, struct error *err)
{
	const struct regions *r = source->regions;
	CLEANUP(free_cleanup) struct region_summary *summaries = calloc(r->part_count + 1, sizeof *summaries);
	struct partials p = {.source = source};
	struct region_scan scan = {.columns = r->columns & 1u << REGION_GPU, .workers = region_file_workers(),
				   .block = add_block, .context = &p};
	int result;

	p.items = calloc(r->part_count + r->call_count / source->window + 1, sizeof *p.items);
	if (!summaries || !p.items) {
		free(p.items);
		return error_set(err, "out of memory for the statistics of %zu regions", r->part_count);
	}
	result = region_source_scan(source, &scan, err);
	for (size_t i = 0; i < r->part_count && result == 0; i++)
		join_part(&p, i, &summaries[i]);
	free(p.items);
	if (result < 0)
		return -1;
	*ret = summaries;
	summaries = NULL;
	return 0;
}
