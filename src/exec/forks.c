#include "exec/forks.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/procfs.h"

/* Data pages of each CPU's ring, a power of two: 2,000 records fit into 64 KiB. Users may lock perf_event_mlock_kb per
 * CPU (516 as a rule), so fewer are tried where that is spent. */
#define PAGES_AT_MOST 16

struct ring {
	int fd;
	struct perf_event_mmap_page *page; /* the data follow it */
};

struct forks {
	struct ring *rings;
	size_t count, at; /* `at`: the ring that is being read */
	size_t page_size, data_size;
	bool lost;
};

static const char *forbidden;

void forks_forbid(const char *reason)
{
	forbidden = reason;
}

static int open_event(pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_DUMMY,
		.inherit = 1,
		.task = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		/* Nobody waits on the descriptor. */
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};
	long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* The records at the head are the kernel's, those behind the tail may be overwritten. */
static int map_ring(struct forks *f, struct ring *ring)
{
	void *page = mmap(NULL, f->page_size + f->data_size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	ring->page = page;
	return 0;
}

static void unmap_rings(struct forks *f)
{
	for (size_t i = 0; i < f->count; i++) {
		if (f->rings[i].page)
			munmap(f->rings[i].page, f->page_size + f->data_size);
		f->rings[i].page = NULL;
	}
}

/* All with as many pages as are granted. */
static int map_rings(struct forks *f)
{
	int failed = 0;

	for (size_t pages = PAGES_AT_MOST; pages > 0; pages /= 2) {
		f->data_size = pages * f->page_size;
		failed = 0;
		for (size_t i = 0; i < f->count && !failed; i++)
			failed = map_ring(f, &f->rings[i]);
		if (!failed)
			return 0;
		unmap_rings(f);
	}
	return failed;
}

static int open_rings(struct forks *f, pid_t pid)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	f->rings = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof *f->rings);
	if (!f->rings)
		return -ENOMEM;
	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = open_event(pid, cpu);

		/* That one is off. */
		if (fd == -ENODEV)
			continue;
		if (fd < 0)
			return fd;
		f->rings[f->count++].fd = fd;
	}
	return f->count ? map_rings(f) : -ENODEV;
}

static int explain(struct error *why_not, int failed)
{
	char text[16] = "";
	const char *at = text;
	uint64_t paranoid;
	ssize_t length = procfs_read_file(text, sizeof text, "sys/kernel/perf_event_paranoid");

	if (failed == -ENOSYS || failed == -ENOENT)
		return error_set(why_not, "this kernel has no perf events");
	if (failed != -EACCES && failed != -EPERM)
		return error_set(why_not, "perf events fail: %s", strerror(-failed));
	if (length > 0 && scan_u64(&at, text + length, &paranoid) && paranoid > 2)
		return error_set(why_not, "perf events are not permitted; kernel.perf_event_paranoid of 2 instead of %u grants it",
				 (unsigned)paranoid);
	return error_set(why_not, "perf events are not permitted, as in most containers; CAP_PERFMON or a seccomp profile "
			 "that allows them grants it");
}

int forks_open(pid_t pid, struct forks **ret, struct error *why_not)
{
	struct forks *f;
	int failed;

	if (forbidden)
		return error_set(why_not, "%s", forbidden);
	f = calloc(1, sizeof *f);
	if (!f)
		return error_set(why_not, "out of memory");
	f->page_size = (size_t)sysconf(_SC_PAGESIZE);
	failed = open_rings(f, pid);
	if (failed) {
		forks_close(f);
		return explain(why_not, failed);
	}
	*ret = f;
	return 0;
}

void forks_close(struct forks *f)
{
	if (!f)
		return;
	unmap_rings(f);
	for (size_t i = 0; i < f->count; i++)
		close(f->rings[i].fd);
	free(f->rings);
	free(f);
}

bool forks_lost(const struct forks *f)
{
	return f->lost;
}

/* As the kernel writes them; longer ones (none are asked for) are cut. */
struct record {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid; /* of FORK and EXIT; others are not looked into */
	uint64_t time;
};

/* What a record of a fork or an exit takes at most, behind one that says that some were lost. */
#define RECORD_ROOM 128

/* Copies the next record out of the ring, where it may run over the end; false where there is none. */
static bool take_record(struct forks *f, struct ring *ring, struct record *ret)
{
	struct perf_event_mmap_page *page = ring->page;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
	const char *data = (const char *)page + f->page_size;
	size_t at = tail & (f->data_size - 1), length;

	if (head == tail)
		return false;
	/* The record that tells of lost ones is written together with the next, which may never come. */
	if (head - tail > f->data_size - RECORD_ROOM)
		f->lost = true;
	/* Records are multiples of 8 bytes, so that a header is never in two pieces. */
	memcpy(&ret->header, data + at, sizeof ret->header);
	length = ret->header.size;
	if (length < sizeof ret->header || length > head - tail) {
		/* Not what a kernel writes: give up what waits. */
		f->lost = true;
		__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
		return false;
	}
	for (size_t i = sizeof ret->header; i < length && i < sizeof *ret; i += 8)
		memcpy((char *)ret + i, data + ((at + i) & (f->data_size - 1)), 8);
	__atomic_store_n(&page->data_tail, tail + length, __ATOMIC_RELEASE);
	return true;
}

/* Whether the record is news of a process. */
static bool is_event(struct forks *f, const struct record *r, struct fork_event *ret)
{
	switch (r->header.type) {
	case PERF_RECORD_LOST:
		f->lost = true;
		return false;
	case PERF_RECORD_FORK:
		if (r->pid == r->ppid)
			return false;
		ret->type = FORK_NEW;
		break;
	case PERF_RECORD_EXIT:
		if (r->pid != r->tid)
			return false;
		ret->type = FORK_ENDED;
		break;
	default:
		return false;
	}
	ret->pid = (int)r->pid;
	ret->ppid = (int)r->ppid;
	ret->t = (int64_t)r->time;
	return true;
}

int forks_next(struct forks *f, struct fork_event *ret)
{
	for (size_t tried = 0; tried < f->count;) {
		struct record record = {0};

		if (!take_record(f, &f->rings[f->at], &record)) {
			f->at = (f->at + 1) % f->count;
			tried++;
		} else if (is_event(f, &record, ret)) {
			return 1;
		}
	}
	return 0;
}
