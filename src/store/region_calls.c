#include "store/region_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "wire/segment.h"

#define OFFSET_MAX (UINT64_C(1) << 40) /* where an area may begin: far above what the layout needs */

struct region_calls {
	char *path;
	int fd;
	uint64_t stack, totals, buckets, data; /* where they begin */
	uint32_t depth;                        /* slots in use */
	struct region_calls_facts facts;
};

void region_calls_free(struct region_calls *c)
{
	if (!c)
		return;
	fd_cleanup(&c->fd);
	free(c->path);
	free(c);
}

void region_calls_cleanup(struct region_calls **c)
{
	region_calls_free(*c);
}

const struct region_calls_facts *region_calls_facts(const struct region_calls *c)
{
	return &c->facts;
}

/* Reads `length` bytes; what lies behind the file's end is zeros where `cut` allows it: areas that nobody touched. */
static int read_at(const struct region_calls *c, void *to, size_t length, uint64_t offset, bool cut, struct error *err)
{
	size_t done = 0;

	while (done < length) {
		ssize_t got = pread(c->fd, (char *)to + done, length - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set(err, "%s: byte %" PRIu64 ": %s", c->path, offset + done, strerror(errno));
		if (got == 0 && !cut)
			return error_set(err, "%s: became shorter while it was read, at byte %" PRIu64, c->path,
					 offset + done);
		if (got == 0)
			break;
		done += (size_t)got;
	}
	memset((char *)to + done, 0, length - done);
	return 0;
}

static int check_header(const struct region_calls *c, const struct segment_header *h, const struct region_thread *t,
			struct error *err)
{
	if (memcmp(h->magic, SEGMENT_MAGIC, sizeof h->magic) != 0)
		return error_set(err, "%s: not a file of calls", c->path);
	if (h->version == __builtin_bswap32(SEGMENT_VERSION))
		return error_set(err, "%s: written on a machine of the other byte order; read it there", c->path);
	if (h->version != SEGMENT_VERSION || h->kind != SEGMENT_KIND_CALLS)
		return error_set(err, "%s: a segment of version %u and kind %u; expected are version %d and kind %d",
				 c->path, (unsigned)h->version, (unsigned)h->kind, SEGMENT_VERSION, SEGMENT_KIND_CALLS);
	if (t->layout != REGION_LAYOUT_VERSION)
		return error_set(err, "%s: layout %u of recordings, this program reads layout %d", c->path,
				 (unsigned)t->layout, REGION_LAYOUT_VERSION);
	if (t->clock != REGION_CLOCK_MONOTONIC && t->clock != REGION_CLOCK_TSC)
		return error_set(err, "%s: damaged: no such clock: %u", c->path, (unsigned)t->clock);
	if (h->data_offset < SEGMENT_DATA_OFFSET || h->data_offset % 8 || t->stack_offset > OFFSET_MAX ||
	    t->totals_offset > OFFSET_MAX || t->buckets_offset > OFFSET_MAX || t->stack_offset % 8 ||
	    t->totals_offset % 8 || t->buckets_offset % 8)
		return error_set(err, "%s: damaged: its parts cannot lie where its header says", c->path);
	return 0;
}

/* The page of the header: from a mapping where that is possible, since pread promises no whole words of a file that is
 * still written. */
static int read_page(const struct region_calls *c, unsigned char *page, struct error *err)
{
	void *map;

	if (read_at(c, page, SEGMENT_DATA_OFFSET, 0, true, err) < 0)
		return -1;
	map = mmap(NULL, SEGMENT_DATA_OFFSET, PROT_READ, MAP_SHARED, c->fd, 0);
	if (map == MAP_FAILED)
		return 0;
	for (size_t i = 0; i < SEGMENT_DATA_OFFSET / 8; i++) {
		uint64_t word = atomic_load_explicit((const _Atomic uint64_t *)map + i, memory_order_acquire);

		memcpy(page + 8 * i, &word, 8);
	}
	munmap(map, SEGMENT_DATA_OFFSET);
	return 0;
}

static int read_header(struct region_calls *c, struct error *err)
{
	_Alignas(64) unsigned char page[SEGMENT_DATA_OFFSET];
	const struct segment_header *h = (const void *)page;
	const struct region_thread *t = (const void *)(page + REGION_THREAD_OFFSET);
	uint64_t committed;
	struct stat st;

	if (fstat(c->fd, &st) < 0)
		return error_set(err, "%s: %s", c->path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size < SEGMENT_DATA_OFFSET)
		return error_set(err, "%s: not a file of calls", c->path);
	if (read_page(c, page, err) < 0 || check_header(c, h, t, err) < 0)
		return -1;
	/* A writer that still runs may have grown the file meanwhile, but not past what it then commits. */
	if (fstat(c->fd, &st) < 0)
		return error_set(err, "%s: %s", c->path, strerror(errno));
	committed = atomic_load_explicit(&h->committed, memory_order_relaxed);
	if (committed > (uint64_t)st.st_size)
		committed = (uint64_t)st.st_size;
	c->stack = t->stack_offset;
	c->totals = t->totals_offset;
	c->buckets = t->buckets_offset;
	c->data = h->data_offset;
	c->depth = atomic_load_explicit(&t->depth, memory_order_relaxed);
	if (c->depth > REGION_DEPTH_MAX)
		c->depth = REGION_DEPTH_MAX;
	c->facts = (struct region_calls_facts){
		.clock = t->clock,
		.events = committed > c->data ? (committed - c->data) / sizeof(struct region_event) : 0,
		.dropped = atomic_load_explicit(&h->dropped, memory_order_relaxed),
		.stopped = atomic_load_explicit(&h->stopped, memory_order_relaxed),
		.closed = atomic_load_explicit(&h->closed, memory_order_relaxed) == 1,
		.thread = atomic_load_explicit(&t->thread, memory_order_relaxed),
		.last = atomic_load_explicit(&t->last, memory_order_relaxed),
	};
	for (size_t i = 0; i < REGION_TROUBLES; i++)
		c->facts.troubles[i] = atomic_load_explicit(&t->troubles[i], memory_order_relaxed);
	return 0;
}

int region_calls_open(const char *path, struct region_calls **ret, struct error *err)
{
	CLEANUP(region_calls_cleanup) struct region_calls *c = calloc(1, sizeof *c);

	if (!c)
		return error_set(err, "%s: out of memory", path);
	/* O_NONBLOCK: a FIFO of that name would otherwise wait for its writer. */
	c->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (c->fd < 0)
		return error_set(err, "%s: %s", path, strerror(errno));
	c->path = strdup(path);
	if (!c->path)
		return error_set(err, "%s: out of memory", path);
	if (read_header(c, err) < 0)
		return -1;
	*ret = c;
	c = NULL;
	return 0;
}

int region_calls_read(struct region_calls *c, uint64_t first, size_t n, struct region_event *out, struct error *err)
{
	return read_at(c, out, n * sizeof *out, c->data + first * sizeof *out, false, err);
}

/* A kill between the commit of a call's end and the pop of its slot leaves it in both: 1 where that is so. */
static int has_ended(struct region_calls *c, const struct region_open *slot, struct error *err)
{
	struct region_event last;

	if (c->facts.events == 0)
		return 0;
	if (region_calls_read(c, c->facts.events - 1, 1, &last, err) < 0)
		return -1;
	return last.kind == REGION_EVENT_CALL && last.region == slot->region && last.start == slot->start &&
	       last.depth == slot->depth;
}

int region_calls_stack(struct region_calls *c, struct region_open **ret, size_t *ret_count, struct error *err)
{
	CLEANUP(free_cleanup) struct region_slot *slots = NULL;
	CLEANUP(free_cleanup) struct region_open *open = NULL;
	size_t count = 0;

	if (c->depth) {
		slots = calloc(c->depth, sizeof *slots);
		open = calloc(c->depth, sizeof *open);
		if (!slots || !open)
			return error_set(err, "%s: out of memory", c->path);
		if (read_at(c, slots, c->depth * sizeof *slots, c->stack, true, err) < 0)
			return -1;
	}
	for (uint32_t i = 0; i < c->depth; i++) {
		uint64_t start = atomic_load_explicit(&slots[i].start, memory_order_relaxed);
		uint32_t region = atomic_load_explicit(&slots[i].region, memory_order_relaxed);

		if (start && region && region <= REGION_ID_MAX)
			open[count++] = (struct region_open){start, region, (uint16_t)i};
	}
	if (count) {
		int ended = has_ended(c, &open[count - 1], err);

		if (ended < 0)
			return -1;
		count -= (size_t)ended;
	}
	*ret = open;
	*ret_count = count;
	open = NULL;
	return 0;
}

static struct region_sum sum_of(const struct region_total *t, uint32_t region)
{
	struct region_sum sum = {
		.region = region,
		.calls = atomic_load_explicit(&t->calls, memory_order_relaxed),
		.timed = atomic_load_explicit(&t->timed, memory_order_relaxed),
		.total = atomic_load_explicit(&t->total, memory_order_relaxed),
		.exclusive = atomic_load_explicit(&t->exclusive, memory_order_relaxed),
		.shortest = atomic_load_explicit(&t->shortest, memory_order_relaxed),
		.longest = atomic_load_explicit(&t->longest, memory_order_relaxed),
		.dropped = atomic_load_explicit(&t->dropped, memory_order_relaxed),
		.dropped_total = atomic_load_explicit(&t->dropped_total, memory_order_relaxed),
	};

	/* A kill between two stores leaves them out of step by one. */
	if (sum.timed > sum.calls)
		sum.calls = sum.timed;
	return sum;
}

int region_calls_sums(struct region_calls *c, uint32_t ids, struct region_sum **ret, size_t *ret_count,
		      struct error *err)
{
	CLEANUP(free_cleanup) struct region_total *totals = NULL;
	CLEANUP(free_cleanup) struct region_sum *sums = NULL;
	size_t count = 0;

	if (ids > REGION_ID_MAX + 1)
		ids = REGION_ID_MAX + 1;
	totals = calloc(ids ? ids : 1, sizeof *totals);
	if (!totals)
		return error_set(err, "%s: out of memory", c->path);
	if (read_at(c, totals, ids * sizeof *totals, c->totals, true, err) < 0)
		return -1;
	for (uint32_t i = 1; i < ids; i++) {
		struct region_sum sum = sum_of(&totals[i], i);

		if (!sum.calls && !sum.dropped)
			continue;
		if ((count & (count - 1)) == 0) {
			struct region_sum *more = reallocarray(sums, count ? 2 * count : 1, sizeof *more);

			if (!more)
				return error_set(err, "%s: out of memory", c->path);
			sums = more;
		}
		sums[count++] = sum;
	}
	*ret = sums;
	*ret_count = count;
	sums = NULL;
	return 0;
}

int region_calls_buckets(struct region_calls *c, uint32_t region, uint64_t *out, struct error *err)
{
	return read_at(c, out, REGION_BUCKETS * sizeof *out, c->buckets + region * REGION_BUCKETS * sizeof *out, true,
		       err);
}
