#include "exec/forks.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "exec/pidset.h"

/* Data pages of all rings together, and of one at most; powers of two. 64 pages hold 8,000 records. Users may lock
 * perf_event_mlock_kb per CPU (516 as a rule), so fewer are tried where that is spent. */
#define PAGES_TOGETHER 1024
#define PAGES_AT_MOST 64
#define PAGES_AT_LEAST 8

/* As the kernel writes it; longer ones (none are asked for) are cut. */
struct record {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid; /* of FORK and EXIT; others are not looked into */
	uint64_t time;
};

struct ring {
	int fd;
	struct perf_event_mmap_page *page; /* the data follow it */
	uint64_t head;                     /* of the batch under way */
	struct record next;                /* taken out already, where `ready` */
	bool ready;
};

struct forks {
	struct ring *rings;
	size_t count;
	size_t page_size, data_size;
	/* Where the whole machine is listened to: the descendants so far. Else all that comes is of descendants. */
	bool machine;
	struct pidset descendants;
	/* A fork is recorded before the child runs. So of two events that hang together, both of which happened before
	 * the heads of all rings were read, neither can be missing, and sorting by time puts them right. */
	int64_t batch_end; /* 0: no batch is under way */
	bool lost;
};

static const char *forbidden;
static bool machine_forbidden;

void forks_forbid(const char *reason)
{
	forbidden = reason;
}

void forks_forbid_machine(bool no)
{
	machine_forbidden = no;
}

/* `pid` -1 listens to every process. */
static int open_event(pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_DUMMY,
		.inherit = pid >= 0,
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
	size_t pages = PAGES_AT_MOST;
	int failed;

	while (pages > PAGES_AT_LEAST && pages * f->count > PAGES_TOGETHER)
		pages /= 2;
	do {
		f->data_size = pages * f->page_size;
		failed = 0;
		for (size_t i = 0; i < f->count && !failed; i++)
			failed = map_ring(f, &f->rings[i]);
		if (failed)
			unmap_rings(f);
		pages /= 2;
	} while (failed && pages > 0);
	return failed;
}

static void close_rings(struct forks *f)
{
	unmap_rings(f);
	for (size_t i = 0; i < f->count; i++)
		close(f->rings[i].fd);
	free(f->rings);
	f->rings = NULL;
	f->count = 0;
}

static int open_rings(struct forks *f, pid_t pid)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int failed = 0;

	f->rings = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof *f->rings);
	if (!f->rings)
		return -ENOMEM;
	for (int cpu = 0; cpu < cpus && !failed; cpu++) {
		int fd = open_event(pid, cpu);

		if (fd >= 0)
			f->rings[f->count++].fd = fd;
		else if (fd != -ENODEV) /* that one is off */
			failed = fd;
	}
	if (!failed)
		failed = f->count ? map_rings(f) : -ENODEV;
	if (failed)
		close_rings(f);
	return failed;
}

static int explain(struct error *why_not, int failed)
{
	char text[16] = "";
	const char *at = text;
	uint64_t paranoid;
	ssize_t length = procfs_read_file(text, sizeof text, "sys/kernel/perf_event_paranoid");

	if (failed == -E2BIG)
		return error_set(
			why_not,
			"perf events for more than %d CPUs would slow down each fork; CAP_PERFMON grants others "
			"that do not",
			FORKS_CPUS_INHERITED);
	if (failed == -ENOSYS || failed == -ENOENT)
		return error_set(why_not, "this kernel has no perf events");
	if (failed != -EACCES && failed != -EPERM)
		return error_set(why_not, "perf events fail: %s", strerror(-failed));
	if (length > 0 && scan_u64(&at, text + length, &paranoid) && paranoid > 2)
		return error_set(
			why_not,
			"perf events are not permitted; kernel.perf_event_paranoid of 2 instead of %u grants it",
			(unsigned)paranoid);
	return error_set(why_not,
			 "perf events are not permitted, as in most containers; CAP_PERFMON or a seccomp profile "
			 "that allows them grants it");
}

static int open_best(struct forks *f, pid_t pid, bool running)
{
	int failed = machine_forbidden ? -EPERM : open_rings(f, -1);

	if (!failed) {
		f->machine = true;
		return pidset_add(&f->descendants, pid) ? 0 : -ENOMEM;
	}
	if (running)
		return failed;
	return sysconf(_SC_NPROCESSORS_ONLN) > FORKS_CPUS_INHERITED ? -E2BIG : open_rings(f, pid);
}

static int open_forks(pid_t pid, bool running, struct forks **ret, struct error *why_not)
{
	struct forks *f;
	int failed;

	if (forbidden)
		return error_set(why_not, "%s", forbidden);
	f = calloc(1, sizeof *f);
	if (!f)
		return error_set(why_not, "out of memory");
	f->page_size = (size_t)sysconf(_SC_PAGESIZE);
	pidset_init(&f->descendants);
	failed = open_best(f, pid, running);
	if (failed) {
		forks_close(f);
		return running && (failed == -EACCES || failed == -EPERM)
			       ? error_set(why_not, "forks of a program that runs already are told to CAP_PERFMON only")
			       : explain(why_not, failed);
	}
	*ret = f;
	return 0;
}

int forks_open(pid_t pid, struct forks **ret, struct error *why_not)
{
	return open_forks(pid, false, ret, why_not);
}

int forks_open_running(pid_t pid, struct forks **ret, struct error *why_not)
{
	return open_forks(pid, true, ret, why_not);
}

void forks_know(struct forks *f, pid_t pid)
{
	f->lost = !pidset_add(&f->descendants, pid) || f->lost;
}

void forks_close(struct forks *f)
{
	if (!f)
		return;
	close_rings(f);
	pidset_release(&f->descendants);
	free(f);
}

bool forks_lost(const struct forks *f)
{
	return f->lost;
}

/* What a record of a fork or an exit takes at most, behind one that says that some were lost. */
#define RECORD_ROOM 128

/* Copies the next record of the batch out of the ring, where it may run over the end; false where there is none. */
static bool take_record(struct forks *f, struct ring *ring, struct record *ret)
{
	uint64_t tail = ring->page->data_tail;
	const char *data = (const char *)ring->page + f->page_size;
	size_t at = tail & (f->data_size - 1), length;

	if (ring->head == tail)
		return false;
	/* Records are multiples of 8 bytes, so that a header is never in two pieces. */
	memcpy(&ret->header, data + at, sizeof ret->header);
	length = ret->header.size;
	if (length < sizeof ret->header || length > ring->head - tail) {
		/* Not what a kernel writes: give up what waits. */
		f->lost = true;
		__atomic_store_n(&ring->page->data_tail, ring->head, __ATOMIC_RELEASE);
		return false;
	}
	for (size_t i = sizeof ret->header; i < length && i < sizeof *ret; i += 8)
		memcpy((char *)ret + i, data + ((at + i) & (f->data_size - 1)), 8);
	__atomic_store_n(&ring->page->data_tail, tail + length, __ATOMIC_RELEASE);
	return true;
}

/* Looks for the ring's next record of a process's fork or exit; threads' are passed over. */
static void fill(struct forks *f, struct ring *ring)
{
	while (!ring->ready && take_record(f, ring, &ring->next)) {
		const struct record *r = &ring->next;

		f->lost = f->lost || r->header.type == PERF_RECORD_LOST;
		ring->ready = (r->header.type == PERF_RECORD_FORK && r->pid != r->ppid) ||
			      (r->header.type == PERF_RECORD_EXIT && r->pid == r->tid);
	}
}

static void begin_batch(struct forks *f)
{
	f->batch_end = clock_mono_ns();
	for (size_t i = 0; i < f->count; i++) {
		struct ring *ring = &f->rings[i];

		ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
		/* The record that tells of lost ones is written together with the next, which may never come. */
		if (ring->head - ring->page->data_tail > f->data_size - RECORD_ROOM)
			f->lost = true;
	}
}

static struct ring *earliest(struct forks *f)
{
	struct ring *found = NULL;

	for (size_t i = 0; i < f->count; i++) {
		struct ring *ring = &f->rings[i];

		fill(f, ring);
		if (ring->ready && (int64_t)ring->next.time <= f->batch_end &&
		    (!found || ring->next.time < found->next.time))
			found = ring;
	}
	return found;
}

/* Whether the event is a descendant's; remembers who is one. */
static bool concerns(struct forks *f, const struct fork_event *event)
{
	if (!f->machine || event->type == FORK_ENDED)
		return !f->machine || pidset_has(&f->descendants, event->pid);
	if (!pidset_has(&f->descendants, event->ppid)) {
		/* The pid has been used again. */
		pidset_remove(&f->descendants, event->pid);
		return false;
	}
	f->lost = f->lost || !pidset_add(&f->descendants, event->pid);
	return true;
}

int forks_next(struct forks *f, struct fork_event *ret)
{
	struct ring *ring;

	if (f->batch_end == 0)
		begin_batch(f);
	while ((ring = earliest(f))) {
		const struct record *r = &ring->next;
		struct fork_event event = {
			.type = r->header.type == PERF_RECORD_FORK ? FORK_NEW : FORK_ENDED,
			.pid = (int)r->pid,
			.ppid = (int)r->ppid,
			.t = (int64_t)r->time,
		};

		ring->ready = false;
		if (concerns(f, &event)) {
			*ret = event;
			return 1;
		}
	}
	f->batch_end = 0;
	return 0;
}
