#include "store/region_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "model/region_tally.h"

#define NONE UINT32_MAX
#define CALLS_MAX (UINT64_C(1) << 28) /* of a rank: 1 GiB */
#define SPARSE 4u                     /* so many ids may there be to a call */

struct reading {
	const struct region_inside *in;
	struct region_id_range ids;
	uint32_t *rows; /* by id - least: the row of that call, NONE */
};

static int take_rows(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct reading *r = context;
	const int64_t *ids = b->columns[REGION_CALL], *threads = b->columns[REGION_THREAD];

	(void)worker, (void)err;
	for (size_t i = 0; i < b->n; i++)
		if (ids[i] >= 0)
			r->rows[ids[i] - r->ids.least] = r->in->row_of(r->in->context, b->part,
								       threads ? threads[i] : -1);
	return 0;
}

static int take_times(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct reading *r = context;
	const int64_t *parents = b->columns[REGION_PARENT];
	const int64_t *starts = b->columns[REGION_START], *ends = b->columns[REGION_END];

	(void)worker, (void)err;
	for (size_t i = 0; i < b->n; i++) {
		if (parents[i] < r->ids.least || parents[i] > r->ids.most ||
		    r->rows[parents[i] - r->ids.least] == NONE)
			continue;
		r->in->add(r->in->context, r->rows[parents[i] - r->ids.least], region_duration(starts[i], ends[i]));
	}
	return 0;
}

static int scan(struct region_file *f, struct reading *r, const bool *wanted, unsigned columns,
		int (*block)(void *context, unsigned worker, const struct region_block *block, struct error *err),
		struct error *err)
{
	const struct region_scan scan = {
		.wanted = wanted, .columns = columns, .workers = 1, .block = block, .context = r};

	return region_file_scan(f, &scan, err);
}

/* Why there can be no exclusive times: *ret_why is NULL where they can be. */
static int look(const struct reading *r, const char *path, uint64_t calls, uint32_t rank, char **ret_why,
		struct error *err)
{
	int length = 0;

	if (calls > CALLS_MAX)
		length = asprintf(ret_why, "rank %" PRIu32 " has %s calls, too many to find exclusive times of "
				  "threads; --ranks leaves it out", rank, units_count((double)calls).text);
	else if ((uint64_t)(r->ids.most - r->ids.least) / SPARSE > calls + 1024)
		length = asprintf(ret_why, "exclusive times of threads are not known: rank %" PRIu32 " has calls "
				  "numbered from %" PRId64 " to %" PRId64 ", which is too far apart", rank,
				  r->ids.least, r->ids.most);
	else
		*ret_why = NULL;
	return length < 0 ? error_set(err, "%s: out of memory", path) : 0;
}

int region_inside_rank(struct region_file *f, struct region_by_rank *by_rank, uint32_t rank,
		       const struct region_inside *in, char **ret_why, struct error *err)
{
	CLEANUP(free_cleanup) uint32_t *rows = NULL;
	unsigned ids = 1u << REGION_CALL, thread = by_rank->r->columns & 1u << REGION_THREAD;
	struct reading r = {.in = in};
	uint64_t calls;
	size_t count;

	*ret_why = NULL;
	region_by_rank_go(by_rank, rank);
	calls = region_by_rank_choose(by_rank, NULL);
	if (calls == 0)
		return 0;
	if (region_by_rank_ids(by_rank, f, &r.ids, err) < 0)
		return -1;
	if (r.ids.least > r.ids.most)
		return 0;
	if (look(&r, by_rank->r->path, calls, rank, ret_why, err) < 0 || *ret_why)
		return *ret_why ? 0 : -1;
	count = (size_t)(r.ids.most - r.ids.least) + 1;
	r.rows = rows = malloc(count * sizeof *rows);
	if (!rows)
		return error_set(err, "out of memory for the parents of %zu calls", count);
	memset(rows, 0xff, count * sizeof *rows);
	if (scan(f, &r, by_rank->wanted, ids | thread, take_rows, err) < 0)
		return -1;
	return scan(f, &r, by_rank->wanted, 1u << REGION_PARENT, take_times, err);
}
