#include "record/perf_rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "record/perf_registers.h"

/* A ring should hold the samples of half a second, so that the recorder may be late. Users may lock perf_event_mlock_kb
 * per CPU (516 as a rule) and their limit of locked memory: fewer pages are tried where that is spent. */
#define RING_SECONDS 0.5
#define RING_BYTES_AT_LEAST (UINT64_C(64) << 10)
#define RING_BYTES_AT_MOST (UINT64_C(16) << 20)
#define RING_BYTES_TOGETHER (UINT64_C(256) << 20)
#define RECORD_BYTES_MAX 65536 /* a record's size has 16 bits */

struct ring {
	int fd;
	struct perf_event_mmap_page *page; /* the data follow it */
	uint64_t head;                     /* of the batch under way */
	uint64_t next_size;                /* of the record in `next`, 0: none has been looked at */
	struct perf_record next;
	uint64_t *whole;                   /* where a record is put together that runs over the ring's end */
};

struct perf_rings {
	struct ring *rings;
	size_t count;
	size_t page_size, data_size;
	struct perf_layout layout;
	bool kernel;
	bool machine; /* all processes' records come */
	uint64_t nominal, unreadable;
	struct ring *given; /* whose record the caller has; its room is given back with the next call */
	/* What happens in one process in another one's wake is recorded later than its cause. So of two records that
	 * hang together, both written before the heads of all rings were read, neither can be missing. */
	int64_t batch_end; /* 0: no batch is under way */
};

static bool machine_forbidden;

static const struct perf_layout layout = {
	.fields = PERF_FIELDS_ALWAYS | (PERF_CAN_UNWIND ? PERF_FIELDS_STACK : 0),
	.registers = PERF_CAN_UNWIND ? CFI_REGISTERS : 0,
};

static struct perf_event_attr attributes(pid_t pid, unsigned hz, bool kernel, bool build_id)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = (uint64_t)NS_PER_S / hz,
		.sample_type = layout.fields,
		.sample_regs_user = PERF_REGISTER_MASK,
		.sample_stack_user = PERF_CAN_UNWIND ? PERF_STACK_BYTES : 0,
		.exclude_callchain_user = PERF_CAN_UNWIND,
		.exclude_callchain_kernel = !kernel,
		.exclude_kernel = !kernel,
		.exclude_hv = 1,
		.exclude_idle = 1,
		.disabled = pid >= 0,
		.enable_on_exec = pid >= 0,
		.inherit = pid >= 0,
		.mmap = 1,
		.mmap2 = 1,
		.build_id = build_id,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		/* Nobody waits on the descriptor. */
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};
}

/* The best that is granted: with the kernel's own code or without; with build-ids where the kernel can tell them. */
static int open_event(pid_t pid, int cpu, unsigned hz, bool *kernel)
{
	bool build_id = true;

	for (;;) {
		struct perf_event_attr attr = attributes(pid, hz, *kernel, build_id);
		long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd >= 0)
			return (int)fd;
		if ((errno == EACCES || errno == EPERM) && *kernel)
			*kernel = false;
		else if ((errno == EINVAL || errno == E2BIG) && build_id)
			build_id = false;
		else
			return -errno;
	}
}

static int explain(struct error *err, int failed)
{
	static const char otherwise[] = "the default recorder (--sampler preload) needs no permission";
	char text[16] = "";
	ssize_t length = procfs_read_file(text, sizeof text, "sys/kernel/perf_event_paranoid");

	if (length > 0 && text[length - 1] == '\n')
		text[length - 1] = '\0';
	if (failed == -ENOSYS || failed == -ENOENT || failed == -EOPNOTSUPP)
		return error_set(err, "--sampler perf: this kernel has no CPU clock events; %s", otherwise);
	if (failed == -EMFILE || failed == -ENFILE)
		return error_set(err, "--sampler perf: too many open files for one event per CPU (ulimit -n); %s",
				 otherwise);
	if (failed != -EACCES && failed != -EPERM)
		return error_set(err, "--sampler perf: perf_event_open fails: %s; %s", strerror(-failed), otherwise);
	return error_set(err,
			 "--sampler perf: perf_event_open is not permitted here "
			 "(/proc/sys/kernel/perf_event_paranoid is %s); a value of 2 or less, or CAP_PERFMON (in a "
			 "container also a seccomp profile that lets the call pass) would grant it; %s",
			 length > 0 ? text : "not readable", otherwise);
}

int perf_rings_allowed(unsigned hz, struct error *err)
{
	bool kernel = true;
	int fd = open_event(0, -1, hz, &kernel);

	if (fd < 0)
		return explain(err, fd);
	close(fd);
	return 0;
}

static void unmap_rings(struct perf_rings *r)
{
	for (size_t i = 0; i < r->count; i++) {
		if (r->rings[i].page)
			munmap(r->rings[i].page, r->page_size + r->data_size);
		r->rings[i].page = NULL;
	}
}

static int map_rings(struct perf_rings *r)
{
	for (size_t i = 0; i < r->count; i++) {
		void *page = mmap(NULL, r->page_size + r->data_size, PROT_READ | PROT_WRITE, MAP_SHARED,
				  r->rings[i].fd, 0);

		if (page == MAP_FAILED) {
			int failed = -errno;

			unmap_rings(r);
			return failed;
		}
		r->rings[i].page = page;
	}
	return 0;
}

/* All with as many pages as are granted. */
static int map_largest(struct perf_rings *r, unsigned hz)
{
	uint64_t wanted = (uint64_t)(RING_SECONDS * hz) * (PERF_STACK_BYTES + 512), size = RING_BYTES_AT_LEAST;
	int failed;

	while (size < wanted && size < RING_BYTES_AT_MOST && 2 * size * r->count <= RING_BYTES_TOGETHER)
		size *= 2;
	do {
		r->data_size = size;
		failed = map_rings(r);
		size /= 2;
	} while (failed && size >= RING_BYTES_AT_LEAST && size >= r->page_size);
	return failed;
}

static int open_events(struct perf_rings *r, pid_t pid, unsigned hz)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	r->rings = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof *r->rings);
	if (!r->rings)
		return -ENOMEM;
	r->machine = pid < 0;
	r->kernel = true;
	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = open_event(pid, cpu, hz, &r->kernel);

		if (fd == -ENODEV) /* that one is off */
			continue;
		if (fd < 0)
			return fd;
		r->rings[r->count++].fd = fd;
	}
	for (size_t i = 0; i < r->count; i++) {
		r->rings[i].whole = malloc(RECORD_BYTES_MAX);
		if (!r->rings[i].whole)
			return -ENOMEM;
	}
	return r->count ? map_largest(r, hz) : -ENODEV;
}

static void close_events(struct perf_rings *r)
{
	unmap_rings(r);
	for (size_t i = 0; i < r->count; i++) {
		close(r->rings[i].fd);
		free(r->rings[i].whole);
	}
	free(r->rings);
	r->rings = NULL;
	r->count = 0;
}

int perf_rings_open(pid_t pid, unsigned hz, struct perf_rings **ret, struct error *err)
{
	struct perf_rings *r = calloc(1, sizeof *r);
	int failed;

	if (!r)
		return error_set(err, "out of memory for the rings of perf");
	r->page_size = (size_t)sysconf(_SC_PAGESIZE);
	r->nominal = (uint64_t)NS_PER_S / hz;
	r->layout = layout;
	failed = machine_forbidden ? -EACCES : open_events(r, -1, hz);
	if (failed) {
		close_events(r);
		failed = open_events(r, pid, hz);
	}
	if (failed) {
		perf_rings_close(r);
		return explain(err, failed);
	}
	*ret = r;
	return 0;
}

void perf_rings_close(struct perf_rings *r)
{
	if (!r)
		return;
	close_events(r);
	free(r);
}

bool perf_rings_machine(const struct perf_rings *r)
{
	return r->machine;
}

void perf_rings_forbid_machine(bool forbidden)
{
	machine_forbidden = forbidden;
}

bool perf_rings_see_kernel(const struct perf_rings *r)
{
	return r->kernel;
}

uint64_t perf_rings_unreadable(const struct perf_rings *r)
{
	return r->unreadable;
}

uint64_t perf_rings_nominal(const struct perf_rings *r)
{
	return r->nominal;
}

/* Records are multiples of 8 bytes, so that a header is never in two pieces. */
static const void *in_one_piece(struct perf_rings *r, struct ring *ring, uint64_t tail, size_t size)
{
	const char *data = (const char *)ring->page + r->page_size;
	size_t at = tail & (r->data_size - 1), first = r->data_size - at;

	if (size <= first)
		return data + at;
	memcpy(ring->whole, data + at, first);
	memcpy((char *)ring->whole + first, data, size - first);
	return ring->whole;
}

static void give_back(struct ring *ring, uint64_t tail)
{
	ring->next_size = 0;
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}

/* Looks at the ring's next record of the batch. */
static void look(struct perf_rings *r, struct ring *ring)
{
	while (!ring->next_size && ring->page->data_tail != ring->head) {
		uint64_t tail = ring->page->data_tail;
		struct perf_event_header header;

		memcpy(&header, (char *)ring->page + r->page_size + (tail & (r->data_size - 1)), sizeof header);
		if (header.size < sizeof header || header.size % 8 != 0 || header.size > ring->head - tail) {
			/* Not what a kernel writes: give up what waits. */
			r->unreadable++;
			give_back(ring, ring->head);
		} else if (perf_record_decode(in_one_piece(r, ring, tail, header.size), header.size, &r->layout,
					      &ring->next)) {
			ring->next_size = header.size;
		} else {
			r->unreadable++;
			give_back(ring, tail + header.size);
		}
	}
}

static void begin_batch(struct perf_rings *r)
{
	r->batch_end = clock_mono_ns();
	for (size_t i = 0; i < r->count; i++)
		r->rings[i].head = __atomic_load_n(&r->rings[i].page->data_head, __ATOMIC_ACQUIRE);
}

bool perf_rings_next(struct perf_rings *r, struct perf_record *ret)
{
	struct ring *found = NULL;

	if (r->given)
		give_back(r->given, r->given->page->data_tail + r->given->next_size);
	r->given = NULL;
	if (r->batch_end == 0)
		begin_batch(r);
	for (size_t i = 0; i < r->count; i++) {
		struct ring *ring = &r->rings[i];

		look(r, ring);
		if (ring->next_size && ring->next.t <= r->batch_end && (!found || ring->next.t < found->next.t))
			found = ring;
	}
	if (!found) {
		r->batch_end = 0;
		return false;
	}
	*ret = found->next;
	r->given = found;
	return true;
}
