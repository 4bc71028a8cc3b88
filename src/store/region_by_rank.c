#include "store/region_by_rank.h"

#include <stdlib.h>

static int compare_ranks(const void *x, const void *y, void *parts)
{
	const struct region_part *left = (const struct region_part *)parts + *(const size_t *)x;
	const struct region_part *right = (const struct region_part *)parts + *(const size_t *)y;

	return (left->rank > right->rank) - (left->rank < right->rank);
}

int region_by_rank_init(struct region_by_rank *b, const struct regions *r, struct error *err)
{
	*b = (struct region_by_rank){.r = r,
				     .wanted = calloc(r->part_count + 1, sizeof *b->wanted),
				     .parts = calloc(r->part_count + 1, sizeof *b->parts)};
	if (!b->wanted || !b->parts) {
		region_by_rank_release(b);
		return error_set(err, "out of memory for %zu regions of ranks", r->part_count);
	}
	for (size_t i = 0; i < r->part_count; i++)
		b->parts[i] = i;
	if (r->part_count)
		qsort_r(b->parts, r->part_count, sizeof *b->parts, compare_ranks, r->parts);
	return 0;
}

void region_by_rank_release(struct region_by_rank *b)
{
	free(b->wanted);
	free(b->parts);
	*b = (struct region_by_rank){0};
}

void region_by_rank_go(struct region_by_rank *b, uint32_t rank)
{
	const struct region_part *parts = b->r->parts;

	for (size_t k = b->from; k < b->to; k++)
		b->wanted[b->parts[k]] = false;
	for (b->from = b->to; b->from < b->r->part_count && parts[b->parts[b->from]].rank < rank;)
		b->from++;
	for (b->to = b->from; b->to < b->r->part_count && parts[b->parts[b->to]].rank == rank;)
		b->to++;
}

uint64_t region_by_rank_choose(struct region_by_rank *b, const bool *names)
{
	uint64_t calls = 0;

	for (size_t k = b->from; k < b->to; k++) {
		const struct region_part *part = &b->r->parts[b->parts[k]];
		bool wanted = !names || names[part->region];

		b->wanted[b->parts[k]] = wanted;
		calls += wanted ? part->count : 0;
	}
	return calls;
}

static int take_ids(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct region_id_range *range = context;
	const int64_t *ids = b->columns[REGION_CALL];

	(void)worker, (void)err;
	for (size_t i = 0; i < b->n; i++) {
		if (ids[i] < 0)
			continue;
		range->least = ids[i] < range->least ? ids[i] : range->least;
		range->most = ids[i] > range->most ? ids[i] : range->most;
	}
	return 0;
}

int region_by_rank_ids(struct region_by_rank *b, struct region_file *f, struct region_id_range *ret, struct error *err)
{
	const struct region_scan scan = {
		.wanted = b->wanted, .columns = 1u << REGION_CALL, .workers = 1, .block = take_ids, .context = ret};

	*ret = (struct region_id_range){INT64_MAX, INT64_MIN};
	return region_file_scan(f, &scan, err);
}
