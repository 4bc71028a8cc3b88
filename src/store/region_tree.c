#include "store/region_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "model/region_tally.h"
#include "store/region_by_rank.h"

#define NONE UINT32_MAX
#define RESOLVED (UINT32_C(1) << 31)
#define VISITING (UINT32_C(1) << 30)
#define IN_MEMORY_MAX ((size_t)64 << 20) /* bytes of notes on calls that are not put into a file */
#define SPARSE 8u			 /* so many ids may there be to a call */

/* What is known of a call: that around it, NONE; its region, then RESOLVED | its node. NONE: no such call. */
struct note {
	uint32_t parent, node;
};

struct reading {
	const struct regions *r;
	struct region_tree *tree;
	const bool *names; /* which are asked for */
	struct region_by_rank *by_rank;
	struct region_id_range ids;
	struct note *notes; /* by id - least */
	size_t count, bytes;
};

static int take_parents(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct reading *in = context;
	const int64_t *ids = b->columns[REGION_CALL], *parents = b->columns[REGION_PARENT];

	(void)worker, (void)err;
	for (size_t i = 0; i < b->n; i++) {
		if (ids[i] < 0)
			continue;
		in->notes[ids[i] - in->ids.least] = (struct note){
			.parent = parents[i] >= in->ids.least && parents[i] <= in->ids.most
					  ? (uint32_t)(parents[i] - in->ids.least)
					  : NONE,
			.node = in->r->parts[b->part].region,
		};
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
	struct note *notes = in->notes;
	uint32_t child = NONE, node = REGION_TREE_ROOT;

	while (call != NONE && notes[call].node != NONE && !(notes[call].node & (RESOLVED | VISITING))) {
		uint32_t up = notes[call].parent;

		notes[call].node |= VISITING;
		notes[call].parent = child;
		child = call;
		call = up;
	}
	/* One that is being visited is its own ancestor in a damaged file: the way ends there as at an outermost. */
	if (call != NONE && notes[call].node != NONE && notes[call].node & RESOLVED)
		node = notes[call].node & ~RESOLVED;
	while (child != NONE) {
		if (enter(in, node, notes[child].node & ~VISITING, &node, err) < 0)
			return -1;
		notes[child].node = RESOLVED | node;
		child = notes[child].parent;
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
	for (size_t i = 0; i < b->n; i++) {
		uint32_t node;

		if (in->notes && ids[i] >= in->ids.least && ids[i] <= in->ids.most) {
			if (resolve(in, (uint32_t)(ids[i] - in->ids.least), err) < 0)
				return -1;
			node = in->notes[ids[i] - in->ids.least].node & ~RESOLVED;
		} else if (enter(in, REGION_TREE_ROOT, region, &node, err) < 0) {
			return -1;
		}
		region_tree_add(in->tree, node, region_duration(starts[i], ends[i]));
	}
	return 0;
}

static int scan(struct region_file *f, struct reading *in, bool parents,
		int (*block)(void *context, unsigned worker, const struct region_block *block, struct error *err),
		struct error *err)
{
	const struct region_scan scan = {.wanted = in->by_rank->wanted,
					 .columns = 1u << REGION_CALL | (parents ? 1u << REGION_PARENT : 0),
					 .workers = 1,
					 .block = block,
					 .context = in};

	return region_file_scan(f, &scan, err);
}

/* All blocks of the file are there, so that a full disk is an error here and no signal later. */
static int map_notes(struct reading *in, struct error *err)
{
	CLEANUP(fd_cleanup) int fd = -1;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS, problem = 0;
	void *at;

	in->bytes = (in->count + 1) * sizeof *in->notes;
	if (in->bytes > IN_MEMORY_MAX) {
		fd = fs_open_unnamed();
		problem = fd < 0 ? -fd : posix_fallocate(fd, 0, (off_t)in->bytes);
		flags = MAP_SHARED;
	}
	if (problem)
		return error_set(err, "%s: no temporary file of %zu bytes for the paths of its calls: %s", in->r->path,
				 in->bytes, strerror(problem));
	at = mmap(NULL, in->bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (at == MAP_FAILED)
		return error_set(err, "%s: no memory for the paths of %zu calls: %s", in->r->path, in->count,
				 strerror(errno));
	in->notes = at;
	memset(in->notes, 0xff, in->bytes);
	return 0;
}

static int make_room(struct reading *in, uint64_t calls, uint32_t rank, struct error *err)
{
	uint64_t ids = in->ids.least > in->ids.most ? 0 : (uint64_t)(in->ids.most - in->ids.least) + 1;

	if (ids / SPARSE > calls + 1024 || ids >= NONE)
		return error_set(err,
				 "%s: the calls of rank %" PRIu32 " are not numbered so that their paths could be "
				 "found (from %" PRId64 " to %" PRId64 "); --ranks leaves it out",
				 in->r->path, rank, in->ids.least, in->ids.most);
	in->count = (size_t)ids;
	return map_notes(in, err);
}

/* Those left out are read, too, for what is around others. */
static int read_rank(struct region_file *f, struct reading *in, uint32_t rank, struct error *err)
{
	uint64_t calls;
	int got;

	if (region_by_rank_choose(in->by_rank, in->names) == 0)
		return 0;
	calls = region_by_rank_choose(in->by_rank, NULL);
	got = region_by_rank_ids(in->by_rank, f, &in->ids, err);
	if (got == 0)
		got = make_room(in, calls, rank, err);
	if (got == 0)
		got = scan(f, in, true, take_parents, err);
	region_by_rank_choose(in->by_rank, in->names);
	if (got == 0)
		got = scan(f, in, false, take_times, err);
	if (in->notes)
		munmap(in->notes, in->bytes);
	in->notes = NULL;
	return got;
}

bool region_tree_is_known(const struct regions *r)
{
	unsigned needed = 1u << REGION_CALL | 1u << REGION_PARENT;

	return (r->columns & needed) == needed;
}

static int read_tree(struct region_file *f, const struct region_query *q, bool flat, struct region_tree *ret,
		     struct error *err)
{
	const struct regions *r = region_file_regions(f);
	CLEANUP(region_tree_release) struct region_tree tree;
	CLEANUP(free_cleanup) bool *names = calloc(r->name_count + 1, sizeof *names);
	CLEANUP(region_by_rank_release) struct region_by_rank by_rank = {0};
	struct reading in = {.r = r, .tree = &tree, .names = names, .by_rank = &by_rank};

	region_tree_init(&tree);
	if (!names)
		return error_set(err, "out of memory for %zu names of regions", r->name_count);
	if (region_by_rank_init(&by_rank, r, err) < 0 ||
	    region_query_names(q, (const char *const *)r->names, r->name_count, names, err) < 0)
		return -1;
	for (size_t i = 0; i < r->rank_count; i++) {
		if (!region_query_takes_rank(q, r->ranks[i]))
			continue;
		region_by_rank_go(&by_rank, r->ranks[i]);
		if (flat && region_by_rank_choose(&by_rank, names) > 0 &&
		    scan(f, &in, false, take_times, err) < 0)
			return -1;
		if (!flat && read_rank(f, &in, r->ranks[i], err) < 0)
			return -1;
	}
	tree.path = strdup(r->path);
	if (!tree.path)
		return error_set(err, "out of memory");
	tree.names = (const char *const *)r->names;
	region_tree_release(ret);
	*ret = tree;
	region_tree_init(&tree);
	return 0;
}

int region_tree_read(struct region_file *f, const struct region_query *q, struct region_tree *ret, struct error *err)
{
	const struct regions *r = region_file_regions(f);

	if (!region_tree_is_known(r))
		return error_set(err,
				 "%s does not say which call was made in which (it has no parent ids), and times "
				 "alone do not tell",
				 r->path);
	return read_tree(f, q, false, ret, err);
}

int region_tree_read_flat(struct region_file *f, const struct region_query *q, struct region_tree *ret,
			  struct error *err)
{
	return read_tree(f, q, true, ret, err);
}
