#include "record/spy.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/procfs.h"
#include "exec/scan.h"
#include "record/spy_state.h"
#include "source/resident.h"

#define KERNEL_THREAD 0x00200000 /* PF_KTHREAD, of the flags in /proc/PID/stat */
/* Reading the processes of a tree may take a tenth of a core; of a larger tree they are read less often. */
#define ROUND_FACTOR 10
#define PSS_LONGEST_NS NS_PER_S
#define PSS_FACTOR 100
#define END_UNNOTICED_NS (50 * NS_PER_MS)
#define REAP_AT 1024 /* dead processes in the table */

/* The process itself, as long as it lives. */
static struct process *root_of(struct spy *s)
{
	/* Of a single process the table holds nothing else. */
	struct process *p = s->tree ? process_find(&s->processes, s->o.pid) : &s->processes.items[0];

	return p && p->alive ? p : NULL;
}

static void on_gone(void *context, struct process *p, int64_t now)
{
	struct spy *s = context;

	if (s->tree)
		tree_process_gone(s->tree, p, now);
}

static bool is_kernel_thread(const struct proc_stat *stat, const char *end)
{
	const char *at = stat->comm + stat->comm_length + 1;
	uint64_t flags;

	/* State, parent, group, session, terminal and its group come first. */
	return scan_words(&at, end, 6) && scan_u64(&at, end, &flags) && (flags & KERNEL_THREAD);
}

/* Our pid as /proc has it; 0 where it does not show us. */
static pid_t shown_pid(void)
{
	char path[PATH_MAX], pid[24];
	int64_t value = 0;
	ssize_t length;

	snprintf(path, sizeof path, "%s/self", procfs_root());
	length = readlink(path, pid, sizeof pid - 1);
	if (length <= 0)
		return 0;
	pid[length] = '\0';
	return parse_i64(pid, &value) && value > 0 && value <= INT_MAX ? (pid_t)value : 0;
}

/* That a pid means the same process there as here. */
static int check_namespace(struct error *err)
{
	pid_t shown = shown_pid();

	if (shown && shown != getpid())
		return error_set(err,
				 "%s is that of another pid namespace, where the pid is another process's; mount one "
				 "for this namespace (unshare --mount-proc)",
				 procfs_root());
	return 0;
}

static int explain_closed(pid_t pid, int failed, struct error *err)
{
	if (failed != ENOENT && failed != ESRCH)
		return error_set(err, "%s/%d/stat: cannot be read: %s", procfs_root(), (int)pid, strerror(failed));
	if (kill(pid, 0) < 0 && errno == ESRCH)
		return error_set(err, "there is no process %d", (int)pid);
	if (!shown_pid())
		return error_set(err, "%s shows no processes: it has to be mounted for process %d to be watched",
				 procfs_root(), (int)pid);
	return error_set(err, "process %d is hidden: %s shows each user only his own; watch it as its user or as root",
			 (int)pid, procfs_root());
}

/* That it is a process whose memory can be watched. */
static int check(pid_t pid, const struct proc_stat *stat, const char *end, struct error *err)
{
	struct scan_key group = {.name = "Tgid:"};
	char text[4096];
	ssize_t length;

	if (proc_stat_ended(stat))
		return error_set(err, "process %d has ended already; its parent has not yet asked for its status",
				 (int)pid);
	if (is_kernel_thread(stat, end))
		return error_set(err, "process %d is a thread of the kernel, which has no memory of its own", (int)pid);
	length = procfs_read_file(text, sizeof text, "%d/status", (int)pid);
	if (length > 0 && scan_keys(text, (size_t)length, &group, 1) == 1 && group.value != (uint64_t)pid)
		return error_set(err, "%d is a thread of process %llu; watch that", (int)pid,
				 (unsigned long long)group.value);
	return 0;
}

/* The first process of the table. */
static int add_process(struct spy *s, struct error *err)
{
	char text[512];
	struct proc_stat stat;
	struct process *p;
	int fd;

	errno = 0;
	fd = scan_open_stat(s->o.pid, text, &stat);
	if (fd < 0) {
		fd = procfs_open("%d/stat", (int)s->o.pid);
		if (fd >= 0)
			close(fd);
		return explain_closed(s->o.pid, fd < 0 ? -fd : EIO, err);
	}
	if (check(s->o.pid, &stat, text + strnlen(text, sizeof text), err) < 0) {
		close(fd);
		return -1;
	}
	p = process_add(&s->processes, s->o.pid, stat.ppid, (int64_t)stat.start_ticks, clock_mono_ns());
	if (!p) {
		close(fd);
		return error_set(err, "out of memory");
	}
	process_keep(&s->processes, &p->stat_fd, fd);
	return 0;
}

/* Both were opened by pid; that they are of the same process, its stat says, which belongs to one for good. */
static int open_rest(struct spy *s, struct error *err)
{
	struct process *p = root_of(s);
	int statm = procfs_open("%d/statm", (int)s->o.pid);

	s->pidfd = (int)syscall(SYS_pidfd_open, s->o.pid, 0);
	if (statm >= 0)
		process_keep(&s->processes, &p->statm_fd, statm);
	if (!scan_is_there(p))
		return error_set(err, "there is no process %d", (int)s->o.pid);
	if (statm < 0)
		return error_set(err, "%s/%d/statm: %s", procfs_root(), (int)s->o.pid, strerror(-statm));
	return 0;
}

static int begin(struct spy *s, struct error *err)
{
	if (s->o.pid <= 0)
		return error_set(err, "%d is no process id", (int)s->o.pid);
	if (check_namespace(err) < 0 || add_process(s, err) < 0 || open_rest(s, err) < 0)
		return -1;
	if (s->o.tree && tree_new_running(s->o.pid, s->o.reaper, &s->processes, &s->tree, err) < 0)
		return -1;
	return s->o.gpu ? spy_gpus_open(&s->gpus, err) : 0;
}

int spy_new(const struct spy_options *o, struct spy **ret, struct error *err)
{
	struct spy *s = calloc(1, sizeof *s);

	if (!s)
		return error_set(err, "out of memory");
	s->o = *o;
	s->pidfd = -1;
	s->page = sysconf(_SC_PAGESIZE);
	s->shares.longest_ns = PSS_LONGEST_NS;
	s->shares.factor = PSS_FACTOR;
	process_table_init(&s->processes);
	warnings_init(&s->warnings);
	s->context = (struct source_context){
		.processes = &s->processes,
		.warnings = &s->warnings,
		.command = o->pid,
		.interval_ns = o->delay_ns,
		.process_gone = on_gone,
		.gone_context = s,
	};
	for (size_t i = 0; i < SPY_RESOURCES; i++)
		monitor_init(&s->resources[i]);
	for (size_t i = 0; i < SPY_GPUS_MAX; i++)
		monitor_init(&s->gpu_monitors[i]);
	spy_marks_begin(s);
	if (begin(s, err) < 0) {
		spy_free(s);
		return -1;
	}
	*ret = s;
	return 0;
}

void spy_free(struct spy *s)
{
	if (!s)
		return;
	spy_gpus_release(&s->gpus);
	spy_marks_end(s);
	tree_free(s->tree);
	process_table_release(&s->processes);
	warnings_release(&s->warnings);
	if (s->pidfd >= 0)
		close(s->pidfd);
	free(s);
}

/* A process without memory: a zombie, one that is ending, or one whose first thread alone has ended. */
static void look_closer(struct spy *s, struct process *p, int64_t now)
{
	char text[512];
	struct proc_stat stat;
	ssize_t length = living_read(&s->context, p, &p->stat_fd, "stat", text, sizeof text);

	if (length < 0 || (length > 0 && !proc_stat_scan(text, (size_t)length, &stat)))
		return;
	if (length == 0 || proc_stat_ended(&stat) || (int64_t)stat.start_ticks != p->start_ticks)
		living_gone(&s->context, p, now);
	else if (stat.threads > 1)
		resident_through_a_thread(&s->context, p);
}

/* The sums over all; false where nothing was read. */
static bool read_all(struct spy *s, struct spy_sample *sample, int64_t now)
{
	int64_t rss = 0, anon = 0, began = s->processes.alive > 1 ? clock_mono_ns() : 0;

	for (size_t i = 0; i < s->processes.count; i++) {
		struct process *p = &s->processes.items[i];
		enum resident got;

		if (!p->alive)
			continue;
		got = resident_read(&s->context, p, s->page, now);
		if (got == RESIDENT_NONE) {
			look_closer(s, p, now);
			if (p->alive)
				got = resident_read(&s->context, p, s->page, now);
		}
		if (got != RESIDENT_READ && (got != RESIDENT_UNREAD || p->rss < 0))
			continue;
		sample->processes++;
		rss += p->rss;
		anon += p->anon;
	}
	if (began)
		s->round_cost = clock_mono_ns() - began;
	if (sample->processes == 0)
		return false;
	sample->bytes[SPY_RSS] = rss;
	sample->bytes[SPY_ANON] = anon;
	sample->bytes[SPY_FILE] = rss - anon;
	return true;
}

static void read_rest(struct spy *s, struct spy_sample *sample, int64_t now)
{
	double pss = NAN;

	sample->bytes[SPY_SWAP] = spy_marks_read(s, now);
	if (s->o.pss && s->context.exact)
		pss = pss_read_now(&s->shares, &s->context, sample->bytes[SPY_RSS], now);
	else if (s->o.pss)
		pss = pss_read(&s->shares, &s->context, sample->bytes[SPY_RSS], now);
	sample->bytes[SPY_PSS] = isnan(pss) ? -1 : (int64_t)pss;
	if (!isnan(pss) && sample->bytes[SPY_RSS] > s->shares_rss)
		s->shares_rss = sample->bytes[SPY_RSS];
}

static void note(struct spy *s, const struct spy_sample *sample)
{
	for (size_t i = 0; i < SPY_RESOURCES; i++)
		monitor_add(&s->resources[i], sample->bytes[i], sample->t);
	for (size_t i = 0; i < sample->gpu_count; i++)
		monitor_add(&s->gpu_monitors[i], sample->gpus[i], sample->t);
	if (s->o.sample)
		s->o.sample(s->o.context, sample);
}

bool spy_tick(struct spy *s, int64_t now)
{
	struct spy_sample sample;

	if (s->ended)
		return false;
	sample.t = now;
	sample.gpu_count = sample.processes = 0;
	for (size_t i = 0; i < SPY_RESOURCES; i++)
		sample.bytes[i] = -1;
	if (!s->begin)
		s->begin = now;
	if (s->tree)
		tree_update(s->tree, now);
	if (read_all(s, &sample, now))
		read_rest(s, &sample, now);
	if (s->o.gpu)
		spy_gpus_read(&s->gpus, &sample, s->context.exact, &s->warnings);
	s->ended = !root_of(s);
	if (s->ended)
		s->end = now;
	if (sample.processes > 0) {
		s->ticks++;
		s->last = now;
		note(s, &sample);
	}
	if (s->tree && s->processes.count - s->processes.alive > REAP_AT)
		process_table_reap(&s->processes, spy_marks_ended, s);
	return !s->ended;
}

/* When the next tick is due, after one that was due at `due` and is done at `now`. */
static int64_t next_due(struct spy *s, int64_t due, int64_t now)
{
	int64_t delay = s->o.delay_ns, rest = s->processes.alive > 1 ? ROUND_FACTOR * s->round_cost : 0;

	if (rest > delay) {
		delay = rest;
		if (rest > s->stretched)
			s->stretched = rest;
	}
	if (due + delay > now)
		return due + delay;
	if (now - due > 2 * delay)
		s->late_ticks++;
	return now + delay;
}

/* False: it is time to end. */
static bool sleep_until(struct spy *s, int stop_fd, int64_t due, int64_t now)
{
	struct pollfd fds[2];
	nfds_t count = 0;
	struct timespec rest = {0, 0};
	int stop = -1;

	if (due > now) {
		rest.tv_sec = (due - now) / NS_PER_S;
		rest.tv_nsec = (due - now) % NS_PER_S;
	}
	if (stop_fd >= 0) {
		stop = (int)count;
		fds[count++] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
	}
	/* It tells of the end at once, which else the next tick would. */
	if (s->pidfd >= 0 && due - now > END_UNNOTICED_NS)
		fds[count++] = (struct pollfd){.fd = s->pidfd, .events = POLLIN};
	return ppoll(fds, count, &rest, NULL) <= 0 || stop < 0 || fds[stop].revents == 0;
}

void spy_watch(struct spy *s, int stop_fd, int64_t until)
{
	int64_t due = clock_mono_ns(), now = due;

	while (spy_tick(s, now)) {
		now = clock_mono_ns();
		due = next_due(s, due, now);
		if (until && now >= until)
			return;
		if (!sleep_until(s, stop_fd, until && until < due ? until : due, now))
			return;
		now = clock_mono_ns();
	}
}
