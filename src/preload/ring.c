#include "preload/ring.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "preload/kernel.h"
#include "preload/lock.h"
#include "preload/process.h"
#include "preload/tick.h"

#define HEADER_BYTES 4096u
#define SLOTS_OFFSET (HEADER_BYTES + SAMPLER_MODULE_BYTES)
#define STEP 2u /* slots that are added at a time */
#define RING_MASK (SAMPLER_RING_BYTES - 1)

_Static_assert(sizeof(struct sampler_header) <= HEADER_BYTES, "the header has room");
_Static_assert(SAMPLER_SLOT_BYTES % 4096 == 0 && SLOTS_OFFSET % 4096 == 0, "slots can be mapped apart");
_Static_assert((SAMPLER_RING_BYTES & RING_MASK) == 0, "the ring's size is a power of two");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "locks do not work across processes");

struct sampler_header *ring_header;
struct unwind_range ring_stacks[SAMPLER_SLOTS_MAX];

static char path[4096];
static struct stat identity;
static struct lock growing;
static _Atomic uint32_t allocated; /* slots that are mapped */
static _Atomic(char *) pieces[SAMPLER_SLOTS_MAX / STEP];
static _Atomic uint64_t used[SAMPLER_SLOTS_MAX / 64];

/* For file systems without fallocate. */
static long write_zeros(int fd, uint64_t from, uint64_t to)
{
	static const char zeros[16384];

	while (from < to) {
		uint64_t part = to - from < sizeof zeros ? to - from : sizeof zeros;
		long done = KERNEL_4(SYS_pwrite64, fd, zeros, part, from);

		if (done < 0 && done != -EINTR)
			return done;
		if (done > 0)
			from += (uint64_t)done;
	}
	return 0;
}

/* Signals are blocked or few here: a long fallocate on tmpfs that is interrupted starts over a few times only. */
static long allocate(int fd, uint64_t from, uint64_t to)
{
	long failed = -EINTR;

	for (int tries = 0; failed == -EINTR && tries < 100; tries++)
		failed = KERNEL_4(SYS_fallocate, fd, 0, from, to - from);
	if (failed == -EOPNOTSUPP || failed == -EINVAL || failed == -ENOSYS)
		failed = write_zeros(fd, from, to);
	return failed;
}

static void *map(int fd, uint64_t from, uint64_t to)
{
	long at = KERNEL_6(SYS_mmap, NULL, to - from, PROT_READ | PROT_WRITE, MAP_SHARED, fd, from);

	if (at < 0 && at > -4096)
		return NULL;
	if (KERNEL_3(SYS_madvise, at, to - from, MADV_DONTFORK) < 0) {
		KERNEL_2(SYS_munmap, at, to - from);
		return NULL;
	}
	return (void *)at;
}

/* The slots that a file may have. What lies beyond the limit on file sizes must not be tried: the kernel would answer
 * with a deadly SIGXFSZ. */
static uint32_t slots_that_fit(void)
{
	struct rlimit limit;
	uint64_t fit = SAMPLER_SLOTS_MAX;

	if (KERNEL_4(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
		fit = limit.rlim_cur <= SLOTS_OFFSET ? 0 : (limit.rlim_cur - SLOTS_OFFSET) / SAMPLER_SLOT_BYTES;
		fit = fit / STEP * STEP;
	}
	return fit < SAMPLER_SLOTS_MAX ? (uint32_t)fit : SAMPLER_SLOTS_MAX;
}

/* Field 22 of /proc/self/stat; 0 where it cannot be read. */
static uint64_t start_ticks(void)
{
	char text[1024], *at;
	long fd = KERNEL_3(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC), length;
	uint64_t value = 0;

	if (fd < 0)
		return 0;
	length = KERNEL_3(SYS_read, fd, text, sizeof text - 1);
	KERNEL_1(SYS_close, fd);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	at = strrchr(text, ')'); /* the name may hold anything */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	for (at = at ? at + 1 : text + length; *at >= '0' && *at <= '9'; at++)
		value = 10 * value + (uint64_t)(*at - '0');
	return value;
}

static void fill_header(struct sampler_header *h, uint32_t hz, int signal, uint32_t slot_max, uint64_t ticks)
{
	long length;

	h->version = SAMPLER_VERSION;
	h->pid = kernel_pid();
	h->ppid = (int32_t)KERNEL_0(SYS_getppid);
	h->hz = hz;
	h->signal = (uint32_t)signal;
	h->slot_size = SAMPLER_SLOT_BYTES;
	h->slot_max = slot_max;
	h->slots_offset = SLOTS_OFFSET;
	h->modules_offset = HEADER_BYTES;
	h->modules_bytes = SAMPLER_MODULE_BYTES;
	h->start_ticks = ticks;
	h->mono_ns = process_now();
	length = KERNEL_3(SYS_readlink, "/proc/self/exe", h->exe, sizeof h->exe - 1);
	h->exe[length > 0 ? length : 0] = '\0';
	memcpy(h->magic, SAMPLER_MAGIC, sizeof h->magic);
}

/* Returns 0 or -errno. The descriptor is closed by the caller. */
static long set_up(int fd, uint32_t hz, int signal, uint64_t ticks)
{
	uint32_t slot_max = slots_that_fit();
	uint64_t first = SLOTS_OFFSET + (uint64_t)STEP * SAMPLER_SLOT_BYTES;
	struct sampler_header *h;
	long failed;

	if (slot_max == 0)
		return -EFBIG;
	failed = KERNEL_2(SYS_ftruncate, fd, SLOTS_OFFSET + (uint64_t)slot_max * SAMPLER_SLOT_BYTES);
	if (failed == 0)
		failed = allocate(fd, 0, first);
	if (failed == 0)
		failed = KERNEL_2(SYS_fstat, fd, &identity);
	if (failed < 0)
		return failed;
	h = map(fd, 0, first);
	if (!h)
		return -ENOMEM;
	fill_header(h, hz, signal, slot_max, ticks);
	atomic_store(&pieces[0], (char *)h + SLOTS_OFFSET);
	atomic_store(&allocated, STEP);
	ring_header = h;
	return 0;
}

int ring_open(const char *folder, uint32_t hz, int signal)
{
	char new[sizeof path + 8];
	int length = snprintf(path, sizeof path, "%s/%d-%lld" SAMPLER_FILE_SUFFIX, folder, kernel_pid(),
			      (long long)process_now());
	uint64_t ticks = start_ticks(); /* before the file is open: there may be room for one descriptor only */
	long fd, failed;

	if (length < 0 || (size_t)length >= sizeof path)
		return -ENAMETOOLONG;
	snprintf(new, sizeof new, "%s.new", path);
	fd = KERNEL_4(SYS_openat, AT_FDCWD, new, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return (int)fd;
	failed = set_up((int)fd, hz, signal, ticks);
	KERNEL_1(SYS_close, fd);
	if (failed == 0)
		failed = KERNEL_4(SYS_renameat, AT_FDCWD, new, AT_FDCWD, path);
	if (failed < 0) {
		if (ring_header)
			KERNEL_2(SYS_munmap, ring_header, SLOTS_OFFSET + STEP * SAMPLER_SLOT_BYTES);
		ring_forget();
		KERNEL_3(SYS_unlinkat, AT_FDCWD, new, 0);
	}
	return (int)failed;
}

void ring_forget(void)
{
	ring_header = NULL;
	atomic_store(&growing.state, 0);
	atomic_store(&allocated, 0);
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces && atomic_load(&pieces[i]); i++)
		atomic_store(&pieces[i], NULL);
	for (size_t i = 0; i < sizeof used / sizeof *used; i++)
		atomic_store(&used[i], 0);
}

uint32_t ring_slots(void)
{
	return atomic_load_explicit(&allocated, memory_order_acquire);
}

struct slot *ring_slot(uint32_t index)
{
	if (index >= ring_slots())
		return NULL;
	return (struct slot *)(atomic_load(&pieces[index / STEP]) + (size_t)(index % STEP) * SAMPLER_SLOT_BYTES);
}

/* The descriptor was closed when the file was made, since daemons close all they have: so it is found again by its
 * name, and must be the same file. */
static bool grow_file(uint32_t have)
{
	uint64_t from = SLOTS_OFFSET + (uint64_t)have * SAMPLER_SLOT_BYTES, to = from + STEP * SAMPLER_SLOT_BYTES;
	struct stat st;
	char *piece = NULL;
	long fd;

	if (have + STEP > ring_header->slot_max)
		return false;
	fd = KERNEL_3(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	if (KERNEL_2(SYS_fstat, fd, &st) == 0 && st.st_dev == identity.st_dev && st.st_ino == identity.st_ino &&
	    allocate((int)fd, from, to) == 0)
		piece = map((int)fd, from, to);
	KERNEL_1(SYS_close, fd);
	if (!piece)
		return false;
	atomic_store(&pieces[have / STEP], piece);
	atomic_store_explicit(&allocated, have + STEP, memory_order_release);
	return true;
}

/* Threads that were found running and had no hook to end by. */
static bool reclaim(uint32_t have)
{
	bool any = false;

	for (uint32_t i = 0; i < have; i++) {
		struct slot *s = ring_slot(i);

		if (s->raw && atomic_load(&s->shared.state) == SAMPLER_SLOT_TAKEN &&
		    KERNEL_3(SYS_tgkill, process.pid, atomic_load(&s->shared.tid), 0) == -ESRCH) {
			tick_disarm(s);
			ring_give(s);
			any = true;
		}
	}
	return any;
}

static bool make_room(uint32_t seen)
{
	uint64_t mask = lock_take(&growing);
	uint32_t have = ring_slots();
	bool made = have > seen || reclaim(have) || (have < SAMPLER_SLOTS_MAX && grow_file(have));

	lock_drop(&growing, mask);
	return made;
}

/* The lowest free one, so that few pages are ever touched. */
static struct slot *take_free(uint32_t have)
{
	for (uint32_t word = 0; word * 64 < have; word++) {
		uint64_t bits = atomic_load(&used[word]);

		while (~bits) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~bits);

			if (word * 64 + bit >= have)
				break;
			if (atomic_compare_exchange_weak(&used[word], &bits, bits | UINT64_C(1) << bit)) {
				struct slot *s = ring_slot(word * 64 + bit);

				s->index = word * 64 + bit;
				return s;
			}
		}
	}
	return NULL;
}

struct slot *ring_take(int tid)
{
	struct slot *s;
	uint32_t have, slots;

	for (;;) {
		have = ring_slots();
		s = take_free(have);
		if (s)
			break;
		if (!make_room(have)) {
			process_trouble(SAMPLER_NO_ROOM);
			return NULL;
		}
	}
	atomic_fetch_add(&s->generation, 1);
	atomic_store(&s->timer, 0);
	atomic_store(&s->shared.tid, tid);
	atomic_store(&s->busy, 0);
	atomic_store(&s->missed, 0);
	s->has_thread = s->raw = false;
	ring_stacks[s->index] = (struct unwind_range){0};
	s->ending = 0;
	atomic_store_explicit(&s->shared.state, SAMPLER_SLOT_TAKEN, memory_order_release);
	slots = atomic_load(&ring_header->slots);
	while (slots <= s->index && !atomic_compare_exchange_weak(&ring_header->slots, &slots, s->index + 1))
		continue;
	return s;
}

void ring_give(struct slot *s)
{
	uint32_t index = s->index;

	atomic_fetch_add(&s->generation, 1);
	atomic_store_explicit(&s->shared.state, SAMPLER_SLOT_FREE, memory_order_release);
	atomic_fetch_and(&used[index / 64], ~(UINT64_C(1) << index % 64));
}

/* What is left of the ring before its end is skipped when the record does not fit there. */
struct sampler_record *ring_reserve(struct slot *s, uint32_t size, uint16_t type)
{
	char *ring = (char *)s + SAMPLER_RING_OFFSET;
	uint64_t head = atomic_load_explicit(&s->shared.head, memory_order_relaxed);
	uint64_t full = head - atomic_load_explicit(&s->shared.tail, memory_order_acquire);
	uint32_t at = (uint32_t)(head & RING_MASK), left = SAMPLER_RING_BYTES - at;
	struct sampler_record *record;

	/* The reader may have written anything. */
	if (full > SAMPLER_RING_BYTES || at % 8 || size > SAMPLER_RING_BYTES - full)
		return NULL;
	if (size > left) {
		if (full + left + size > SAMPLER_RING_BYTES)
			return NULL;
		*(struct sampler_record *)(ring + at) = (struct sampler_record){.size = left, .type = SAMPLER_PAD};
		atomic_store_explicit(&s->shared.head, head + left, memory_order_release);
		at = 0;
	}
	record = (struct sampler_record *)(ring + at);
	*record = (struct sampler_record){.size = size, .type = type};
	return record;
}

void ring_commit(struct slot *s, const struct sampler_record *record)
{
	uint64_t head = atomic_load_explicit(&s->shared.head, memory_order_relaxed);

	atomic_store_explicit(&s->shared.head, head + record->size, memory_order_release);
}
