/* How fast the busiest process goes through its memory: its pages' accessed bits are cleared and read again at once.
 *
 * It tells a program that streams through its memory from one that computes on little of it, where no hardware counter
 * is to be had. A look costs the target some, so it is taken only where the answer can matter, and rarely. */
#include "source/source.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/touch.h"
#include "base/units.h"
#include "source/reading.h"

#define LARGE_BYTES (INT64_C(256) << 20)
#define BUSY_CORES 0.5
#define STEADY_SHARE 0.05   /* where RSS changes by more, pages come and go, and new ones count as touched */
#define AVAILABLE_SHARE 0.1 /* with less, clearing the bits would mislead the kernel's choice of what to drop */
#define SAMPLE_NS (200 * NS_PER_MS)
#define BEGIN_NS (500 * NS_PER_MS)
/* Pauses: at most 0.5% of a core for the looks themselves, and at most 1% of the target's speed, whose processor sets
 * the bit of each page anew. That took 0.4 us a page under a hypervisor, against 0.1 us for both walks. */
#define COST_FACTOR 200
#define LOSS_FACTOR 100
#define LOSS_NS_PER_BYTE (400.0 / 4096)
/* What one look finds depends on where in its memory the process was when it began: a reader of all of it showed 1 to 9
 * GB/s. So several are taken, one upon the other, where they cost little; only the first makes it set all bits anew. */
#define LOOKS_MAX 4
#define COST_MAX_NS (40 * NS_PER_MS)
/* And never more than this share of the time since the run began, so that a short run has none. */
#define COST_SHARE 0.02
#define NS_PER_BYTE_AT_FIRST (100.0 / 4096)
/* Both walks beside the reading one alone, which is tried first: many mappings cost more than their pages. */
#define BOTH_WALKS 2.5
#define HUGE_SHARE 0.1 /* of the memory in huge pages, of which each counts as 512: then the figure means nothing */
#define SEEN_MAX 16

/* A large process as it was at the last sample. */
struct seen {
	int pid;
	int64_t start_ticks, clock_ns, rss;
};

struct touched_state {
	int rate, share; /* series, -1: not defined yet */
	int64_t began, sampled_at, next;
	double ns_per_byte; /* 0: not measured yet */
	int tried_pid;      /* the process that it was measured of */
	struct seen seen[SEEN_MAX];
	size_t seen_count;
	bool over; /* it is not possible here */
};

/* Sums over the looks that make one point. */
struct looks {
	double touched, resident, seconds;
	int64_t cost_ns;
	int count;
};

static int touched_open(struct source_context *c, void **ret_state, struct error *why_not)
{
	static const char *const names[] = {"clear_refs", "smaps_rollup"};
	struct touched_state *s;

	(void)c;
	for (size_t i = 0; i < 2; i++) {
		int fd = procfs_open("self/%s", names[i]);

		/* The one may only be written to, which is known by its refusal. */
		if (fd < 0 && fd != -EACCES)
			return error_set(why_not, "%s/self/%s: %s; it takes Linux 4.14 with CONFIG_PROC_PAGE_MONITOR",
					 procfs_root(), names[i], strerror(-fd));
		if (fd >= 0)
			close(fd);
	}
	s = calloc(1, sizeof *s);
	if (!s)
		return error_set(why_not, "out of memory");
	s->rate = s->share = -1;
	*ret_state = s;
	return 0;
}

static const struct seen *find_seen(const struct touched_state *s, const struct process *p)
{
	for (size_t i = 0; i < s->seen_count; i++)
		if (s->seen[i].pid == p->pid && s->seen[i].start_ticks == p->start_ticks)
			return &s->seen[i];
	return NULL;
}

static bool is_large(const struct process *p)
{
	return p->alive && p->rss >= LARGE_BYTES && p->clock_ns >= 0;
}

/* The large process that used the most CPU time since the last sample, where that was enough and its memory steady. */
static const struct process *find_busiest(const struct touched_state *s, const struct process_table *t, int64_t now)
{
	const struct process *busiest = NULL;
	int64_t most = (int64_t)(BUSY_CORES * (double)(now - s->sampled_at));

	for (size_t i = 0; i < t->count; i++) {
		const struct process *p = &t->items[i];
		const struct seen *before = is_large(p) ? find_seen(s, p) : NULL;

		if (!before || p->clock_ns - before->clock_ns < most)
			continue;
		most = p->clock_ns - before->clock_ns;
		busiest = fabs((double)(p->rss - before->rss)) < STEADY_SHARE * (double)before->rss ? p : NULL;
	}
	return busiest;
}

static void take_sample(struct touched_state *s, const struct process_table *t, int64_t now)
{
	s->sampled_at = now;
	s->seen_count = 0;
	for (size_t i = 0; i < t->count && s->seen_count < SEEN_MAX; i++) {
		const struct process *p = &t->items[i];

		if (is_large(p))
			s->seen[s->seen_count++] = (struct seen){p->pid, p->start_ticks, p->clock_ns, p->rss};
	}
}

static bool memory_is_short(void)
{
	struct scan_key keys[] = {{.name = "MemTotal:"}, {.name = "MemAvailable:"}};
	char text[4096];
	ssize_t length = procfs_read_file(text, sizeof text, "meminfo");

	return length <= 0 || scan_keys(text, (size_t)length, keys, 2) != 2 ||
	       (double)keys[1].value < AVAILABLE_SHARE * (double)keys[0].value;
}

/* It is told once, and then given up; a process that has just ended is neither. */
static void take_failure(struct touched_state *s, struct source_context *c, int code, const struct error *err)
{
	if (code == -ESRCH)
		return;
	s->over = true;
	warnings_add(c->warnings, "memory.touched is not known: %s", err->text);
}

static void put(struct touched_state *s, struct source_context *c, const struct looks *l, int64_t now)
{
	if (l->seconds <= 0 || l->resident <= 0)
		return;
	if (s->rate < 0) {
		s->rate = series_define(c, &(struct series_desc){"memory.touched", "bytes/s", "touched", "tree",
								 SERIES_GAUGE});
		s->share = series_define(c, &(struct series_desc){"memory.touched_share", "share", "touched", "tree",
								  SERIES_GAUGE});
	}
	timeline_put(c->timeline, s->rate, now, l->touched / l->seconds);
	timeline_put(c->timeline, s->share, now, l->touched / l->resident);
}

/* Whether a look is possible, and what it will cost: by the reading walk alone, which changes nothing. */
static int try_out(struct touched_state *s, struct source_context *c, const struct process *p, struct error *err)
{
	struct touch t = {.cost_ns = 0};
	int failed = touch_read(p->pid, &t, err);

	if (failed < 0)
		return failed;
	s->tried_pid = p->pid;
	s->ns_per_byte = fmax(NS_PER_BYTE_AT_FIRST, BOTH_WALKS * (double)t.cost_ns / (double)p->rss);
	if (t.huge > HUGE_SHARE * t.resident) {
		s->over = true;
		warnings_add(c->warnings,
			     "memory.touched is not told: the memory is in huge pages, of which a touch of one byte "
			     "counts as 2 MiB");
	}
	return 0;
}

/* One look, added to *l. What lies between the middles of the two walks is the time looked at; both take ms for each
 * GiB, so no waiting is needed in between, which would only bring more pages to where they count no further. */
static int look_once(const struct process *p, struct looks *l, struct error *err)
{
	struct touch t;
	int failed = touch_clear(p->pid, &t, err);

	if (failed == 0)
		failed = touch_read(p->pid, &t, err);
	if (failed < 0)
		return failed;
	l->touched += t.touched;
	l->resident += t.resident;
	l->seconds += (double)(t.seen_at - t.cleared_at) / (double)NS_PER_S;
	l->cost_ns += t.cost_ns;
	l->count++;
	return 0;
}

static void look(struct touched_state *s, struct source_context *c, const struct process *p, int64_t now)
{
	double cost = fmax(s->ns_per_byte, NS_PER_BYTE_AT_FIRST) * (double)p->rss;
	struct looks l = {.count = 0};
	struct error err;
	double most = fmin((double)COST_MAX_NS, COST_SHARE * (double)(now - s->began));
	int failed;

	if (cost > (double)COST_MAX_NS) {
		warnings_add(c->warnings,
			     "memory.touched was not read of a process with %s resident: a look would take more than "
			     "%d ms",
			     units_bytes((double)p->rss).text, (int)(COST_MAX_NS / NS_PER_MS));
		return;
	}
	if (cost > most || memory_is_short())
		return;
	if (s->tried_pid != p->pid) {
		/* The look itself comes next time, if it is not too dear. */
		failed = try_out(s, c, p, &err);
		if (failed < 0)
			take_failure(s, c, failed, &err);
		return;
	}
	do
		failed = look_once(p, &l, &err);
	while (failed == 0 && l.count < LOOKS_MAX && (double)l.cost_ns + cost <= most);
	if (failed < 0)
		take_failure(s, c, failed, &err);
	if (l.count == 0)
		return;
	s->ns_per_byte = (double)l.cost_ns / l.count / (double)p->rss;
	s->next = now + COST_FACTOR * l.cost_ns + (int64_t)(LOSS_FACTOR * LOSS_NS_PER_BYTE * (double)p->rss);
	put(s, c, &l, now);
}

static void touched_slow(void *state, struct source_context *c, int64_t now)
{
	struct touched_state *s = state;
	const struct process *p;

	if (!c->probe || s->over)
		return;
	if (s->began == 0) {
		s->began = s->sampled_at = now;
		take_sample(s, c->processes, now);
		return;
	}
	/* Slow ticks may come late, and by a hair too early. */
	if (now - s->sampled_at < SAMPLE_NS - NS_PER_MS)
		return;
	p = now - s->began < BEGIN_NS || now < s->next ? NULL : find_busiest(s, c->processes, now);
	take_sample(s, c->processes, now);
	if (p)
		look(s, c, p, now);
}

static void touched_close(void *state)
{
	free(state);
}

const struct source source_touched = {
	.name = "touched",
	.summary = "how fast the busiest process goes through its memory, by looks at accessed pages",
	.open = touched_open,
	.slow = touched_slow,
	.close = touched_close,
};
