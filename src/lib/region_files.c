/* The files of the threads: made, grown, mapped, closed.
 *
 * Nothing is stored into a page of a mapping that has no blocks behind it: zeros are written there first. So a full
 * disk is an answer of write(2), never SIGBUS; it works on every file system; and one such write of a whole window
 * gives the kernel large pages to map, which costs less than half of what faults would. Events are mapped in windows,
 * one at a time, so that memory stays bounded. Files are opened by their path for each growth and not kept open. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/recording.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define ZEROS (UINT64_C(64) << 10)
#define PARTS 16 /* of one write */
#define PAGE UINT64_C(4096)    /* unit of the file's layout */
#define STACK_STEP (64 * PAGE) /* what a deep stack grows by */
/* Windows hold whole events and whole pages, so they are multiples of three pages. */
#define LEAST_WINDOW_PAGES 3u
#define FIRST_WINDOW_PAGES 12u
#define WINDOW_PAGES 96u
#define PAIR_EVERY_NS INT64_C(100000000)

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* The thread's file; never another one that lies at its path by now. Returns a descriptor, or -1 with errno. */
static int open_file(const struct thread *t, int flags)
{
	int fd = open(t->path, flags | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_dev != t->device || st.st_ino != t->inode)) {
		close(fd);
		errno = ESTALE;
		return -1;
	}
	return fd;
}

/* Returns a descriptor, or -1 with errno. */
static int make_file(struct thread *t)
{
	int fd = open(t->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0) {
		t->device = st.st_dev;
		t->inode = st.st_ino;
	}
	return fd;
}

/* Above the limit on file sizes a write would be answered with a deadly SIGXFSZ: so none is tried. */
static bool fits(uint64_t end)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur;
}

/* Blocks for the file from `from` to `to`. Returns 0 or errno. */
static int write_zeros(int fd, uint64_t from, uint64_t to)
{
	static const char zeros[ZEROS]; /* never touched but by the kernel: the one zero page, mapped often */

	if (!fits(to))
		return EFBIG;
	while (from < to) {
		struct iovec parts[PARTS];
		int count = 0;
		ssize_t done;

		/* All in one call: the kernel then makes large pages of it. */
		for (uint64_t at = from; at < to && count < PARTS; at += parts[count++].iov_len)
			parts[count] = (struct iovec){(void *)(uintptr_t)zeros, to - at < ZEROS ? to - at : ZEROS};
		done = pwritev(fd, parts, count, (off_t)from);
		if (done < 0 && errno != EINTR)
			return errno;
		if (done > 0)
			from += (uint64_t)done;
	}
	return 0;
}

/* As write_zeros, by path. */
static int make_blocks(const struct thread *t, uint64_t from, uint64_t to, int *ret_fd)
{
	int fd = open_file(t, O_RDWR), failed = fd < 0 ? errno : write_zeros(fd, from, to);

	if (fd >= 0 && (failed || !ret_fd))
		close(fd);
	else if (fd >= 0)
		*ret_fd = fd;
	return failed;
}

/* The same, within the limit of the process. */
static int grow(const struct thread *t, uint64_t from, uint64_t to, int *ret_fd)
{
	int failed;

	if (!recording_take(to - from, t->limit))
		return ENOSPC;
	failed = make_blocks(t, from, to, ret_fd);
	if (failed)
		recording_give_back(to - from);
	return failed;
}

static void *map_shared(int fd, uint64_t offset, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, size, MADV_DONTFORK);
	return at;
}

#define STAND_IN (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

/* Memory at that place, where nothing is. NULL: there is none. Not for a child of this one, as the files are not. */
static void *stand_in_at(void *place, size_t size)
{
	void *at = mmap(place, size, PROT_READ | PROT_WRITE, STAND_IN | MAP_FIXED_NOREPLACE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	if (at != place) { /* a kernel that does not know the flag */
		munmap(at, size);
		return NULL;
	}
	madvise(at, size, MADV_DONTFORK);
	return at;
}

static void fill_header(struct thread *t, uint64_t data_offset, bool tsc)
{
	struct segment_header *h = t->header;
	struct timespec wall;

	h->version = SEGMENT_VERSION;
	h->kind = SEGMENT_KIND_CALLS;
	h->pid = getpid();
	h->data_offset = (uint32_t)data_offset;
	h->capacity = data_offset + t->limit;
	h->mono_ns = monotonic_ns();
	clock_gettime(CLOCK_REALTIME, &wall);
	h->wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec;
	t->shown->layout = REGION_LAYOUT_VERSION;
	t->shown->clock = tsc ? REGION_CLOCK_TSC : REGION_CLOCK_MONOTONIC;
	atomic_store_explicit(&t->shown->thread, UINT32_MAX, memory_order_relaxed);
	atomic_store_explicit(&h->allocated, data_offset, memory_order_relaxed);
	atomic_store_explicit(&h->committed, data_offset, memory_order_release);
	/* Last, so that a file without it was never begun. */
	memcpy(h->magic, SEGMENT_MAGIC, sizeof h->magic);
}

static void set_totals_room(struct thread *t, uint64_t room)
{
	t->totals_room = (uint32_t)room;
	t->plain_room = (uint32_t)(room < REGION_ID_MAX ? room : REGION_ID_MAX) - 1;
}

/* Its page of the header, the first slots of the stack and the first totals; then everything but events is mapped. */
static int set_up(struct thread *t, int fd)
{
	uint64_t stack = PAGE, totals = round_up(stack + REGION_DEPTH_MAX * sizeof(struct region_slot), PAGE);
	uint64_t buckets = totals + (REGION_ID_MAX + 1) * sizeof(struct region_total);
	uint64_t data = round_up(buckets + (REGION_ID_MAX + 1) * (uint64_t)REGION_BUCKETS * sizeof(uint64_t),
				 (uint64_t)sysconf(_SC_PAGESIZE));
	int failed = fits(data) ? write_zeros(fd, 0, 2 * PAGE) : EFBIG;

	if (!failed)
		failed = write_zeros(fd, totals, totals + PAGE);
	if (failed)
		return failed;
	if (ftruncate(fd, (off_t)data) < 0)
		return errno;
	t->header = map_shared(fd, 0, buckets);
	if (!t->header)
		return errno;
	t->mapped = buckets;
	t->shown = (struct region_thread *)((char *)t->header + REGION_THREAD_OFFSET);
	t->shown->stack_offset = stack;
	t->shown->totals_offset = totals;
	t->shown->buckets_offset = buckets;
	t->stack = (struct region_slot *)((char *)t->header + stack);
	t->stack_room = PAGE / sizeof *t->stack;
	t->totals = (struct region_total *)((char *)t->header + totals);
	set_totals_room(t, PAGE / sizeof *t->totals);
	t->committed = &t->header->committed;
	t->grown = data;
	t->tsc = settings.tsc;
	fill_header(t, data, t->tsc);
	return 0;
}

/* Whether the mappings of so many files take no more than a quarter of what the program may have: it needs the rest. */
static bool leaves_address_space(uint64_t files)
{
	uint64_t each = REGION_DEPTH_MAX * sizeof(struct region_slot) +
			(REGION_ID_MAX + 1) * sizeof(struct region_total);
	struct rlimit limit;

	return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	       files * each <= limit.rlim_cur / 4;
}

static struct thread *new_thread(void)
{
	struct thread *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		return NULL;
	if (madvise(t, sizeof *t, MADV_WIPEONFORK) < 0) {
		munmap(t, sizeof *t);
		return NULL;
	}
	return t;
}

struct thread *thread_file_open(struct recording *r, int *ret_failed)
{
	struct thread *t = r->idle;
	char suffix[16];
	int fd = -1;

	if (t) {
		r->idle = t->next_free;
		t->in_use = true;
		t->writing = false; /* nothing of its former thread goes on */
		return t;
	}
	/* These three pages are not of what the limit speaks of: they count what is dropped because of it. */
	t = leaves_address_space(r->file_count + 1) ? new_thread() : NULL;
	*ret_failed = ENOMEM;
	if (!t)
		return NULL;
	t->number = r->file_count;
	t->run = r->run;
	t->limit = settings.limit;
	snprintf(suffix, sizeof suffix, ".%" PRIu32, t->number);
	*ret_failed = recording_path(r->nonce, t->path, suffix);
	if (!*ret_failed) {
		fd = make_file(t);
		*ret_failed = fd < 0 ? errno : set_up(t, fd);
	}
	if (fd >= 0)
		close(fd);
	if (*ret_failed) {
		if (fd >= 0)
			unlink(t->path);
		munmap(t, sizeof *t);
		return NULL;
	}
	r->file_count++;
	t->in_use = true;
	t->next_file = r->files;
	r->files = t;
	return t;
}

static void drop_window(struct thread *t)
{
	/* No hot path may go on: the end first. */
	t->end = 0;
	atomic_signal_fence(memory_order_seq_cst);
	/* An end that is interrupted has a place in it, and not filled it yet; or longjmp has left it, and one window
	 * is never given back. */
	if (t->window && !t->writing)
		munmap(t->window, t->window_size);
	t->writing = false;
	t->window = NULL;
}

bool thread_file_may_retry(int failed)
{
	return failed == EMFILE || failed == ENFILE || failed == ENOMEM || failed == EAGAIN;
}

void thread_file_clocks(struct thread *t)
{
	struct region_clock_pair pair = clock_pair(t->tsc);
	struct region_event event = {pair.clock, (uint64_t)pair.mono_ns, 0, 0, 0, REGION_EVENT_CLOCK};

	t->paired_ns = pair.mono_ns;
	atomic_store_explicit(&t->shown->last, pair.clock, memory_order_relaxed);
	event_write(t, &event);
}

bool thread_file_may_grow(const struct thread *t)
{
	return !t->full && (!t->retry_ns || monotonic_ns() >= t->retry_ns);
}

/* Blocks for the next window, *ret_size bytes: fewer where the limit or the disk has not so many left. Returns 0 or
 * errno. */
static int grow_window(const struct thread *t, uint64_t *ret_size, int *ret_fd)
{
	uint64_t pages = t->window ? WINDOW_PAGES : FIRST_WINDOW_PAGES, page = (uint64_t)sysconf(_SC_PAGESIZE);
	int failed;

	for (;; pages /= 2) {
		*ret_size = pages * page;
		failed = grow(t, t->grown, t->grown + *ret_size, ret_fd);
		if ((failed != ENOSPC && failed != EDQUOT && failed != EFBIG) || pages == LEAST_WINDOW_PAGES)
			return failed;
	}
}

bool thread_file_window(struct thread *t)
{
	uint64_t size, from = t->grown;
	bool first = t->window == NULL;
	char *window = NULL;
	int fd = -1, failed;

	if (!thread_file_may_grow(t))
		return false;
	failed = grow_window(t, &size, &fd);
	if (!failed) {
		window = map_shared(fd, from, size);
		failed = window ? 0 : errno;
		close(fd);
		if (failed)
			recording_give_back(size); /* its blocks are written over next time */
	}
	if (failed) {
		t->full = !thread_file_may_retry(failed);
		t->retry_ns = monotonic_ns() + RETRY_NS;
		if (t->full)
			atomic_store_explicit(&t->header->stopped, failed, memory_order_relaxed);
		return false;
	}
	t->retry_ns = 0;
	madvise(window, size, MADV_POPULATE_WRITE);
	drop_window(t);
	t->window = window;
	t->window_size = size;
	t->grown = from + size;
	t->to_offset = from - (uint64_t)(uintptr_t)window;
	atomic_store_explicit(&t->next, (uint64_t)(uintptr_t)window, memory_order_relaxed);
	atomic_store_explicit(&t->header->allocated, t->grown, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	t->end = (uint64_t)(uintptr_t)window + size;
	if (!first && monotonic_ns() - t->paired_ns > PAIR_EVERY_NS)
		thread_file_clocks(t);
	return true;
}

bool thread_file_stack(struct thread *t)
{
	uint64_t size = sizeof *t->stack, all = round_up(REGION_DEPTH_MAX * size, PAGE);
	uint64_t have = round_up(t->stack_room * size, PAGE), want = have + STACK_STEP < all ? have + STACK_STEP : all;

	if (t->stack_room >= REGION_DEPTH_MAX || grow(t, PAGE + have, PAGE + want, NULL) != 0)
		return false;
	t->stack_room = want == all ? REGION_DEPTH_MAX : (uint32_t)(want / size);
	return true;
}

bool thread_file_totals(struct thread *t, uint32_t id)
{
	uint64_t size = sizeof *t->totals, have = t->totals_room * size, want = round_up((id + 1) * size, PAGE);
	int failed;

	if (id > REGION_ID_MAX || t->no_totals)
		return false;
	/* Beside the limit, too. */
	failed = make_blocks(t, t->shown->totals_offset + have, t->shown->totals_offset + want, NULL);
	if (failed) {
		t->no_totals = !thread_file_may_retry(failed);
		return false;
	}
	set_totals_room(t, want / size);
	return true;
}

bool thread_file_buckets(struct thread *t, uint32_t id)
{
	uint64_t size = BUCKET_CHUNK * REGION_BUCKETS * sizeof(uint64_t);
	uint64_t from = t->shown->buckets_offset + id / BUCKET_CHUNK * size;
	uint64_t *chunk = NULL;
	int fd = -1;

	if (t->no_buckets)
		return false;
	if (grow(t, from, from + size, &fd) == 0) {
		chunk = map_shared(fd, from, size);
		close(fd);
	}
	t->no_buckets = chunk == NULL;
	atomic_store_explicit(&t->buckets[id / BUCKET_CHUNK], chunk, memory_order_relaxed);
	return chunk != NULL;
}

int thread_file_flush(const struct thread *t)
{
	int fd = open_file(t, O_RDONLY), failed = 0;

	if (fd < 0)
		return errno;
	if (fdatasync(fd) < 0)
		failed = errno;
	close(fd);
	return failed;
}

bool thread_file_stand_in(struct thread *t)
{
	if (!t->header || !stand_in_at(t->header, t->mapped))
		return false;
	if (t->window && !stand_in_at(t->window, t->window_size)) {
		munmap(t->header, t->mapped);
		return false;
	}
	t->hot = 0;
	t->run = 0; /* no recording's: its next region leaves it */
	t->full = true;
	return true;
}

void thread_file_close(struct thread *t)
{
	uint64_t committed = atomic_load_explicit(t->committed, memory_order_relaxed);
	int fd = open_file(t, O_RDWR);

	/* What has no file behind it any more may still be written to by an end that is interrupted. */
	t->end = 0;
	atomic_signal_fence(memory_order_seq_cst);
	if (t->window && mmap(t->window, t->window_size, PROT_READ | PROT_WRITE, STAND_IN | MAP_FIXED, -1, 0) !=
				 MAP_FAILED)
		madvise(t->window, t->window_size, MADV_DONTFORK);
	t->full = true;
	atomic_store_explicit(&t->header->closed, 1, memory_order_release);
	if (fd < 0)
		return;
	/* A file that cannot be cut is only longer than it needs to be: readers stop at `committed`. */
	if (ftruncate(fd, (off_t)committed) == 0)
		atomic_store_explicit(&t->header->allocated, committed, memory_order_relaxed);
	close(fd);
}

void thread_file_forget(struct thread *t)
{
	uint64_t size = BUCKET_CHUNK * REGION_BUCKETS * sizeof(uint64_t);

	t->writing = false; /* nobody goes on */
	drop_window(t);
	for (uint32_t i = 0; i < BUCKET_CHUNKS; i++)
		if (t->buckets[i])
			munmap(t->buckets[i], size);
	if (t->header) /* a fork's child without stand-ins has none */
		munmap(t->header, t->mapped);
	munmap(t, sizeof *t);
}
