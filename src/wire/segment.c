/* The writer of segments. It runs in assay itself and inside target processes, so it knows libc and nothing else, keeps
 * errno while recording, and checks before each growth that its descriptor is still its own: a daemon may have closed
 * all descriptors, and the number may be somebody else's file by now.
 *
 * Order of memory: a record's bytes are plain stores; `committed` is stored with release order behind them, so a reader
 * that loads it with acquire order sees every byte below it. The kernel keeps the pages when the writer is killed, so
 * the same rule makes the file whole after SIGKILL. Where space is already allocated, reserve and commit make no system
 * call and may run in a signal handler; growing makes only plain system calls, without locks or memory of libc. */
#include "wire/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STEP_MIN (UINT64_C(256) << 10) /* growth doubles from this ... */
#define STEP_MAX (UINT64_C(4) << 20)   /* ... to this: tmpfs clears every page at once, a pause of about 1 ms */
#define CAPACITY_MIN (UINT64_C(64) << 10)

/* The file's layout is the struct's, on every machine: readers of other builds depend on it. */
_Static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint32_t) == 4, "an atomic integer is a plain one");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "locks do not work across processes");
_Static_assert(sizeof(struct segment_record) == 16, "records start at multiples of 8");
_Static_assert(offsetof(struct segment_header, capacity) == 24, "layout of the header");
_Static_assert(offsetof(struct segment_header, committed) == 56, "layout of the header");
_Static_assert(sizeof(struct segment_header) == 80, "layout of the header");

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static uint64_t at_most(uint64_t value, uint64_t limit)
{
	return value < limit ? value : limit;
}

static bool owns_descriptor(const struct segment_writer *w)
{
	struct stat st;

	return fstat(w->fd, &st) == 0 && st.st_dev == w->device && st.st_ino == w->inode;
}

/* For file systems without fallocate. Not glibc's posix_fallocate: its emulation touches one byte per block and so
 * leaves holes on some of them. Network file systems may find out about a full disk only later, and then no writer of
 * mapped memory is told in time. */
static int write_zeros(int fd, uint64_t from, uint64_t to)
{
	static const unsigned char zeros[16384];

	while (from < to) {
		ssize_t done = pwrite(fd, zeros, at_most(to - from, sizeof zeros), (off_t)from);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0)
			from += (uint64_t)done;
	}
	return 0;
}

static int allocate(int fd, uint64_t from, uint64_t to)
{
	if (fallocate(fd, 0, (off_t)from, (off_t)(to - from)) == 0)
		return 0;
	if (errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS)
		return write_zeros(fd, from, to);
	return -errno;
}

/* Makes blocks for the file from `from` up to at least `need` and at best `want`. Returns 0 and *ret_end, or -errno.
 * What does not fit under the limit on file sizes is never tried: the kernel would answer with a deadly SIGXFSZ. */
static int grow_file(int fd, uint64_t from, uint64_t need, uint64_t want, uint64_t *ret_end)
{
	struct rlimit limit;
	int failed;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		want = at_most(want, limit.rlim_cur);
	if (want < need)
		return -EFBIG;
	/* A nearly full disk has room for less than a whole step, and on tmpfs a long call may never get through
	 * between two ticks of a profiling timer (EINTR): so ask for less and less. */
	for (;;) {
		failed = allocate(fd, from, want);
		if (!failed || (want == need && failed != -EINTR))
			break;
		want = need + (want - need) / 2;
	}
	if (!failed)
		*ret_end = want;
	return failed;
}

static int grow(struct segment_writer *w, uint64_t need)
{
	uint64_t step = w->allocated < STEP_MIN ? STEP_MIN : at_most(w->allocated, STEP_MAX), end;
	int saved = errno, failed;

	if (need > w->capacity)
		failed = -ENOSPC;
	else if (!owns_descriptor(w))
		failed = -EBADF;
	else
		failed = grow_file(w->fd, w->allocated, need, at_most(w->capacity, round_up(need, step)), &end);
	errno = saved;
	if (failed)
		return failed;
	w->allocated = end;
	atomic_store_explicit(&w->header->allocated, end, memory_order_release);
	return 0;
}

/* Reads both clocks so closely together that a switch of threads in between does not spoil the pair. */
static void calibrate(struct segment_header *h)
{
	int64_t best = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		struct timespec before, wall, after;
		int64_t from, width;

		clock_gettime(CLOCK_MONOTONIC, &before);
		clock_gettime(CLOCK_REALTIME, &wall);
		clock_gettime(CLOCK_MONOTONIC, &after);
		from = (int64_t)before.tv_sec * 1000000000 + before.tv_nsec;
		width = (int64_t)after.tv_sec * 1000000000 + after.tv_nsec - from;
		if (width < best) {
			best = width;
			h->mono_ns = from + width / 2;
			h->wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec;
		}
	}
}

/* Maps `capacity` bytes, or less where the address space is limited (RLIMIT_AS): at most a quarter of it, because the
 * rest of the program lives there, too. */
static void *map_file(int fd, uint64_t *capacity)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
		uint64_t quarter = round_up(limit.rlim_cur / 4, page_size());

		*capacity = at_most(*capacity, quarter < CAPACITY_MIN ? CAPACITY_MIN : quarter);
	}
	for (;;) {
		void *at = mmap(NULL, (size_t)*capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (at != MAP_FAILED || errno != ENOMEM || *capacity / 2 < CAPACITY_MIN)
			return at;
		*capacity = round_up(*capacity / 2, page_size());
	}
}

static int set_up(struct segment_writer *w, uint32_t kind, uint64_t capacity)
{
	uint64_t page = page_size(), first;
	struct segment_header *h;
	struct stat st;
	int failed;

	if (fstat(w->fd, &st) < 0)
		return -errno;
	if (capacity < CAPACITY_MIN)
		capacity = CAPACITY_MIN;
	capacity = round_up(at_most(capacity, SIZE_MAX / 4), page);
	failed = grow_file(w->fd, 0, SEGMENT_DATA_OFFSET, at_most(capacity, STEP_MIN), &first);
	if (failed)
		return failed;
	h = map_file(w->fd, &capacity);
	if (h == MAP_FAILED)
		return -errno;
	h->version = SEGMENT_VERSION;
	h->kind = kind;
	h->pid = getpid();
	h->data_offset = SEGMENT_DATA_OFFSET;
	h->capacity = capacity;
	calibrate(h);
	first = at_most(first, capacity);
	atomic_store_explicit(&h->allocated, first, memory_order_relaxed);
	atomic_store_explicit(&h->committed, SEGMENT_DATA_OFFSET, memory_order_release);
	/* Last, so that a file without it was never begun. */
	memcpy(h->magic, SEGMENT_MAGIC, sizeof h->magic);
	w->header = h;
	w->device = st.st_dev;
	w->inode = st.st_ino;
	w->capacity = capacity;
	w->allocated = first;
	w->committed = SEGMENT_DATA_OFFSET;
	w->released = round_up(SEGMENT_DATA_OFFSET, page);
	return 0;
}

int segment_create(struct segment_writer *w, const char *path, uint32_t kind, uint64_t capacity)
{
	int failed;

	*w = (struct segment_writer){.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
	if (w->fd < 0)
		return -errno;
	failed = set_up(w, kind, capacity);
	if (failed) {
		unlink(path);
		close(w->fd);
		*w = (struct segment_writer){.fd = -1};
	}
	return failed;
}

static void count_drop(struct segment_writer *w)
{
	/* There is one writer: no need for a locked instruction. */
	uint64_t dropped = atomic_load_explicit(&w->header->dropped, memory_order_relaxed);

	atomic_store_explicit(&w->header->dropped, dropped + 1, memory_order_relaxed);
}

/* The record's header, filled in, with room behind it; *ret_failed tells why there is none. Once stopped, the writer
 * stays so: what is on file is the beginning of what happened, without a hole. */
static struct segment_record *begin_record(struct segment_writer *w, uint16_t type, uint32_t tid, size_t length,
					   int *ret_failed)
{
	struct segment_record *record;
	uint64_t size;
	int failed;

	w->pending = 0;
	if (length > SEGMENT_RECORD_MAX - sizeof *record) {
		count_drop(w);
		*ret_failed = -EMSGSIZE;
		return NULL;
	}
	size = round_up(sizeof *record + length, 8);
	failed = w->stopped;
	if (!failed && w->committed + size > w->allocated)
		failed = grow(w, w->committed + size);
	if (failed) {
		w->stopped = failed;
		atomic_store_explicit(&w->header->stopped, -failed, memory_order_relaxed);
		count_drop(w);
		*ret_failed = failed;
		return NULL;
	}
	record = (struct segment_record *)((char *)w->header + w->committed);
	*record = (struct segment_record){.size = (uint32_t)size, .type = type, .tid = tid, .used = (uint32_t)length};
	w->pending = size;
	return record;
}

void *segment_reserve(struct segment_writer *w, uint16_t type, uint32_t tid, size_t length)
{
	struct segment_record *record;
	int failed;

	if (!w->header)
		return NULL;
	record = begin_record(w, type, tid, length, &failed);
	/* Not only the padding: an earlier reservation that was never committed may have left its bytes here. */
	return record ? memset(record + 1, 0, record->size - sizeof *record) : NULL;
}

void segment_commit(struct segment_writer *w)
{
	if (!w->header || w->pending == 0)
		return;
	w->committed += w->pending;
	w->pending = 0;
	atomic_store_explicit(&w->header->committed, w->committed, memory_order_release);
}

int segment_append(struct segment_writer *w, uint16_t type, uint32_t tid, const void *payload, size_t length)
{
	struct segment_record *record;
	int failed = 0;

	if (!w->header)
		return -EBADF;
	record = begin_record(w, type, tid, length, &failed);
	if (!record)
		return failed;
	if (length)
		memcpy(record + 1, payload, length);
	memset((char *)(record + 1) + length, 0, record->size - sizeof *record - length);
	segment_commit(w);
	return 0;
}

void segment_trim(struct segment_writer *w)
{
	uint64_t end;
	int saved = errno;

	if (!w->header)
		return;
	end = w->committed / page_size() * page_size();
	/* Of a shared mapping this drops only the page table entries: the pages stay in the page cache, dirty. */
	if (end > w->released &&
	    madvise((char *)w->header + w->released, (size_t)(end - w->released), MADV_DONTNEED) == 0)
		w->released = end;
	errno = saved;
}

static void forget(struct segment_writer *w)
{
	munmap(w->header, (size_t)w->capacity);
	if (owns_descriptor(w))
		close(w->fd);
	*w = (struct segment_writer){.fd = -1};
}

void segment_close(struct segment_writer *w)
{
	if (!w->header)
		return;
	atomic_store_explicit(&w->header->closed, 1, memory_order_release);
	/* A file that cannot be cut is only longer than it needs to be: readers stop at `committed`. */
	if (owns_descriptor(w) && ftruncate(w->fd, (off_t)w->committed) == 0)
		atomic_store_explicit(&w->header->allocated, w->committed, memory_order_relaxed);
	forget(w);
}

void segment_abandon(struct segment_writer *w)
{
	if (w->header)
		forget(w);
}
