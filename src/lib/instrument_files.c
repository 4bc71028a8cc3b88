/* The mapped file of one thread's calls: made, grown, forgotten.
 *
 * It grows by blocks that the disk has given before, so that a full disk is an error here and no SIGBUS in the program.
 * No descriptor is kept: a daemon may close them all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/instrument.h"

#define FIRST_PAIRS 64u /* with the header, two pages */
#define FIRST_FRAMES 128u

static size_t pairs_end(uint32_t room)
{
	return CALLS_PAIRS_AT + (size_t)room * sizeof(struct calls_pair);
}

/* Beyond the limit of file sizes the kernel would end the program. */
static int give_blocks(int fd, size_t from, size_t to)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && to > limit.rlim_cur)
		return EFBIG;
	return posix_fallocate(fd, (off_t)from, (off_t)(to - from));
}

static void *map(int fd, size_t offset, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	return at == MAP_FAILED ? NULL : at;
}

static void *map_memory(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static size_t index_size(uint32_t pair_room)
{
	return 2 * (size_t)pair_room * sizeof(uint32_t);
}

void instrument_forget(struct calls_thread *t)
{
	if (t->index)
		munmap(t->index, index_size(t->pair_room));
	if (t->header)
		munmap(t->header, pairs_end(t->pair_room));
	if (t->frames)
		munmap(t->frames, t->frame_room * sizeof *t->frames);
	munmap(t, sizeof *t);
}

/* Returns 0 or errno. */
static int map_first(struct calls_thread *t, int fd)
{
	const size_t frames = FIRST_FRAMES * sizeof(struct calls_frame);
	int failed = give_blocks(fd, 0, pairs_end(FIRST_PAIRS));

	if (!failed)
		failed = give_blocks(fd, CALLS_FRAMES_AT, CALLS_FRAMES_AT + frames);
	if (failed)
		return failed;
	t->pair_room = FIRST_PAIRS;
	t->frame_room = FIRST_FRAMES;
	t->header = map(fd, 0, pairs_end(FIRST_PAIRS));
	t->frames = map(fd, CALLS_FRAMES_AT, frames);
	t->index = map_memory(index_size(FIRST_PAIRS));
	return t->header && t->frames && t->index ? 0 : ENOMEM;
}

static void begin(struct calls_thread *t)
{
	struct calls_header *h = t->header;

	t->pairs = (struct calls_pair *)((char *)h + CALLS_PAIRS_AT);
	t->index_mask = 2 * FIRST_PAIRS - 1;
	t->pairs[CALLS_DROPPED] = (struct calls_pair){.callee = 1, .function = CALLS_DROPPED};
	t->frames[0].place = UINT64_MAX;
	h->version = CALLS_VERSION;
	h->pid = (int32_t)getpid();
	h->tid = (int32_t)syscall(SYS_gettid);
	h->pairs = CALLS_RESERVED;
	/* Last: a reader takes the file for one of ours by it. */
	memcpy(h->magic, CALLS_MAGIC, sizeof h->magic);
}

struct calls_thread *instrument_open(struct calls *c, int *ret_failed)
{
	struct calls_thread *t = map_memory(sizeof *t);
	char suffix[32];
	int fd, failed;

	*ret_failed = ENOMEM;
	if (!t)
		return NULL;
	snprintf(suffix, sizeof suffix, ".%u", c->files);
	t->tsc = c->tsc;
	failed = instrument_path(c, t->path, suffix);
	fd = failed ? -1 : open(t->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0) {
		*ret_failed = failed ? failed : errno;
		instrument_forget(t);
		return NULL;
	}
	failed = map_first(t, fd);
	close(fd);
	if (failed) {
		*ret_failed = failed;
		unlink(t->path);
		instrument_forget(t);
		return NULL;
	}
	c->files++;
	begin(t);
	return t;
}

/* Maps more of an area of the file; NULL: that cannot be, and the old mapping stays. */
static void *grow(struct calls_thread *t, void *old, size_t offset, size_t size, size_t wanted)
{
	int fd = open(t->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	int failed = fd < 0 ? errno : give_blocks(fd, offset + size, offset + wanted);
	void *at = MAP_FAILED;

	if (fd >= 0)
		close(fd);
	if (!failed) {
		at = mremap(old, size, wanted, MREMAP_MAYMOVE);
		failed = at == MAP_FAILED ? errno : 0;
	}
	if (failed) {
		t->header->trouble = failed;
		return NULL;
	}
	return at;
}

static void fill_index(const struct calls_thread *t, const uint32_t *old, uint32_t old_places, uint32_t *index)
{
	uint32_t mask = 2 * old_places - 1;

	for (uint32_t i = 0; i < old_places; i++) {
		uint64_t at;

		if (!old[i])
			continue;
		at = instrument_hash(t->pairs[old[i]].caller, t->pairs[old[i]].callee) & mask;
		while (index[at])
			at = (at + 1) & mask;
		index[at] = old[i];
	}
}

bool instrument_grow_pairs(struct calls_thread *t)
{
	uint32_t room = t->pair_room, *index;
	void *at;

	if (room >= CALLS_PAIRS_MAX)
		return false;
	index = map_memory(index_size(2 * room));
	at = index ? grow(t, t->header, 0, pairs_end(room), pairs_end(2 * room)) : NULL;
	if (!at) {
		if (index)
			munmap(index, index_size(2 * room));
		return false;
	}
	t->header = at;
	t->pairs = (struct calls_pair *)((char *)at + CALLS_PAIRS_AT);
	fill_index(t, t->index, t->index_mask + 1, index);
	munmap(t->index, index_size(room));
	t->index = index;
	t->index_mask = 4 * room - 1;
	t->pair_room = 2 * room;
	return true;
}

bool instrument_grow_frames(struct calls_thread *t)
{
	size_t size = t->frame_room * sizeof *t->frames;
	void *at;

	if (t->frame_room >= CALLS_FRAMES_MAX)
		return false;
	at = grow(t, t->frames, CALLS_FRAMES_AT, size, 2 * size);
	if (!at)
		return false;
	t->frames = at;
	t->frame_room *= 2;
	return true;
}
