#include "report/region_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

#define IN_MEMORY_MAX ((size_t)64 << 20) /* bytes of links that are not put into a file */
#define SPARSE_MAX 8                      /* call ids per call, beyond which they are no index any more */

void region_paths_init(struct region_paths *p)
{
	*p = (struct region_paths){0};
}

void region_paths_release(struct region_paths *p)
{
	free(p->items);
	free(p->slots);
	region_paths_init(p);
}

/* What is known of a call, by its id. */
struct link {
	uint32_t parent; /* index of the call around it + 1; 0: none */
	uint32_t region; /* + 1; 0: there is no such call */
	uint32_t path;   /* + 1; 0: not found yet; LINK_BUSY while it is being found */
};

#define LINK_BUSY UINT32_MAX

/* The links of one rank. */
struct rank_links {
	struct link *items;
	int64_t first; /* the lowest id */
	size_t count, bytes;
};

static void links_release(struct rank_links *l)
{
	if (l->items)
		munmap(l->items, l->bytes);
	*l = (struct rank_links){0};
}

/* Below $TMPDIR or /tmp, gone when it is closed. All its blocks are there, so that a full disk is an error here and no
 * signal later. Returns the descriptor, or -errno. */
static int open_unlinked(size_t bytes)
{
	const char *folder = getenv("TMPDIR");
	CLEANUP(free_cleanup) char *path = NULL;
	int fd, problem;

	if (asprintf(&path, "%s/assay-export-XXXXXX", folder && *folder ? folder : "/tmp") < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	problem = posix_fallocate(fd, 0, (off_t)bytes);
	if (problem) {
		close(fd);
		return -problem;
	}
	return fd;
}

static int links_make(struct rank_links *l, const char *path, struct error *err)
{
	CLEANUP(fd_cleanup) int fd = -1;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *at;

	l->bytes = (l->count + 1) * sizeof *l->items;
	if (l->bytes > IN_MEMORY_MAX) {
		fd = open_unlinked(l->bytes);
		if (fd < 0)
			return error_set(err, "%s: no temporary file of %zu bytes for the paths of its calls: %s", path,
					 l->bytes, strerror(-fd));
		flags = MAP_SHARED;
	}
	at = mmap(NULL, l->bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (at == MAP_FAILED)
		return error_set(err, "%s: no memory for the paths of %zu calls: %s", path, l->count, strerror(errno));
	l->items = at;
	return 0;
}

struct reading {
	const struct regions *regions;
	struct region_paths *paths;
	bool *names; /* that the export takes */
	struct rank_links links;
	int64_t last; /* the highest id of the rank */
	uint32_t *chain; /* calls around a call, innermost first */
	size_t chain_room;
};

static void reading_release(struct reading *r)
{
	links_release(&r->links);
	free(r->names);
	free(r->chain);
}

static size_t slot_of(const struct region_paths *p, uint32_t parent, uint32_t region)
{
	uint64_t hash = ((uint64_t)parent << 32 | region) * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(hash >> 20) & (p->slot_count - 1);

	while (p->slots[at] && (p->items[p->slots[at]].parent != parent || p->items[p->slots[at]].region != region))
		at = (at + 1) & (p->slot_count - 1);
	return at;
}

static int grow(struct region_paths *p, struct error *err)
{
	size_t room = p->room ? 2 * p->room : 1024, slot_count = 2 * room;
	struct region_path *items = reallocarray(p->items, room, sizeof *items);
	uint32_t *slots;

	if (!items)
		return error_set(err, "out of memory for %zu paths", room);
	p->items = items;
	p->room = room;
	slots = calloc(slot_count, sizeof *slots);
	if (!slots)
		return error_set(err, "out of memory for %zu paths", room);
	free(p->slots);
	p->slots = slots;
	p->slot_count = slot_count;
	if (!p->count)
		p->items[p->count++] = (struct region_path){0};
	for (size_t i = 1; i < p->count; i++)
		p->slots[slot_of(p, p->items[i].parent, p->items[i].region)] = (uint32_t)i;
	return 0;
}

/* The path of a region inside a path: its index, which is not 0; 0 with *err. */
static uint32_t find_path(struct region_paths *p, uint32_t parent, uint32_t region, struct error *err)
{
	size_t at = slot_of(p, parent, region);

	if (p->slots[at])
		return p->slots[at];
	if (p->count > REGION_PATHS_MAX) {
		error_set(err, "there are more than %d different paths of regions: choose with --include or --exclude",
			  REGION_PATHS_MAX);
		return 0;
	}
	if (p->count == p->room) {
		if (grow(p, err) < 0)
			return 0;
		at = slot_of(p, parent, region);
	}
	p->items[p->count] = (struct region_path){.parent = parent, .region = region};
	p->slots[at] = (uint32_t)p->count;
	return (uint32_t)p->count++;
}

static int take_ids(void *context, unsigned worker, const struct region_block *block, struct error *err)
{
	struct reading *r = context;

	(void)worker, (void)err;
	for (size_t i = 0; i < block->n; i++) {
		int64_t id = block->columns[REGION_CALL][i];

		r->links.first = id < r->links.first ? id : r->links.first;
		r->last = id > r->last ? id : r->last;
	}
	return 0;
}

/* The index of an id among the links; `count` where it is none. */
static size_t link_of(const struct rank_links *l, int64_t id)
{
	uint64_t at = (uint64_t)id - (uint64_t)l->first;

	return id >= l->first && at < l->count ? (size_t)at : l->count;
}

static int take_links(void *context, unsigned worker, const struct region_block *block, struct error *err)
{
	struct reading *r = context;

	(void)worker, (void)err;
	for (size_t i = 0; i < block->n; i++) {
		size_t at = link_of(&r->links, block->columns[REGION_CALL][i]);
		int64_t parent = block->columns[REGION_PARENT][i];
		size_t around = parent < 0 ? r->links.count : link_of(&r->links, parent);

		r->links.items[at] = (struct link){
			.parent = around < r->links.count ? (uint32_t)around + 1 : 0,
			.region = r->regions->parts[block->part].region + 1,
		};
	}
	return 0;
}

static int push(struct reading *r, size_t depth, uint32_t at, struct error *err)
{
	if (depth == r->chain_room) {
		size_t room = r->chain_room ? 2 * r->chain_room : 256;
		uint32_t *chain = reallocarray(r->chain, room, sizeof *chain);

		if (!chain)
			return error_set(err, "out of memory for %zu calls inside each other", room);
		r->chain = chain;
		r->chain_room = room;
	}
	r->chain[depth] = at;
	return 0;
}

/* Finds the path of call `at` and of those around it whose paths are not known. Calls that are inside each other in a
 * circle, as only a broken file has them, begin anywhere in it. */
static int resolve(struct reading *r, size_t at, uint32_t *ret_path, struct error *err)
{
	struct link *links = r->links.items;
	size_t depth = 0;
	uint32_t path = 0;

	for (;;) {
		struct link *l = &links[at];

		if (!l->region || l->path == LINK_BUSY)
			break;
		if (l->path) {
			path = l->path - 1;
			break;
		}
		if (push(r, depth, (uint32_t)at, err) < 0)
			return -1;
		depth++;
		l->path = LINK_BUSY;
		if (!l->parent)
			break;
		at = l->parent - 1;
	}
	while (depth > 0) {
		struct link *l = &links[r->chain[--depth]];

		if (r->names[l->region - 1] && !(path = find_path(r->paths, path, l->region - 1, err)))
			return -1;
		l->path = path + 1;
	}
	*ret_path = path;
	return 0;
}

static int add_time(struct reading *r, uint32_t path, int64_t start, int64_t end, struct error *err)
{
	struct region_path *item = &r->paths->items[path];
	int64_t lasted;

	if (__builtin_sub_overflow(end, start, &lasted) || lasted < 0)
		lasted = 0;
	if (__builtin_add_overflow(item->self, lasted, &item->self))
		return error_set(err, "%s: its times add up to more than can be", r->regions->path);
	if (!item->parent)
		return 0;
	item = &r->paths->items[item->parent];
	if (__builtin_sub_overflow(item->self, lasted, &item->self))
		return error_set(err, "%s: its times add up to more than can be", r->regions->path);
	return 0;
}

static int take_times(void *context, unsigned worker, const struct region_block *block, struct error *err)
{
	struct reading *r = context;
	uint32_t region = r->regions->parts[block->part].region, path = 0;

	(void)worker;
	if (!r->links.items && !(path = find_path(r->paths, 0, region, err)))
		return -1;
	for (size_t i = 0; i < block->n; i++) {
		if (r->links.items && resolve(r, link_of(&r->links, block->columns[REGION_CALL][i]), &path, err) < 0)
			return -1;
		if (add_time(r, path, block->columns[REGION_START][i], block->columns[REGION_END][i], err) < 0)
			return -1;
	}
	return 0;
}

/* Marks the parts of one rank in `parts`; returns their calls. */
static uint64_t choose_rank(const struct regions *r, uint32_t rank, const bool *names, bool *parts)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < r->part_count; i++) {
		parts[i] = r->parts[i].rank == rank && (!names || names[r->parts[i].region]);
		calls += parts[i] ? r->parts[i].count : 0;
	}
	return calls;
}

static int read_rank(struct reading *r, const struct region_export *e, uint32_t rank, bool *parts, struct error *err)
{
	struct region_scan scan = {.wanted = parts, .columns = 1u << REGION_CALL, .workers = 1, .context = r};
	uint64_t calls = choose_rank(r->regions, rank, NULL, parts), ids;

	if (!choose_rank(r->regions, rank, r->names, parts))
		return 0;
	choose_rank(r->regions, rank, NULL, parts); /* those left out, too: they are around others */
	r->links.first = INT64_MAX;
	r->last = INT64_MIN;
	scan.block = take_ids;
	if (region_file_scan(e->file, &scan, err) < 0)
		return -1;
	ids = (uint64_t)r->last - (uint64_t)r->links.first;
	if (r->links.first < 0 || ids / SPARSE_MAX > calls || ids >= LINK_BUSY - 1)
		return error_set(
			err, "%s: the calls of rank %" PRIu32 " are not numbered so that their paths could be found",
			r->regions->path, rank);
	r->links.count = (size_t)ids + 1;
	scan.columns |= 1u << REGION_PARENT;
	scan.block = take_links;
	if (links_make(&r->links, r->regions->path, err) < 0 || region_file_scan(e->file, &scan, err) < 0)
		return -1;
	choose_rank(r->regions, rank, r->names, parts);
	scan.columns = 1u << REGION_CALL;
	scan.block = take_times;
	if (region_file_scan(e->file, &scan, err) < 0)
		return -1;
	links_release(&r->links);
	return 0;
}

int region_paths_read(struct region_paths *p, const struct region_export *e, struct error *err)
{
	CLEANUP(reading_release) struct reading r = {.regions = region_file_regions(e->file), .paths = p};
	CLEANUP(free_cleanup) bool *parts = region_export_parts(e);
	struct region_scan scan = {.wanted = parts, .workers = 1, .block = take_times, .context = &r};

	r.names = calloc(r.regions->name_count + 1, sizeof *r.names);
	if (!parts || !r.names)
		return error_set(err, "out of memory for %zu regions of ranks", r.regions->part_count);
	if (grow(p, err) < 0)
		return -1;
	if (!(r.regions->columns & 1u << REGION_PARENT) || !(r.regions->columns & 1u << REGION_CALL)) {
		warnings_add(e->warnings,
			     "%s does not say which call is inside which: each region stands alone, with the "
			     "time of what is inside it.",
			     r.regions->path);
		return region_file_scan(e->file, &scan, err);
	}
	for (size_t i = 0; i < r.regions->name_count; i++)
		r.names[i] = region_query_takes_name(e->query, r.regions->names[i]);
	for (size_t i = 0; i < r.regions->rank_count; i++)
		if (region_query_takes_rank(e->query, r.regions->ranks[i]) &&
		    read_rank(&r, e, r.regions->ranks[i], parts, err) < 0)
			return -1;
	return 0;
}
