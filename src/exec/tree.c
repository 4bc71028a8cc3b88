#include "exec/tree.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/forks.h"
#include "exec/scan.h"

/* With fork events, /proc is still scanned so often: a set-user-ID program, say, ends inherited events below it. */
#define CHECK_EVERY_NS (5 * NS_PER_S)
/* A scan takes at most 0.5% of a core: its last cost in CPU time, times this, must have passed. */
#define SCAN_FACTOR 200
#define REJUDGE_EVERY_NS (2 * NS_PER_S)
/* How long a process that a scan has found may wait for its fork event before it counts as one without. */
#define EVENT_LATE_NS (20 * NS_PER_MS)
#define UNEXPLAINED_MAX 256
#define EVENTS_PER_CALL 100000
#define COMMANDS_PER_CALL 20 /* each costs as much as ten readings of its memory */
#define SIGNAL_ROUNDS 4

struct tree {
	pid_t command;
	struct process_table *table;
	struct scan scan;
	struct forks *forks; /* NULL: no fork events, because of `why` */
	char why[160];
	uint64_t added;                 /* to the table */
	uint64_t forked, ended, unseen; /* by events; unseen: nothing could be read any more */
	uint64_t unannounced;           /* found by a scan, without a fork event */
	uint64_t adopted;               /* there before the tree was made */
	bool adopting;
	int64_t scanned_at, rejudged_at, scan_next;
	struct unexplained {
		int pid;
		int64_t t;
	} unexplained[UNEXPLAINED_MAX]; /* found by a scan, their fork event may still come */
	size_t unexplained_count;
};

static void note_added(void *context, struct process *p)
{
	struct tree *t = context;

	t->added++;
	if (!t->forks)
		return;
	if (t->adopting) {
		t->adopted++;
		forks_know(t->forks, p->pid);
		return;
	}
	if (t->unexplained_count < UNEXPLAINED_MAX)
		t->unexplained[t->unexplained_count++] = (struct unexplained){p->pid, p->first_seen};
	else
		t->unannounced++;
}

static int add_command(struct tree *t, struct error *err)
{
	char text[512];
	struct proc_stat stat;
	int fd;

	errno = 0;
	fd = scan_open_stat(t->command, text, &stat);
	if (fd < 0)
		return error_set(err, "%s/%d/stat: cannot be read: %s", procfs_root(), (int)t->command,
				 errno ? strerror(errno) : "it is damaged");
	if (!scan_add(&t->scan, t->command, stat.ppid, &stat, fd, clock_mono_ns()))
		return error_set(err, "out of memory");
	t->added++;
	return 0;
}

static int make(pid_t command, pid_t helper, struct process_table *table, struct tree **ret, struct error *err)
{
	struct tree *t = calloc(1, sizeof *t);

	if (!t)
		return error_set(err, "out of memory");
	t->command = command;
	t->table = table;
	if (scan_init(&t->scan, helper, table, err) < 0) {
		free(t);
		return -1;
	}
	t->scan.added = note_added;
	t->scan.context = t;
	if (add_command(t, err) < 0) {
		tree_free(t);
		return -1;
	}
	*ret = t;
	return 0;
}

int tree_new(pid_t command, pid_t helper, struct process_table *table, struct tree **ret, struct error *err)
{
	struct tree *t = NULL;
	struct error why;

	if (make(command, helper, table, &t, err) < 0)
		return -1;
	/* It has no descendants yet: with events, there is nothing to look for. */
	t->scanned_at = clock_mono_ns();
	if (forks_open(command, &t->forks, &why) < 0)
		snprintf(t->why, sizeof t->why, "%s", why.text);
	*ret = t;
	return 0;
}

static void scan_now(struct tree *t, int64_t now);

int tree_new_running(pid_t command, pid_t helper, struct process_table *table, struct tree **ret, struct error *err)
{
	struct tree *t = NULL;
	struct error why;

	if (make(command, helper, table, &t, err) < 0)
		return -1;
	/* What forks between the two is told twice; what forks after them, by an event. */
	if (forks_open_running(command, &t->forks, &why) < 0)
		snprintf(t->why, sizeof t->why, "%s", why.text);
	t->adopting = true;
	scan_now(t, clock_mono_ns());
	t->adopting = false;
	*ret = t;
	return 0;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	forks_close(t->forks);
	scan_release(&t->scan);
	free(t);
}

/* Takes the pid out of those whose event is awaited. */
static bool explain(struct tree *t, int pid)
{
	for (size_t i = 0; i < t->unexplained_count; i++) {
		if (t->unexplained[i].pid != pid)
			continue;
		t->unexplained[i] = t->unexplained[--t->unexplained_count];
		return true;
	}
	return false;
}

static void take_fork(struct tree *t, const struct fork_event *event, int64_t now)
{
	char text[512];
	struct proc_stat stat;
	struct process *known;
	int fd;

	t->forked++;
	if (explain(t, event->pid))
		return;
	fd = scan_open_stat(event->pid, text, &stat);
	if (fd < 0) {
		t->unseen++;
		return;
	}
	known = process_find(t->table, event->pid);
	if (known && known->start_ticks == (int64_t)stat.start_ticks) {
		if (t->adopted > 0)
			t->adopted--;
		close(fd);
		return;
	}
	if (scan_add(&t->scan, event->pid, event->ppid, &stat, fd, now))
		t->added++;
}

/* A zombie is left to whoever reads its stat, which tells its last CPU time. */
static void take_end(struct tree *t, const struct fork_event *event, int64_t now)
{
	struct process *p = process_find(t->table, event->pid);

	t->ended++;
	if (p && !scan_is_there(p))
		process_died(t->table, p, now);
}

void tree_poll(struct tree *t, int64_t now)
{
	struct fork_event event;

	/* Bounded, since a storm of forks may fill the rings as fast as they are read. */
	for (size_t i = 0; t->forks && i < EVENTS_PER_CALL && forks_next(t->forks, &event); i++) {
		if (event.type == FORK_NEW)
			take_fork(t, &event, now);
		else
			take_end(t, &event, now);
	}
	for (size_t i = 0; i < t->unexplained_count;) {
		if (now - t->unexplained[i].t < EVENT_LATE_NS) {
			i++;
			continue;
		}
		t->unannounced++;
		t->unexplained[i] = t->unexplained[--t->unexplained_count];
	}
}

static bool events_are_whole(const struct tree *t)
{
	return t->forks && !forks_lost(t->forks) && t->unannounced == 0;
}

static void scan_now(struct tree *t, int64_t now)
{
	int64_t began = clock_process_ns();
	/* A pid that events did not announce is none of the tree's. */
	bool rejudge = !events_are_whole(t) && now - t->rejudged_at >= REJUDGE_EVERY_NS;

	scan_run(&t->scan, now, rejudge);
	if (rejudge)
		t->rejudged_at = now;
	t->scanned_at = now;
	t->scan_next = now + SCAN_FACTOR * (clock_process_ns() - began);
}

/* Those that have become another program since their command line was read. */
static void refresh_commands(struct tree *t)
{
	size_t left = COMMANDS_PER_CALL;

	for (size_t i = 0; i < t->table->count && left > 0; i++) {
		struct process *p = &t->table->items[i];

		if (p->alive && p->command_stale) {
			scan_read_command(p);
			left--;
		}
	}
}

void tree_update(struct tree *t, int64_t now)
{
	tree_poll(t, now);
	if (now >= t->scan_next && (!events_are_whole(t) || now - t->scanned_at >= CHECK_EVERY_NS))
		scan_now(t, now);
	refresh_commands(t);
}

void tree_process_gone(struct tree *t, struct process *p, int64_t now)
{
	/* While its parent does not ask for its status, a scan would find it again. */
	if (!pidset_add(&t->scan.ended, p->pid))
		t->scan.failed = true;
	process_died(t->table, p, now);
}

void tree_counts(struct tree *t, struct tree_counts *ret)
{
	uint64_t announced, unannounced;

	tree_poll(t, clock_mono_ns());
	announced = 1 + t->adopted + t->forked;
	unannounced = t->unannounced + t->unexplained_count;
	*ret = (struct tree_counts){.processes = t->added};
	if (!t->forks) {
		snprintf(ret->why, sizeof ret->why, "%s", t->why);
		return;
	}
	ret->unseen = t->unseen;
	if (announced + unannounced > ret->processes)
		ret->processes = announced + unannounced;
	/* Each process that has ended must have told so: an event less, and events have stopped somewhere. */
	if (forks_lost(t->forks))
		snprintf(ret->why, sizeof ret->why,
			 "there were more forks at once than the kernel's records have room for");
	else if (unannounced > 0 || t->ended + t->table->alive < announced)
		snprintf(ret->why, sizeof ret->why,
			 "the kernel's fork events did not reach every process, as below a "
			 "set-user-ID program");
	else if (t->scan.failed)
		snprintf(ret->why, sizeof ret->why, "/proc could not be listed at all times");
	else
		ret->exact = true;
}

size_t tree_survivors(struct tree *t, pid_t *pids, size_t room)
{
	size_t count = 0;

	tree_poll(t, clock_mono_ns());
	scan_now(t, clock_mono_ns());
	for (size_t i = 0; i < t->table->count; i++) {
		const struct process *p = &t->table->items[i];

		if (!p->alive || p->pid == t->command || !scan_runs(p))
			continue;
		if (count < room)
			pids[count] = p->pid;
		count++;
	}
	return count;
}

/* Through a pidfd, so that between the look and the signal the pid cannot become another process's. */
static bool send_signal(const struct process *p, int signo)
{
	int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	bool sent;

	if (fd < 0)
		return errno == ENOSYS && scan_runs(p) && kill(p->pid, signo) == 0;
	sent = scan_runs(p) && syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0) == 0;
	close(fd);
	return sent;
}

size_t tree_signal(struct tree *t, int signo)
{
	struct pidset done;
	size_t sent = 0;

	pidset_init(&done);
	for (int round = 0; round < SIGNAL_ROUNDS; round++) {
		size_t before = sent;

		tree_poll(t, clock_mono_ns());
		scan_now(t, clock_mono_ns());
		for (size_t i = 0; i < t->table->count; i++) {
			const struct process *p = &t->table->items[i];

			if (!p->alive || pidset_has(&done, p->pid) || !send_signal(p, signo))
				continue;
			sent++;
			pidset_add(&done, p->pid);
		}
		if (sent == before)
			break;
	}
	pidset_release(&done);
	return sent;
}

int tree_fork_events_available(struct error *why_not)
{
	struct forks *forks;

	if (forks_open(getpid(), &forks, why_not) < 0)
		return -1;
	forks_close(forks);
	return 0;
}
