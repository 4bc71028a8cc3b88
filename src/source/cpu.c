/* CPU time, threads and page faults of the tree, from /proc/PID/stat and each process's CPU clock; CPU time of single
 * threads and their waits for a CPU from schedstat.
 *
 * The clock of a process that sleeps costs a tenth of reading stat and says that nothing has happened, so only those
 * that run are read. Totals hold what ended processes used too; see model/usage.h. */
#include "source/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "source/reading.h"
#include "source/threads.h"

/* How often a process that runs is read, whose times are in units of 10 ms anyway. */
#define STAT_EVERY_NS (50 * NS_PER_MS)
/* And one whose clock stands still, so that its counters cannot have changed. */
#define STAT_ASLEEP_EVERY_NS (5 * NS_PER_S)
#define LOOK_FACTOR 2000 /* at most 0.05% of a core for schedstat */

struct cpu_state {
	int user, system, total, threads, processes, minor_faults, major_faults, waited, switches, busiest,
		allowed; /* series */
	int64_t ns_per_tick;
	bool clocks; /* pids mean the same to clock_gettime as in /proc */
	/* Of the processes that sleep, those are looked at in a tick whose pid and `turn` add up to a multiple. */
	unsigned turn, share;
	struct thread_table by_thread;
	struct pace look_pace;
	struct own_series own;
};

static int define(struct source_context *c, const char *name, const char *unit, enum series_kind kind)
{
	return series_define(c, &(struct series_desc){name, unit, "cpu", "tree", kind});
}

static int cpu_open(struct source_context *c, void **ret_state, struct error *why_not)
{
	struct cpu_state *s;
	char text[512];
	const char *number = text;
	uint64_t self;
	struct proc_stat stat;
	ssize_t length = procfs_read_file(text, sizeof text, "self/stat");

	if (length < 0)
		return error_set(why_not, "%s/self/stat: %s; mount the proc file system", procfs_root(),
				 strerror((int)-length));
	if (!scan_u64(&number, text + length, &self) || !proc_stat_scan(text, (size_t)length, &stat))
		return error_set(why_not, "%s/self/stat does not look as it does on Linux", procfs_root());
	s = calloc(1, sizeof *s);
	if (!s)
		return error_set(why_not, "out of memory");
	s->clocks = self == (uint64_t)getpid();
	s->ns_per_tick = NS_PER_S / sysconf(_SC_CLK_TCK);
	thread_table_init(&s->by_thread);
	s->user = define(c, "cpu.user", "s", SERIES_COUNTER);
	s->system = define(c, "cpu.system", "s", SERIES_COUNTER);
	s->total = define(c, "cpu.total", "s", SERIES_COUNTER);
	s->threads = define(c, "cpu.threads", "count", SERIES_GAUGE);
	s->processes = define(c, "cpu.processes", "count", SERIES_GAUGE);
	s->minor_faults = define(c, "memory.faults.minor", "count", SERIES_COUNTER);
	s->major_faults = define(c, "memory.faults.major", "count", SERIES_COUNTER);
	s->waited = s->switches = s->busiest = s->allowed = -1;
	/* Without CONFIG_SCHED_INFO there is no such file. */
	if (procfs_read_file(text, sizeof text, "self/schedstat") > 0) {
		s->waited = define(c, "cpu.runqueue_wait", "s", SERIES_COUNTER);
		s->switches = define(c, "cpu.switches", "count", SERIES_COUNTER);
		s->busiest = define(c, "cpu.busiest_thread", "s", SERIES_COUNTER);
		s->allowed = define(c, "cpu.allowed", "count", SERIES_GAUGE);
	}
	*ret_state = s;
	return 0;
}

/* CPU time of all threads of a process, ended ones too; -1 where it cannot be told. */
static int64_t read_clock(int pid)
{
	/* As clock_getcpuclockid(3) makes it, without its system call: ~pid, and 2 for "all its threads". */
	clockid_t id = (clockid_t)(~(unsigned)pid << 3 | 2);
	struct timespec used;

	return clock_gettime(id, &used) < 0 ? -1 : (int64_t)used.tv_sec * NS_PER_S + used.tv_nsec;
}

/* In a large tree most processes sleep, and a look at all of their clocks would be most of the cost. */
#define ASLEEP_PER_TICK 64
#define SHARE_MAX 8

static void next_turn(struct cpu_state *s, size_t processes)
{
	size_t share = 1 + processes / ASLEEP_PER_TICK;

	s->turn++;
	s->share = share > SHARE_MAX ? SHARE_MAX : (unsigned)share;
}

/* Brings p->clock_ns and p->ran up to date; says whether stat must be read. */
static bool stat_is_due(const struct cpu_state *s, struct source_context *c, struct process *p, int64_t now)
{
	bool due = c->exact || reading_is_due(p, p->stat_read_at, p->ran ? STAT_EVERY_NS : STAT_ASLEEP_EVERY_NS, now);
	int64_t clock_ns;

	/* One that ran a moment ago is taken to run on: the clock of a process on another CPU is dear. */
	if (!due && (p->ran || ((unsigned)p->pid + s->turn) % s->share != 0))
		return false;
	clock_ns = s->clocks ? read_clock(p->pid) : -1;
	/* No such clock, or one that went back: the process may have ended, and stat will say so. */
	if (clock_ns < p->clock_ns || clock_ns < 0) {
		p->ran = true;
		return true;
	}
	p->ran = clock_ns != p->clock_ns;
	usage_read(c->processes, p, USAGE_CPU, clock_ns);
	return due || p->ran;
}

static void take_name(struct process *p, const struct proc_stat *stat)
{
	size_t length = stat->comm_length < sizeof p->comm ? stat->comm_length : sizeof p->comm - 1;

	if (strnlen(p->comm, sizeof p->comm) == length && memcmp(p->comm, stat->comm, length) == 0)
		return;
	memcpy(p->comm, stat->comm, length);
	p->comm[length] = '\0';
	p->command_stale = true;
}

static int64_t bounded(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int64_t ticks_to_ns(const struct cpu_state *s, uint64_t ticks)
{
	return ticks > (uint64_t)(INT64_MAX / s->ns_per_tick) ? -1 : (int64_t)ticks * s->ns_per_tick;
}

static void take_counters(const struct cpu_state *s, struct process_table *t, struct process *p,
			  const struct proc_stat *stat)
{
	usage_read(t, p, USAGE_USER, ticks_to_ns(s, stat->user_ticks));
	usage_read(t, p, USAGE_SYSTEM, ticks_to_ns(s, stat->system_ticks));
	/* The clock is finer, but is not to be had everywhere. */
	usage_read(t, p, USAGE_CPU, p->user_ns + p->system_ns);
	usage_read(t, p, USAGE_MINOR_FAULTS, bounded(stat->minor_faults));
	usage_read(t, p, USAGE_MAJOR_FAULTS, bounded(stat->major_faults));
	usage_read_inherited(t, p, USAGE_USER, ticks_to_ns(s, stat->children_user_ticks));
	usage_read_inherited(t, p, USAGE_SYSTEM, ticks_to_ns(s, stat->children_system_ticks));
	usage_read_inherited(t, p, USAGE_CPU, p->accounts[USAGE_USER].inherited + p->accounts[USAGE_SYSTEM].inherited);
	usage_read_inherited(t, p, USAGE_MINOR_FAULTS, bounded(stat->children_minor_faults));
	usage_read_inherited(t, p, USAGE_MAJOR_FAULTS, bounded(stat->children_major_faults));
}

static void take_stat(const struct cpu_state *s, struct source_context *c, struct process *p,
		      const struct proc_stat *stat, int64_t now)
{
	take_counters(s, c->processes, p, stat);
	p->parent = stat->ppid;
	p->threads = bounded(stat->threads);
	if (p->threads > p->threads_peak)
		p->threads_peak = p->threads;
	p->stat_read_at = now;
	take_name(p, stat);
}

static void read_stat(const struct cpu_state *s, struct source_context *c, struct process *p, int64_t now)
{
	char text[512];
	struct proc_stat stat;
	ssize_t length = living_read(c, p, &p->stat_fd, "stat", text, sizeof text);

	if (length == 0) {
		living_gone(c, p, now);
		return;
	}
	if (length < 0 || !proc_stat_scan(text, (size_t)length, &stat))
		return;
	if ((int64_t)stat.start_ticks != p->start_ticks) {
		living_gone(c, p, now);
		return;
	}
	/* One that has ended and not been waited for still tells its last times. */
	take_stat(s, c, p, &stat, now);
	if (proc_stat_ended(&stat))
		living_gone(c, p, now);
}

static void cpu_tick(void *state, struct source_context *c, int64_t now)
{
	static const struct series_desc own = {"cpu", "s", "cpu", NULL, SERIES_COUNTER};
	struct cpu_state *s = state;
	const int64_t *used = c->processes->used;
	int64_t threads = 0, processes = 0;

	next_turn(s, c->processes->alive);
	for (size_t i = 0; i < c->processes->count; i++) {
		struct process *p = &c->processes->items[i];

		if (!p->alive)
			continue;
		if (stat_is_due(s, c, p, now))
			read_stat(s, c, p, now);
		if (p->cpu_series == -1)
			own_series_update(&s->own, c, p, &p->cpu_series, &own, now);
		if (p->clock_ns >= 0)
			timeline_put(c->timeline, p->cpu_series, now, (double)p->clock_ns / NS_PER_S);
		if (!p->alive)
			continue;
		p->last_seen = now;
		processes++;
		threads += p->threads > 0 ? p->threads : 1;
	}
	usage_end_round(c->processes);
	if (c->exact) /* all were read just now: nothing has to wait for their next reading */
		usage_end_round(c->processes);
	timeline_put(c->timeline, s->user, now, (double)used[USAGE_USER] / NS_PER_S);
	timeline_put(c->timeline, s->system, now, (double)used[USAGE_SYSTEM] / NS_PER_S);
	timeline_put(c->timeline, s->total, now, (double)used[USAGE_CPU] / NS_PER_S);
	timeline_put(c->timeline, s->minor_faults, now, (double)used[USAGE_MINOR_FAULTS]);
	timeline_put(c->timeline, s->major_faults, now, (double)used[USAGE_MAJOR_FAULTS]);
	timeline_put(c->timeline, s->threads, now, (double)threads);
	timeline_put(c->timeline, s->processes, now, (double)processes);
}

static void cpu_slow(void *state, struct source_context *c, int64_t now)
{
	struct cpu_state *s = state;
	bool looked;

	if (s->waited < 0 || !pace_due(&s->look_pace, c, now))
		return;
	looked = thread_table_look(&s->by_thread, c, now);
	pace_done(&s->look_pace, now, LOOK_FACTOR);
	timeline_put(c->timeline, s->waited, now, (double)s->by_thread.wait_ns / NS_PER_S);
	timeline_put(c->timeline, s->switches, now, (double)s->by_thread.slices);
	if (looked)
		timeline_put(c->timeline, s->busiest, now, (double)s->by_thread.busiest_ns / NS_PER_S);
	if (looked && s->by_thread.allowed_count > 0)
		timeline_put(c->timeline, s->allowed, now, (double)s->by_thread.allowed_count);
}

static void cpu_close(void *state)
{
	struct cpu_state *s = state;

	thread_table_release(&s->by_thread);
	free(s);
}

const struct source source_cpu = {
	.name = "cpu",
	.summary = "CPU time, of single threads too, run-queue wait and page faults of the target's processes",
	.open = cpu_open,
	.tick = cpu_tick,
	.slow = cpu_slow,
	.close = cpu_close,
};
