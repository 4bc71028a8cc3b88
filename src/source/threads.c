#include "source/threads.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "base/utf8.h"

#define KNOWN_MAX 65536 /* past so many living threads the sums miss some */
/* A running thread's time is brought up to date at the timer's tick (up to 10 ms); a reading for a phase mark bears the
 * mark's time, up to 100 ms ago. Where the tick is stopped (nohz_full), the kernel looks once a second. */
#define LAG_NS (100 * NS_PER_MS)
#define LAG_TICKLESS_NS (1200 * NS_PER_MS)

void thread_table_init(struct thread_table *t)
{
	char tickless[16];

	sysfs_read_word(tickless, sizeof tickless, "devices/system/cpu/nohz_full");
	*t = (struct thread_table){
		/* Without such CPUs it says nothing, or "(null)". */
		.lag_ns = tickless[0] >= '0' && tickless[0] <= '9' ? LAG_TICKLESS_NS : LAG_NS,
		.ns_per_tick = NS_PER_S / sysconf(_SC_CLK_TCK),
	};
}

void thread_table_release(struct thread_table *t)
{
	free(t->items);
	*t = (struct thread_table){0};
}

static struct thread_known *slot_of(struct thread_known *items, size_t room, int tid)
{
	size_t at = ((uint32_t)tid * UINT32_C(2654435769) >> 7) & (room - 1);

	while (items[at].tid && items[at].tid != tid)
		at = (at + 1) & (room - 1);
	return &items[at];
}

/* A visit that is spread over several calls may miss a thread when others end meanwhile: it takes two to be sure. */
static bool may_live(const struct thread_known *known, struct process_table *processes)
{
	const struct process *p = known->tid ? process_find(processes, known->pid) : NULL;

	return p && (uint32_t)p->thread_visits - known->visit < 2;
}

/* A new table without those that have ended. */
static int rebuild(struct thread_table *t, struct process_table *processes)
{
	size_t living = 0, room = 256;
	struct thread_known *items;

	for (size_t i = 0; i < t->room; i++)
		living += may_live(&t->items[i], processes);
	if (living >= KNOWN_MAX)
		return -1;
	while (room < 4 * living)
		room *= 2;
	items = calloc(room, sizeof *items);
	if (!items)
		return -1;
	for (size_t i = 0; i < t->room; i++)
		if (may_live(&t->items[i], processes))
			*slot_of(items, room, t->items[i].tid) = t->items[i];
	free(t->items);
	t->items = items;
	t->room = room;
	t->count = living;
	return 0;
}

/* What all functions below need of a visit to one process. */
struct visit {
	struct thread_table *t;
	struct source_context *c;
	const struct process *p;
	int task_fd;
	size_t skip, listed, visited, room; /* threads to pass over; listed, visited so far; visited at most */
};

static bool had_series(const struct thread_table *t, int tid)
{
	for (size_t i = 0; i < t->own_count; i++)
		if (t->own_tids[i] == tid)
			return true;
	return false;
}

static void define_series(struct visit *v, struct thread_known *known)
{
	CLEANUP(buf_release) struct buf scope;
	char name[32], comm[72];
	ssize_t length;

	buf_init(&scope);
	known->series = OWN_SERIES_NEVER;
	/* An id that is used again gets no second one. */
	if (had_series(v->t, known->tid))
		return;
	length = procfs_read_file(comm, sizeof comm, "%d/task/%d/comm", known->pid, known->tid);
	if (length <= 0) /* it has just ended */
		return;
	comm[strcspn(comm, "\n")] = '\0';
	buf_printf(&scope, "thread %d of %d ", known->tid, known->pid);
	utf8_append_line(&scope, comm, sizeof comm);
	if (scope.failed)
		return;
	snprintf(name, sizeof name, "thread.%d.cpu", known->tid);
	known->series = series_define(v->c, &(struct series_desc){name, "s", "cpu", scope.text, SERIES_COUNTER});
	if (known->series < 0)
		known->series = OWN_SERIES_NEVER;
	else
		v->t->own_tids[v->t->own_count++] = known->tid;
}

static void put_series(struct thread_table *t, struct source_context *c, int64_t now)
{
	for (size_t i = 0; i < t->own_count; i++) {
		const struct thread_known *known = slot_of(t->items, t->room, t->own_tids[i]);

		if (may_live(known, c->processes))
			timeline_put(c->timeline, known->series, now, (double)known->cpu_ns / NS_PER_S);
	}
}

/* Whether all that a thread which was not known has used was used since the look before. */
static bool is_new(const struct visit *v)
{
	/* The command is new at the first look. A process that was visited before had not this thread then. */
	if (!v->t->looked || v->p->thread_visits > 0)
		return true;
	return v->p->start_ticks >= v->t->began_before / v->t->ns_per_tick;
}

/* Adds the CPUs that a thread may use: pinned threads may each have another one. */
static void add_allowed(struct thread_table *t, int tid)
{
	unsigned long own[sizeof t->allowed / sizeof *t->allowed];
	int length = (int)syscall(SYS_sched_getaffinity, tid, sizeof own, own);

	for (int i = 0; i < length / (int)sizeof *own; i++)
		t->allowed[i] |= own[i];
}

static void add_reading(struct visit *v, int tid, int64_t cpu_ns, int64_t wait_ns, int64_t slices)
{
	struct thread_table *t = v->t;
	struct thread_known *known;
	int64_t grown;

	if (2 * (t->count + 1) >= t->room && rebuild(t, v->c->processes) < 0)
		return;
	known = slot_of(t->items, t->room, tid);
	/* Another process, or less behind it than before: the thread's id has been used again. */
	if (known->tid == 0 || known->pid != v->p->pid || slices < known->slices || cpu_ns < known->cpu_ns) {
		t->count += known->tid == 0;
		*known = (struct thread_known){.tid = tid, .pid = v->p->pid, .series = -1};
		grown = is_new(v) ? cpu_ns : 0;
	} else {
		grown = cpu_ns - known->cpu_ns;
	}
	t->grown_ns = grown > t->grown_ns ? grown : t->grown_ns;
	if (grown > 0)
		add_allowed(t, tid);
	t->wait_ns += wait_ns > known->wait_ns ? wait_ns - known->wait_ns : 0;
	t->slices += slices - known->slices;
	known->cpu_ns = cpu_ns;
	known->wait_ns = wait_ns;
	known->slices = slices;
	known->visit = (uint32_t)v->p->thread_visits;
	if (known->series == -1 && known->cpu_ns >= THREAD_SERIES_AFTER_NS && t->own_count < OWN_SERIES_MAX)
		define_series(v, known);
}

static void read_thread(struct visit *v, int tid, int fd)
{
	const uint64_t most = INT64_MAX / 4; /* 73 years, so that sums fit */
	char text[128];
	ssize_t length = fd < 0 ? fd : procfs_read_record(fd, text, sizeof text);
	const char *at = text;
	uint64_t on_cpu, waited, slices;

	if (fd >= 0)
		close(fd);
	if (length > 0 && scan_u64(&at, text + length, &on_cpu) && scan_u64(&at, text + length, &waited) &&
	    scan_u64(&at, text + length, &slices) && on_cpu <= most && waited <= most && slices <= most)
		add_reading(v, tid, (int64_t)on_cpu, (int64_t)waited, (int64_t)slices);
}

/* "TID/schedstat", without snprintf's cost: there may be hundreds of threads. */
static void schedstat_path(char path[32], int tid)
{
	char digits[12];
	size_t count = 0, length = 0;

	for (; tid > 0; tid /= 10)
		digits[count++] = (char)('0' + tid % 10);
	while (count > 0)
		path[length++] = digits[--count];
	memcpy(path + length, "/schedstat", sizeof "/schedstat");
}

static bool visit_thread(void *context, int tid)
{
	struct visit *v = context;
	char path[32];

	if (v->listed++ < v->skip)
		return true;
	if (v->visited == v->room)
		return false;
	schedstat_path(path, tid);
	read_thread(v, tid, openat(v->task_fd, path, O_RDONLY | O_CLOEXEC));
	v->visited++;
	return true;
}

/* Returns how many threads it has visited; t->thread_at is 0 where these were the last ones. */
static size_t visit_process(struct visit *v)
{
	const struct process *p = v->p;

	v->skip = v->t->thread_at;
	v->t->thread_at = 0;
	if (p->threads == 1) {
		read_thread(v, p->pid, procfs_open("%d/schedstat", p->pid));
		return 1;
	}
	v->task_fd = procfs_open("%d/task", p->pid);
	if (v->task_fd < 0)
		return 1;
	/* Where the folder cannot be listed any more, the process has ended, as its stat will say next. */
	if (procfs_each_pid(v->task_fd, visit_thread, v) == 0 && v->visited == v->room) {
		v->t->thread_at = v->skip + v->visited;
		v->t->pid_at = p->pid;
	}
	close(v->task_fd);
	return v->visited;
}

static void begin_look(struct thread_table *t)
{
	struct timespec boot = {0};

	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	t->began_before = t->began;
	t->began = (int64_t)boot.tv_sec * NS_PER_S + boot.tv_nsec;
	t->grown_ns = 0;
	memset(t->allowed, 0, sizeof t->allowed);
}

static void end_look(struct thread_table *t, struct source_context *c, int64_t now)
{
	int64_t credit = t->credit_ns + (now > t->looked_at ? now - t->looked_at : 0);

	t->process_at = 0;
	t->allowed_count = 0;
	for (size_t i = 0; i < sizeof t->allowed / sizeof *t->allowed; i++)
		t->allowed_count += __builtin_popcountl(t->allowed[i]);
	/* What a thread has used may come late and with it more than there was time: then less came before. But the
	 * maxima of several that come early and late by turns would add up to more than the time that has passed. */
	if (!t->looked)
		credit = t->grown_ns + t->lag_ns;
	else if (t->grown_ns > credit)
		t->grown_ns = credit;
	t->busiest_ns += t->grown_ns;
	credit -= t->grown_ns;
	t->credit_ns = credit < t->lag_ns ? credit : t->lag_ns;
	t->looked = true;
	t->looked_at = now;
	put_series(t, c, now);
}

bool thread_table_look(struct thread_table *t, struct source_context *c, int64_t now)
{
	struct process_table *processes = c->processes;
	size_t visited = 0;

	if (t->process_at == 0 && t->thread_at == 0)
		begin_look(t);
	for (; t->process_at < processes->count; t->process_at++) {
		struct process *p = &processes->items[t->process_at];
		struct visit v = {.t = t, .c = c, .p = p, .room = THREADS_PER_CALL - visited};

		if (visited == THREADS_PER_CALL)
			return false;
		/* Those that ended have been taken out of the table meanwhile: another one may stand here now. */
		if (p->pid != t->pid_at)
			t->thread_at = 0;
		/* A thread that waits is charged when it gets its CPU, so without CPU time nothing has changed. */
		if (!p->alive || (p->clock_ns >= 0 && p->clock_ns == p->clock_at_threads && t->thread_at == 0))
			continue;
		if (t->thread_at == 0)
			p->clock_at_threads = p->clock_ns;
		visited += visit_process(&v);
		if (t->thread_at > 0)
			return false;
		p->thread_visits++;
	}
	end_look(t, c, now);
	return true;
}
