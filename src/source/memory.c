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
#include "source/resident.h"

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

/* Brings rss, anon and their peaks up to date; false where it has no memory any more. */
static bool read_statm(struct memory_state *s, struct source_context *c, struct process *p, int64_t now)
{
	enum resident got = resident_read(c, p, s->page, now);

	/* A zombie, or about to end, which may take long where there is much to free. Its stat knows, and is to tell
	 * the last CPU time before it is given up. */
	if (got == RESIDENT_NONE) {
		p->stat_read_at = 0;
		if (p->threads > 1)
			resident_through_a_thread(c, p);
	}
	return got == RESIDENT_READ || (got == RESIDENT_UNREAD && p->rss >= 0);
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
