/* Memory of the tree: resident pages at every tick from /proc/PID/statm; swap and proportional shares more rarely.
 *
 * rss, anon and file are sums over the processes that live at that tick, so pages that processes share are counted once
 * for each of them. A process whose statm is all zeros is ending or has ended; it is left out, never counted as 0. */
#include "source/source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "source/pss.h"
#include "source/reading.h"

/* How often the memory of a process that sleeps is read: it only changes where the kernel takes it away. */
#define STATM_ASLEEP_EVERY_NS NS_PER_S
#define STATUS_FACTOR 400 /* at most 0.25% of a core for /proc/PID/status */

struct memory_state {
	int rss, anon, file, swap, shared, mark, pss; /* series */
	int64_t page;
	int64_t rss_now;
	struct pace status_pace;
	struct pss shares;
	struct own_series own;
};

static int define(struct source_context *c, const char *name)
{
	return series_define(c, &(struct series_desc){name, "bytes", "memory", "tree", SERIES_GAUGE});
}

static bool machine_has_swap(void)
{
	char text[8192];
	struct scan_key total = {.name = "SwapTotal:"};
	ssize_t length = procfs_read_file(text, sizeof text, "meminfo");

	return length > 0 && scan_keys(text, (size_t)length, &total, 1) == 1 && total.value > 0;
}

static int memory_open(struct source_context *c, void **ret_state, struct error *why_not)
{
	struct memory_state *s;
	char text[128];
	ssize_t length = procfs_read_file(text, sizeof text, "self/statm");

	if (length <= 0)
		return error_set(why_not, "%s/self/statm: %s; mount the proc file system", procfs_root(),
				 length < 0 ? strerror((int)-length) : "it is empty");
	s = calloc(1, sizeof *s);
	if (!s)
		return error_set(why_not, "out of memory");
	s->page = sysconf(_SC_PAGESIZE);
	s->rss = define(c, "memory.rss");
	s->anon = define(c, "memory.anon");
	s->file = define(c, "memory.file");
	s->shared = define(c, "memory.shared");
	s->mark = define(c, "memory.high_water");
	s->swap = machine_has_swap() ? define(c, "memory.swap") : -1;
	s->pss = define(c, "memory.pss");
	*ret_state = s;
	return 0;
}

/* Pages in use, and how many of them belong to files or shared memory. */
static bool scan_statm(const char *text, size_t length, uint64_t *ret_resident, uint64_t *ret_shared)
{
	const char *at = text, *end = text + length;

	return scan_words(&at, end, 1) && scan_u64(&at, end, ret_resident) && scan_u64(&at, end, ret_shared) &&
	       at < end;
}

/* A search for a thread that still has the process's memory. */
struct thread_search {
	int pid, fd, tries;
};

static bool try_thread(void *context, int tid)
{
	struct thread_search *search = context;
	char text[128];
	uint64_t resident, shared;
	ssize_t length;

	search->fd = procfs_open("%d/task/%d/statm", search->pid, tid);
	if (search->fd < 0)
		return --search->tries > 0;
	length = procfs_read_record(search->fd, text, sizeof text);
	if (length > 0 && scan_statm(text, (size_t)length, &resident, &shared) && resident > 0)
		return false;
	close(search->fd);
	search->fd = -1;
	return --search->tries > 0;
}

/* Where the first thread has ended and others go on, their memory is seen only through one of them. Where all are about
 * to end none has it, so only the first few are asked. */
static void look_through_a_thread(struct source_context *c, struct process *p)
{
	struct thread_search search = {.pid = p->pid, .fd = -1, .tries = 8};
	int task = procfs_open("%d/task", p->pid);

	if (task < 0)
		return;
	if (procfs_each_pid(task, try_thread, &search) < 0 && search.fd >= 0) {
		close(search.fd);
		search.fd = -1;
	}
	close(task);
	if (search.fd >= 0)
		process_keep(c->processes, &p->statm_fd, search.fd);
}

static bool to_bytes(uint64_t pages, int64_t page, int64_t *ret)
{
	return pages <= INT64_MAX && !__builtin_mul_overflow((int64_t)pages, page, ret);
}

/* Brings rss, anon and their peaks up to date; false where it has no memory any more. */
static bool read_statm(struct memory_state *s, struct source_context *c, struct process *p, int64_t now)
{
	char text[128];
	uint64_t resident, shared;
	int64_t rss, anon;
	ssize_t length = living_read(c, p, &p->statm_fd, "statm", text, sizeof text);

	if (length < 0 || (length > 0 && !scan_statm(text, (size_t)length, &resident, &shared)))
		return p->rss >= 0;
	if (length == 0) {
		living_gone(c, p, now);
		return false;
	}
	if (resident == 0) {
		/* A zombie, or about to end, which may take long where there is much to free. Its stat knows, and is to
		 * tell the last CPU time before it is given up. */
		p->stat_read_at = 0;
		if (p->threads > 1)
			look_through_a_thread(c, p);
		return false;
	}
	if (!to_bytes(resident, s->page, &rss) || !to_bytes(resident > shared ? resident - shared : 0, s->page, &anon))
		return p->rss >= 0;
	p->rss = rss;
	p->anon = anon;
	if (rss > p->rss_peak)
		p->rss_peak = rss;
	if (anon > p->anon_peak)
		p->anon_peak = anon;
	p->statm_read_at = now;
	return true;
}

static void memory_tick(void *state, struct source_context *c, int64_t now)
{
	static const struct series_desc own = {"rss", "bytes", "memory", NULL, SERIES_GAUGE};
	struct memory_state *s = state;
	double rss = 0, anon = 0;
	bool any = false;

	for (size_t i = 0; i < c->processes->count; i++) {
		struct process *p = &c->processes->items[i];

		if (!p->alive)
			continue;
		if ((c->exact || p->ran || reading_is_due(p, p->statm_read_at, STATM_ASLEEP_EVERY_NS, now)) &&
		    !read_statm(s, c, p, now))
			continue;
		any = true;
		rss += (double)p->rss;
		anon += (double)p->anon;
		if (p->rss_series == -1)
			own_series_update(&s->own, c, p, &p->rss_series, &own, now);
		if (p->rss_series >= 0)
			timeline_put(c->timeline, p->rss_series, now, (double)p->rss);
	}
	if (!any)
		return;
	s->rss_now = (int64_t)rss;
	timeline_put(c->timeline, s->rss, now, rss);
	timeline_put(c->timeline, s->anon, now, anon);
	timeline_put(c->timeline, s->file, now, rss - anon);
}

/* What statm does not tell. Sums of VmSwap and RssShmem, and the largest VmHWM of any process. */
static void read_status(struct memory_state *s, struct source_context *c, int64_t now)
{
	enum { SWAP, SHARED, MARK, KEYS };
	char text[4096];
	double values[KEYS] = {NAN, NAN, NAN};

	for (size_t i = 0; i < c->processes->count; i++) {
		struct process *p = &c->processes->items[i];
		struct scan_key keys[KEYS] = {{"VmSwap:"}, {"RssShmem:"}, {"VmHWM:"}};
		ssize_t length = p->alive ? living_read_once(p, "status", text, sizeof text) : 0;

		/* A process that has ended has a status without these lines. */
		if (length <= 0 || scan_keys(text, (size_t)length, keys, KEYS) == 0)
			continue;
		for (int k = SWAP; k <= SHARED; k++)
			if (keys[k].found)
				values[k] = (isnan(values[k]) ? 0 : values[k]) + 1024.0 * (double)keys[k].value;
		if (keys[MARK].found)
			values[MARK] = fmax(values[MARK], 1024.0 * (double)keys[MARK].value);
	}
	timeline_put(c->timeline, s->swap, now, values[SWAP]);
	timeline_put(c->timeline, s->shared, now, values[SHARED]);
	timeline_put(c->timeline, s->mark, now, values[MARK]);
}

static void memory_slow(void *state, struct source_context *c, int64_t now)
{
	struct memory_state *s = state;

	if (pace_due(&s->status_pace, c, now)) {
		read_status(s, c, now);
		pace_done(&s->status_pace, now, STATUS_FACTOR);
		pace_at_least(&s->status_pace, now, NS_PER_S / 2);
	}
	timeline_put(c->timeline, s->pss, now, pss_read(&s->shares, c, s->rss_now, now));
}

static void memory_close(void *state)
{
	free(state);
}

const struct source source_memory = {
	.name = "memory",
	.summary = "resident, anonymous, file, swapped and proportional memory of the target's processes",
	.open = memory_open,
	.tick = memory_tick,
	.slow = memory_slow,
	.close = memory_close,
};
