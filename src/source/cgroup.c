/* The command's control group, of version 1 or 2: memory, CPU time and throttling, kills, pressure.
 *
 * Everything in the group counts, processes that are none of the target's too. Where the command moves to another group
 * it is followed: its series go on, counters from where they were. */
#include "source/source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "source/cgroup_find.h"
#include "source/cgroup_limits.h"
#include "source/cgroup_parts.h"
#include "source/reading.h"

#define SELDOM_NS NS_PER_S
#define SETTLING_NS (2 * NS_PER_S) /* starters of scopes and containers move within this */
#define PARTS_MAX 6
#define MEMBERSHIP_MAX 16384
#define ENDING 0x4 /* of the flags of a task: it is about to end */

/* What is read from one folder. Throttling is counted by the group that has the quota only, which may lie further up
 * than the command's own. */
enum reading { MEMORY, USAGE, THROTTLING, PRESSURE, READINGS };

struct cgroup_state {
	int membership; /* /proc/COMMAND/cgroup, open */
	char seen[MEMBERSHIP_MAX];
	struct cgroup_place place;
	struct open_folder {
		struct cgroup_folder folder;
		const struct cgroup_part *parts;
		struct open_part {
			const struct cgroup_part *part;
			int fd;
		} open[PARTS_MAX];
		size_t count;
	} folders[READINGS];
	struct shown {
		int series; /* -1: not defined, nothing has been read */
		struct running running;
	} shown[CGROUP_FIGURES];
	bool looked, judged;
	int64_t settled_at; /* from then on the command is looked after seldom */
	int64_t look_next, seldom_next;
	struct pace pace;
};

static double page_size(void)
{
	return (double)sysconf(_SC_PAGESIZE);
}

static void close_folder(struct open_folder *f)
{
	for (size_t i = 0; i < f->count; i++)
		close(f->open[i].fd);
	f->count = 0;
}

/* Keeps those of the files open that hold at least one of their figures. */
static void open_folder(struct open_folder *f)
{
	for (const struct cgroup_part *part = f->parts; part && part->file && f->count < PARTS_MAX; part++) {
		int fd = cgroup_open_in(&f->folder, part->file);
		double values[CGROUP_KEYS_MAX];

		if (fd < 0)
			continue;
		if (cgroup_read_part(part, fd, values) > 0)
			f->open[f->count++] = (struct open_part){part, fd};
		else
			close(fd);
	}
}

/* From now on these parts are read in that folder; nothing changes where that is so already. */
static void read_from(struct cgroup_state *s, enum reading which, const struct cgroup_folder *folder,
		      const struct cgroup_part *parts)
{
	struct open_folder *f = &s->folders[which];

	if (!cgroup_usable(folder))
		parts = NULL;
	if (f->parts == parts && strcmp(f->folder.path, folder->path) == 0)
		return;
	close_folder(f);
	f->folder = *folder;
	f->parts = parts;
	open_folder(f);
	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; k < CGROUP_KEYS_MAX && f->open[i].part->figures[k].factor != 0; k++)
			s->shown[f->open[i].part->figures[k].figure].running.elsewhere = true;
}

static bool memory_is_v1(const struct cgroup_state *s)
{
	return cgroup_usable(&s->place.memory);
}

static bool cpu_is_v1(const struct cgroup_state *s)
{
	return cgroup_usable(&s->place.cpu);
}

static const struct cgroup_folder *memory_folder(const struct cgroup_state *s)
{
	return memory_is_v1(s) ? &s->place.memory : &s->place.unified;
}

static struct cgroup_limit find_quota(struct cgroup_state *s)
{
	return cgroup_cpu_quota(cpu_is_v1(s) ? &s->place.cpu : &s->place.unified, cpu_is_v1(s));
}

static void read_throttling_at(struct cgroup_state *s, const struct cgroup_limit *quota)
{
	struct cgroup_folder folder = cpu_is_v1(s) ? s->place.cpu : s->place.unified;

	folder.path[quota->length] = '\0';
	read_from(s, THROTTLING, &folder, cpu_is_v1(s) ? cgroup_throttling_v1 : cgroup_throttling_v2);
}

/* A controller belongs to one version at a time, but version 2 counts CPU time and pressure without one. */
static void settle_in(struct cgroup_state *s)
{
	bool usage_is_v1 = cgroup_usable(&s->place.cpuacct);
	struct cgroup_limit quota = find_quota(s);

	read_from(s, MEMORY, memory_folder(s), memory_is_v1(s) ? cgroup_memory_v1 : cgroup_memory_v2);
	read_from(s, USAGE, usage_is_v1 ? &s->place.cpuacct : &s->place.unified,
		  usage_is_v1 ? cgroup_usage_v1 : cgroup_usage_v2);
	read_throttling_at(s, &quota);
	read_from(s, PRESSURE, &s->place.unified, cgroup_pressure_v2);
}

static bool reads_anything(const struct cgroup_state *s)
{
	for (size_t i = 0; i < READINGS; i++)
		if (s->folders[i].count > 0)
			return true;
	return false;
}

/* Why nothing is read though there is a group. */
static int explain(const struct cgroup_state *s, struct error *why_not)
{
	const struct cgroup_place *p = &s->place;

	if (p->memory.root || p->cpu.root || p->cpuacct.root || p->unified.root)
		return error_set(why_not,
				 "the command runs in the root cgroup, which has no figures of its own; start it in a "
				 "group, for example with systemd-run --scope or in a container");
	return error_set(why_not, "the command's cgroup has no memory or cpu controller; turn them on in the "
				  "cgroup.subtree_control of the groups above it");
}

/* 0, or -errno where it is gone. A last line without an end may have been cut, and its path with it. */
static int read_membership(int fd, char text[MEMBERSHIP_MAX])
{
	ssize_t length = procfs_read_record(fd, text, MEMBERSHIP_MAX);

	while (length > 0 && text[length - 1] != '\n')
		length--;
	text[length > 0 ? length : 0] = '\0';
	return length < 0 ? (int)length : 0;
}

static void cgroup_close(void *state)
{
	struct cgroup_state *s = state;

	for (size_t i = 0; i < READINGS; i++)
		close_folder(&s->folders[i]);
	if (s->membership >= 0)
		close(s->membership);
	free(s);
}

static int begin(struct cgroup_state *s, const struct source_context *c, struct error *why_not)
{
	char who[16] = "self";
	int failed;

	if (c->command > 0)
		snprintf(who, sizeof who, "%d", (int)c->command);
	s->membership = procfs_open("%s/cgroup", who);
	failed = s->membership < 0 ? s->membership : read_membership(s->membership, s->seen);
	if (failed < 0)
		return error_set(why_not,
				 "%s/%s/cgroup: %s; it takes a kernel with control groups, and a proc file system that "
				 "shows the command",
				 procfs_root(), who, strerror(-failed));
	if (cgroup_find(s->seen, &s->place, why_not) < 0)
		return -1;
	if (!s->place.memory.path[0] && !s->place.cpu.path[0] && !s->place.cpuacct.path[0] && !s->place.unified.path[0])
		return error_set(why_not,
				 "no cgroup file system is mounted that shows the command's group; mount one at "
				 "/sys/fs/cgroup");
	settle_in(s);
	/* A command may move to a group that has figures. */
	return reads_anything(s) || c->command > 0 ? 0 : explain(s, why_not);
}

static int cgroup_open(struct source_context *c, void **ret_state, struct error *why_not)
{
	struct cgroup_state *s = calloc(1, sizeof *s);

	if (!s)
		return error_set(why_not, "out of memory");
	s->membership = -1;
	for (size_t i = 0; i < CGROUP_FIGURES; i++)
		s->shown[i].series = -1;
	if (begin(s, c, why_not) < 0) {
		cgroup_close(s);
		return -1;
	}
	*ret_state = s;
	return 0;
}

/* A process that ends is shown in the root groups of version 1, which it has not moved to. */
static bool is_ending(pid_t pid)
{
	char text[1024];
	ssize_t length = procfs_read_file(text, sizeof text, "%d/stat", (int)pid);
	const char *at = length > 0 ? memrchr(text, ')', (size_t)length) : NULL;
	uint64_t flags;

	if (!at)
		return true;
	at++;
	/* Fields 3 to 8 of proc_pid_stat(5), then the flags. */
	return !scan_words(&at, text + length, 6) || !scan_u64(&at, text + length, &flags) || (flags & ENDING);
}

/* Looks where the command is now; true if it has moved. */
static bool follow(struct cgroup_state *s, struct source_context *c)
{
	char text[MEMBERSHIP_MAX];
	struct cgroup_place place;
	struct error err;

	if (read_membership(s->membership, text) < 0 || strcmp(text, s->seen) == 0 || is_ending(c->command))
		return false;
	if (cgroup_find(text, &place, &err) < 0) {
		warnings_add(c->warnings, "The command moved to another control group, which is not followed: %s.",
			     err.text);
		return false;
	}
	memcpy(s->seen, text, sizeof s->seen);
	s->place = place;
	settle_in(s);
	return true;
}

static void put(struct cgroup_state *s, struct source_context *c, enum cgroup_figure figure, int64_t now, double value)
{
	const struct cgroup_series *series = &cgroup_series[figure];
	struct shown *shown = &s->shown[figure];

	if (isnan(value))
		return;
	if (series->kind == SERIES_COUNTER)
		value = running_total(&shown->running, value);
	if (shown->series < 0)
		shown->series = series_define(
			c, &(struct series_desc){series->name, series->unit, "cgroup", "cgroup", series->kind});
	timeline_put(c->timeline, shown->series, now, value);
}

/* A limit that is no more leaves what the machine has; one that never was is not shown. */
static void put_limit(struct cgroup_state *s, struct source_context *c, enum cgroup_figure figure, int64_t now,
		      double limit, double machine)
{
	put(s, c, figure, now, isnan(limit) && s->shown[figure].series >= 0 ? machine : limit);
}

/* They seldom change, but may: a container can be given more while it runs. */
static void read_limits(struct cgroup_state *s, struct source_context *c, int64_t now)
{
	struct cgroup_limit memory = cgroup_memory_limit(memory_folder(s), memory_is_v1(s)), quota = find_quota(s);

	if (memory.length > 0)
		put_limit(s, c, MEMORY_LIMIT, now, memory.value, page_size() * (double)sysconf(_SC_PHYS_PAGES));
	if (quota.length > 0)
		put_limit(s, c, CPU_QUOTA, now, quota.value, (double)sysconf(_SC_NPROCESSORS_ONLN));
	read_throttling_at(s, &quota);
}

static void put_parts(struct cgroup_state *s, struct source_context *c, const struct open_folder *f, bool seldom,
		      int64_t now)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct cgroup_part *part = f->open[i].part;
		double values[CGROUP_KEYS_MAX];

		if ((part->seldom && !seldom) || cgroup_read_part(part, f->open[i].fd, values) == 0)
			continue;
		for (size_t k = 0; k < CGROUP_KEYS_MAX && part->figures[k].factor != 0; k++)
			put(s, c, part->figures[k].figure, now, values[k]);
	}
}

static void look_after(struct cgroup_state *s, struct source_context *c, int64_t now)
{
	struct error why;

	if (!s->looked)
		s->settled_at = now + SETTLING_NS;
	s->looked = true;
	/* What is new is read at once. */
	if (follow(s, c))
		s->pace.next = s->seldom_next = now;
	s->look_next = now < s->settled_at ? now : now + SELDOM_NS;
	if (now < s->settled_at || s->judged)
		return;
	s->judged = true;
	if (!reads_anything(s)) {
		explain(s, &why);
		warnings_add(c->warnings, "Not observed, cgroup: %s.", why.text);
	}
}

static void cgroup_slow(void *state, struct source_context *c, int64_t now)
{
	struct cgroup_state *s = state;
	bool seldom;

	if (now >= s->look_next || c->exact)
		look_after(s, c, now);
	if (!pace_due(&s->pace, c, now))
		return;
	seldom = now >= s->seldom_next || c->exact;
	if (seldom) {
		read_limits(s, c, now);
		s->seldom_next = now + SELDOM_NS;
	}
	for (size_t i = 0; i < READINGS; i++)
		put_parts(s, c, &s->folders[i], seldom, now);
	pace_done(&s->pace, now, PACE_FACTOR);
}

const struct source source_cgroup = {
	.name = "cgroup",
	.summary = "memory, CPU time, throttling and kills of the command's control group",
	.open = cgroup_open,
	.slow = cgroup_slow,
	.close = cgroup_close,
};
