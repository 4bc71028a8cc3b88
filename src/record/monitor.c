#include "record/monitor.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "source/source.h"
#include "wire/records.h"

#define SLOW_NS (100 * NS_PER_MS)
#define INTERVAL_MAX_NS NS_PER_S
#define SLOW_MAX_NS (5 * NS_PER_S)
/* The share of one core that ticks may cost, and slow readings beside them. Meeting many new processes comes on top;
 * all together is to stay under 3%. */
#define TICK_BUDGET 0.007
#define SLOW_BUDGET 0.007
/* Readings at marks: so much CPU time at once, and this share of a core in the long run, however thick marks come. */
#define MARK_CREDIT_NS (100 * NS_PER_MS)
#define MARK_BUDGET 0.02
#define COSTS 5
#define SEGMENT_CAPACITY (UINT64_C(8) << 30)
#define TRIM_EVERY 64
#define BLOCK_BYTES 512 /* of rusage's blocks, whatever the disk's are */

/* The cost of the last few readings; the median decides, so that one page fault does not stretch an interval. */
struct cost {
	int64_t last[COSTS];
	unsigned count;
};

struct monitor {
	struct segment_writer segment;
	struct timeline timeline;
	struct process_table processes;
	struct tree *tree;
	struct source_context context;
	void **states; /* one per source; see `open` */
	bool *open;
	struct warnings *warnings;
	const char *command_line;
	void (*forgotten)(void *context, const struct process *p);
	void *forgotten_context;
	int64_t requested, interval, slow;
	int64_t next_tick, next_slow;
	int64_t mark_credit, credit_at; /* CPU time that readings at marks may still take, and when that was so */
	int64_t last_t; /* of the last reading */
	int64_t begun, ended, ticks;
	int64_t timed_ticks, timed_slow; /* those that the timer made */
	struct cost tick_cost, slow_cost;
	uint64_t slow_count;
};

static void on_define(void *context, uint32_t id, const struct series_desc *d)
{
	struct monitor *m = context;
	size_t n = strlen(d->name) + 1, u = strlen(d->unit) + 1, s = strlen(d->source) + 1, c = strlen(d->scope) + 1;
	struct wire_series *record = segment_reserve(&m->segment, WIRE_SERIES, 0, sizeof *record + n + u + s + c);
	char *text = (char *)(record + 1);

	if (!record)
		return;
	*record = (struct wire_series){.id = id, .kind = (uint32_t)d->kind};
	memcpy(text, d->name, n);
	memcpy(text + n, d->unit, u);
	memcpy(text + n + u, d->source, s);
	memcpy(text + n + u + s, d->scope, c);
	segment_commit(&m->segment);
}

static void on_points(void *context, int64_t t, const struct timeline_point *points, size_t count)
{
	struct monitor *m = context;
	struct wire_points *record;
	struct wire_point *to;

	record = segment_reserve(&m->segment, WIRE_POINTS, 0, sizeof *record + count * sizeof *to);
	if (!record)
		return;
	record->t = t;
	to = (struct wire_point *)(record + 1);
	for (size_t i = 0; i < count; i++)
		to[i] = (struct wire_point){.id = points[i].id, .value = points[i].value};
	segment_commit(&m->segment);
}

static void on_gone(void *context, struct process *p, int64_t now)
{
	struct monitor *m = context;

	tree_process_gone(m->tree, p, now);
}

static void open_sources(struct monitor *m)
{
	for (size_t i = 0; i < source_count; i++) {
		struct error why;
		int opened = sources[i]->open(&m->context, &m->states[i], &why);

		m->open[i] = opened == 0;
		if (opened < 0 && opened != SOURCE_ABSENT)
			warnings_add(m->warnings, "Not observed, %s: %s.", sources[i]->name, why.text);
	}
}

int monitor_new(const struct monitor_options *o, struct warnings *warnings, struct monitor **ret, struct error *err)
{
	struct monitor *m = calloc(1, sizeof *m);
	int failed = 0;

	if (!m)
		return error_set(err, "out of memory for the monitor");
	m->warnings = warnings;
	m->command_line = o->command_line;
	m->forgotten = o->forgotten;
	m->forgotten_context = o->forgotten_context;
	m->requested = m->interval = o->interval_ns;
	m->slow = o->interval_ns > SLOW_NS ? o->interval_ns : SLOW_NS;
	process_table_init(&m->processes);
	timeline_init(&m->timeline, (struct timeline_sink){m, on_define, on_points});
	if (o->segment_path)
		failed = segment_create(&m->segment, o->segment_path, SEGMENT_KIND_MONITOR, SEGMENT_CAPACITY);
	if (failed)
		warnings_add(warnings, "%s: %s: no counters are kept of this run.", o->segment_path, strerror(-failed));
	m->context = (struct source_context){
		.timeline = &m->timeline,
		.processes = &m->processes,
		.warnings = warnings,
		.command = o->command,
		.argv = o->argv,
		.probe = o->probe,
		.interval_ns = o->interval_ns,
		.process_gone = on_gone,
		.gone_context = m,
	};
	m->states = calloc(source_count, sizeof *m->states);
	m->open = calloc(source_count, sizeof *m->open);
	if (!m->states || !m->open || tree_new(o->command, o->helper, &m->processes, &m->tree, err) < 0) {
		if (!m->states || !m->open)
			error_set(err, "out of memory for the monitor");
		monitor_free(m);
		return -1;
	}
	open_sources(m);
	*ret = m;
	return 0;
}

void monitor_free(struct monitor *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < source_count && m->open; i++)
		if (m->open[i])
			sources[i]->close(m->states[i]);
	tree_free(m->tree);
	process_table_release(&m->processes);
	timeline_release(&m->timeline);
	segment_close(&m->segment);
	free(m->states);
	free(m->open);
	free(m);
}

/* The command's process is still a copy of assay until it execs: what it is called now is not its name. */
static void forget_own_name(struct monitor *m)
{
	struct process *p = process_find(&m->processes, m->context.command);

	if (!p)
		return;
	free(p->command);
	p->command = NULL;
	p->command_stale = true;
	snprintf(p->comm, sizeof p->comm, "%s", m->command_line);
	p->comm[strcspn(p->comm, " ")] = '\0';
}

static void record_process(void *context, const struct process *p)
{
	struct monitor *m = context;
	const char *line = p->command ? p->command : p->pid == m->context.command ? m->command_line : "";
	size_t comm = strlen(p->comm) + 1, command = strlen(line);
	struct wire_process *record = segment_reserve(&m->segment, WIRE_PROCESS, 0, sizeof *record + comm + command);

	if (!record)
		return;
	*record = (struct wire_process){
		.pid = p->pid,
		.ppid = p->ppid,
		.start_ticks = p->start_ticks,
		.first_seen = p->first_seen,
		.last_seen = p->last_seen,
		.user_ns = p->user_ns,
		.system_ns = p->system_ns,
		.rss_peak = p->rss_peak,
		.anon_peak = p->anon_peak,
		.threads_peak = p->threads_peak,
		.read_bytes = p->read_bytes,
		.write_bytes = p->write_bytes,
	};
	memcpy(record + 1, p->comm, comm);
	memcpy((char *)(record + 1) + comm, line, command);
	segment_commit(&m->segment);
}

static void forget_process(void *context, const struct process *p)
{
	struct monitor *m = context;

	record_process(m, p);
	if (m->forgotten)
		m->forgotten(m->forgotten_context, p);
}

static void read_tick(struct monitor *m, int64_t now)
{
	tree_poll(m->tree, now);
	for (size_t i = 0; i < source_count; i++)
		if (m->open[i] && sources[i]->tick)
			sources[i]->tick(m->states[i], &m->context, now);
	m->ticks++;
}

static void read_slow(struct monitor *m, int64_t now)
{
	for (size_t i = 0; i < source_count; i++)
		if (m->open[i] && sources[i]->slow)
			sources[i]->slow(m->states[i], &m->context, now);
	process_table_reap(&m->processes, forget_process, m);
	if (++m->slow_count % TRIM_EVERY == 0)
		segment_trim(&m->segment);
}

static int64_t median(const struct cost *c)
{
	int64_t sorted[COSTS];
	unsigned n = c->count < COSTS ? c->count : COSTS;

	memcpy(sorted, c->last, sizeof sorted);
	for (unsigned i = 1; i < n; i++)
		for (unsigned k = i; k > 0 && sorted[k - 1] > sorted[k]; k--) {
			int64_t swap = sorted[k];

			sorted[k] = sorted[k - 1];
			sorted[k - 1] = swap;
		}
	return n ? sorted[(n - 1) / 2] : 0;
}

static int64_t stretched(struct cost *c, int64_t cost, int64_t shortest, int64_t longest, double budget)
{
	double wanted;

	c->last[c->count++ % COSTS] = cost;
	wanted = (double)median(c) / budget;
	return wanted <= (double)shortest ? shortest : wanted >= (double)longest ? longest : (int64_t)wanted;
}

void monitor_begin(struct monitor *m, int64_t now)
{
	m->begun = now;
	m->mark_credit = MARK_CREDIT_NS;
	m->credit_at = now;
	m->next_tick = now + m->interval;
	m->next_slow = now + m->slow;
	tree_update(m->tree, now);
	read_tick(m, now);
	read_slow(m, now);
	timeline_flush(&m->timeline, now);
	m->last_t = now;
	forget_own_name(m);
}

int64_t monitor_due(const struct monitor *m)
{
	return m->next_tick < m->next_slow ? m->next_tick : m->next_slow;
}

/* The next time on the grid of `interval` after `now`: a late reading is not made up for. */
static int64_t next_after(int64_t due, int64_t interval, int64_t now)
{
	due += interval;
	return due > now ? due : now + interval;
}

static void run_slow(struct monitor *m, int64_t now)
{
	int64_t shortest = m->requested > SLOW_NS ? m->requested : SLOW_NS, spent = clock_process_ns();

	tree_update(m->tree, now);
	read_slow(m, now);
	m->slow = stretched(&m->slow_cost, clock_process_ns() - spent, shortest, SLOW_MAX_NS, SLOW_BUDGET);
	m->next_slow = next_after(m->next_slow, m->slow, now);
	m->timed_slow++;
}

static void run_tick(struct monitor *m, int64_t now)
{
	/* The clock of one's own CPU time is a system call, and a tick that was cheap stays so for a while. */
	bool measured = m->interval > m->requested || m->timed_ticks % 4 == 0;
	int64_t spent = measured ? clock_process_ns() : 0;

	read_tick(m, now);
	if (measured)
		m->interval = stretched(&m->tick_cost, clock_process_ns() - spent, m->requested, INTERVAL_MAX_NS,
					TICK_BUDGET);
	m->context.interval_ns = m->interval;
	m->next_tick = next_after(m->next_tick, m->interval, now);
	m->timed_ticks++;
}

void monitor_run(struct monitor *m, int64_t now)
{
	if (now >= m->next_slow)
		run_slow(m, now);
	if (now >= m->next_tick)
		run_tick(m, now);
	timeline_flush(&m->timeline, now);
	m->last_t = now;
}

static void read_all(struct monitor *m, int64_t now)
{
	m->context.exact = true;
	read_tick(m, now);
	read_slow(m, now);
	m->context.exact = false;
	m->last_t = now;
}

/* A phase begins: what was used until now belongs to the one before, so the points are given its time. Marks may come
 * thick, and have a budget too. */
static void read_at_mark(struct monitor *m, int64_t t, int64_t now)
{
	int64_t spent = clock_process_ns(), at = t > m->last_t ? t : m->last_t;
	int64_t credit = m->mark_credit + (int64_t)(MARK_BUDGET * (double)(now - m->credit_at));

	m->mark_credit = credit < MARK_CREDIT_NS ? credit : MARK_CREDIT_NS;
	m->credit_at = now;
	if (m->mark_credit <= 0)
		return;
	tree_update(m->tree, at);
	timeline_keep_all(&m->timeline);
	read_all(m, at);
	timeline_flush(&m->timeline, at);
	m->mark_credit -= clock_process_ns() - spent;
}

void monitor_mark(struct monitor *m, int64_t t, bool has_time, const char *name, size_t length, uint64_t end)
{
	struct wire_mark *record = segment_reserve(&m->segment, WIRE_MARK, 0, sizeof *record + length);
	int64_t now = clock_mono_ns();

	if (record) {
		*record = (struct wire_mark){.t = t, .end = end, .seen = !has_time};
		memcpy(record + 1, name, length);
		segment_commit(&m->segment);
	}
	if (!m->ended && t <= now && now - t < SLOW_NS)
		read_at_mark(m, t, now);
}

void monitor_reaped(struct monitor *m, const struct wire_exit *e, int64_t now)
{
	struct process_table *t = &m->processes;
	struct process *p = process_find(t, e->pid);

	if (p)
		tree_process_gone(m->tree, p, now);
	usage_reaped(t, USAGE_USER, e->user_ns);
	usage_reaped(t, USAGE_SYSTEM, e->system_ns);
	usage_reaped(t, USAGE_CPU, e->user_ns + e->system_ns);
	usage_reaped(t, USAGE_MINOR_FAULTS, e->minor_faults);
	usage_reaped(t, USAGE_MAJOR_FAULTS, e->major_faults);
	usage_reaped(t, USAGE_READ_BYTES, e->read_blocks * BLOCK_BYTES);
	usage_reaped(t, USAGE_WRITE_BYTES, e->write_blocks * BLOCK_BYTES);
	if (e->all_read_chars < 0)
		return;
	usage_reaped_in_all(t, USAGE_READ_CHARS, e->all_read_chars);
	usage_reaped_in_all(t, USAGE_WRITE_CHARS, e->all_write_chars);
	usage_reaped_in_all(t, USAGE_READ_CALLS, e->all_read_calls);
	usage_reaped_in_all(t, USAGE_WRITE_CALLS, e->all_write_calls);
}

void monitor_end(struct monitor *m, int64_t end)
{
	struct wire_end record = {.t = end};

	/* A tick may have come between the end and the news of it; points never go back. */
	end = end > m->last_t ? end : m->last_t;
	m->ended = end;
	tree_update(m->tree, end);
	timeline_keep_all(&m->timeline);
	read_all(m, end);
	timeline_flush(&m->timeline, end);
	for (size_t i = 0; i < m->processes.count; i++)
		record_process(m, &m->processes.items[i]);
	for (size_t i = 0; i < m->warnings->count; i++)
		segment_append(&m->segment, WIRE_NOTE, 0, m->warnings->texts[i], strlen(m->warnings->texts[i]));
	segment_append(&m->segment, WIRE_END, 0, &record, sizeof record);
}

struct tree *monitor_tree(struct monitor *m)
{
	return m->tree;
}

const struct process_table *monitor_processes(const struct monitor *m)
{
	return &m->processes;
}

void monitor_report(struct monitor *m, struct run *run)
{
	struct tree_counts counts;
	int64_t lasted = m->ended - m->begun;
	int stopped = m->segment.header ? atomic_load(&m->segment.header->stopped) : 0;

	tree_counts(m->tree, &counts);
	run->processes = counts.processes;
	run->processes_unseen = counts.unseen;
	run->processes_exact = counts.exact;
	if (!counts.exact)
		warnings_add(&run->warnings, "Processes: at least %llu; an exact count was not possible: %s.",
			     (unsigned long long)counts.processes, counts.why);
	run->ticks = m->ticks;
	run->interval_requested_ms = (double)m->requested / 1e6;
	/* A run shorter than the interval had none; readings at its ends and at marks come in between. */
	run->interval_effective_ms = (double)(m->timed_ticks ? lasted / m->timed_ticks : m->requested) / 1e6;
	run->slow_effective_ms = (double)(m->timed_slow ? lasted / m->timed_slow : m->slow) / 1e6;
	if (stopped)
		warnings_add(&run->warnings, "Counters were no longer kept from some moment on: %s.",
			     strerror(stopped));
}
