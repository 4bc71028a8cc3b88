#include "store/region_tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/region_tally.h"

#define NONE UINT32_MAX
#define RESOLVED (UINT32_C(1) << 31)
#define VISITING (UINT32_C(1) << 30)
#define CALLS_MAX (UINT64_C(1) << 28) /* of a rank: 2 GiB */
#define SPARSE 4u                     /* so many ids may there be to a call */

struct reading {
	const struct regions *r;
	struct region_tree *tree;
	const bool *names; /* which are asked for */
	bool *wanted;      /* parts of the rank */
	int64_t least, most; /* ids of calls */
	/* By id - least: the parent's, NONE; the call's region, then RESOLVED | its node. NONE: no such call. */
	uint32_t *parents, *nodes;
	size_t count;
};

static int take_ids(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct reading *in = context;
	const int64_t *ids = b->columns[REGION_CALL];

	(void)worker, (void)err;
	for (size_t i = 0; i < b->n; i++) {
		if (ids[i] < 0)
			continue;
		in->least = ids[i] < in->least ? ids[i] : in->least;
		in->most = ids[i] > in->most ? ids[i] : in->most;
	}
	return 0;
}

static int take_parents(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct reading *in = context;
	const int64_t *ids = b->columns[REGION_CALL], *parents = b->columns[REGION_PARENT];

	(void)worker, (void)err;
	for (size_t i = 0; i < b->n; i++) {
		if (ids[i] < 0)
			continue;
		in->nodes[ids[i] - in->least] = in->r->parts[b->part].region;
		if (parents[i] >= in->least && parents[i] <= in->most)
			in->parents[ids[i] - in->least] = (uint32_t)(parents[i] - in->least);
	}
	return 0;
}

/* The node of a region in `parent`; what is not asked for has that of its parent. */
static int enter(struct reading *in, uint32_t parent, uint32_t region, uint32_t *ret, struct error *err)
{
	*ret = parent;
	if (!in->names[region])
		return 0;
	*ret = region_tree_node(in->tree, parent, region, err);
	return *ret ? 0 : -1;
}

/* Finds the nodes of a call and of those around it: up to one that is known or the outermost, and down again. On the
 * way up each call's parent is turned around, to its child. */
static int resolve(struct reading *in, uint32_t call, struct error *err)
{
	uint32_t child = NONE, node = REGION_TREE_ROOT;

	while (call != NONE && in->nodes[call] != NONE && !(in->nodes[call] & (RESOLVED | VISITING))) {
		uint32_t up = in->parents[call];

		in->nodes[call] |= VISITING;
		in->parents[call] = child;
		child = call;
		call = up;
	}
	/* One that is being visited is its own ancestor in a damaged file: the way ends there as at an outermost. */
	if (call != NONE && in->nodes[call] != NONE && in->nodes[call] & RESOLVED)
		node = in->nodes[call] & ~RESOLVED;
	while (child != NONE) {
		if (enter(in, node, in->nodes[child] & ~VISITING, &node, err) < 0)
			return -1;
		in->nodes[child] = RESOLVED | node;
		child = in->parents[child];
	}
	return 0;
}

static int take_times(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct reading *in = context;
	const int64_t *ids = b->columns[REGION_CALL];
	const int64_t *starts = b->columns[REGION_START], *ends = b->columns[REGION_END];
	uint32_t region = in->r->parts[b->part].region;

	(void)worker;
	for (size_t i = 0; i < b->n && in->names[region]; i++) {
		uint32_t node;

		if (ids[i] >= in->least && ids[i] <= in->most && in->nodes[ids[i] - in->least] != NONE)
			node = in->nodes[ids[i] - in->least] & ~RESOLVED;
		else if (enter(in, REGION_TREE_ROOT, region, &node, err) < 0)
			return -1;
		region_tree_add(in->tree, node, region_duration(starts[i], ends[i]));
	}
	return 0;
}

static int scan(struct region_file *f, struct reading *in, bool parents,
		int (*block)(void *context, unsigned worker, const struct region_block *block, struct error *err),
		struct error *err)
{
	const struct region_scan scan = {.wanted = in->wanted,
					 .columns = 1u << REGION_CALL | (parents ? 1u << REGION_PARENT : 0),
					 .workers = 1,
					 .block = block,
					 .context = in};

	return region_file_scan(f, &scan, err);
}

static int make_room(struct reading *in, uint64_t calls, uint32_t rank, struct error *err)
{
	uint64_t ids = in->least > in->most ? 0 : (uint64_t)(in->most - in->least) + 1;

	if (calls > CALLS_MAX)
		return error_set(err, "%s: rank %" PRIu32 " has %" PRIu64 " calls, too many for a tree; --ranks leaves "
				      "it out", in->r->path, rank, calls);
	if (ids > SPARSE * calls + 1024)
		return error_set(err, "%s: rank %" PRIu32 " has calls numbered from %" PRId64 " to %" PRId64 ", which "
				      "is too far apart for a tree", in->r->path, rank, in->least, in->most);
	in->count = (size_t)ids;
	in->parents = malloc((in->count + 1) * sizeof *in->parents);
	in->nodes = malloc((in->count + 1) * sizeof *in->nodes);
	if (!in->parents || !in->nodes)
		return error_set(err, "out of memory for the parents of %" PRIu64 " calls", ids);
	memset(in->parents, 0xff, in->count * sizeof *in->parents);
	memset(in->nodes, 0xff, in->count * sizeof *in->nodes);
	return 0;
}

static int read_rank(struct region_file *f, struct reading *in, uint32_t rank, struct error *err)
{
	uint64_t calls = 0;
	int got;

	in->least = INT64_MAX;
	in->most = INT64_MIN;
	for (size_t i = 0; i < in->r->part_count; i++) {
		in->wanted[i] = in->r->parts[i].rank == rank;
		calls += in->wanted[i] ? in->r->parts[i].count : 0;
	}
	if (calls == 0)
		return 0;
	got = scan(f, in, false, take_ids, err);
	if (got == 0)
		got = make_room(in, calls, rank, err);
	if (got == 0)
		got = scan(f, in, true, take_parents, err);
	for (size_t i = 0; got == 0 && i < in->count; i++)
		got = resolve(in, (uint32_t)i, err);
	if (got == 0)
		got = scan(f, in, false, take_times, err);
	free(in->parents);
	free(in->nodes);
	in->parents = in->nodes = NULL;
	return got;
}

int region_tree_read(struct region_file *f, const struct region_query *q, struct region_tree *ret, struct error *err)
{
	const struct regions *r = region_file_regions(f);
	CLEANUP(region_tree_release) struct region_tree tree;
	CLEANUP(free_cleanup) bool *names = calloc(r->name_count + 1, sizeof *names);
	CLEANUP(free_cleanup) bool *wanted = calloc(r->part_count + 1, sizeof *wanted);
	struct reading in = {.r = r, .tree = &tree, .names = names, .wanted = wanted};
	unsigned needed = 1u << REGION_CALL | 1u << REGION_PARENT;

	region_tree_init(&tree);
	if ((r->columns & needed) != needed)
		return error_set(err, "%s does not say which call was made in which (it has no parent ids), and times "
				      "alone do not tell", r->path);
	if (!names || !wanted)
		return error_set(err, "out of memory for %zu regions of ranks", r->part_count);
	for (size_t i = 0; i < r->name_count; i++)
		names[i] = region_query_takes_name(q, r->names[i]);
	for (size_t i = 0; i < r->rank_count; i++)
		if (region_query_takes_rank(q, r->ranks[i]) && read_rank(f, &in, r->ranks[i], err) < 0)
			return -1;
	if (region_tree_finish(&tree, err) < 0)
		return -1;
	tree.path = strdup(r->path);
	if (!tree.path)
		return error_set(err, "out of memory");
	tree.names = (const char *const *)r->names;
	region_tree_release(ret);
	*ret = tree;
	region_tree_init(&tree);
	return 0;
}
