/* The control group that the command started in, of version 1 or 2: memory, CPU time and throttling, kills, pressure.
 *
 * Everything in the group counts, processes that are none of the target's too. A command that moves to another group
 * is not followed. */
#include "source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "source/cgroup_find.h"
#include "source/psi.h"
#include "source/reading.h"

#define SELDOM_NS NS_PER_S
#define NO_LIMIT ((uint64_t)1 << 60) /* version 1 writes a number past all memory */
#define KEYS_MAX 4

/* A file that is kept open, and what is read from it. Without keys it holds one number. */
struct part {
	const char *file;
	bool seldom; /* read once a second only */
	struct part_figure {
		const char *key, *series, *unit;
		double factor; /* to the series' unit */
		enum series_kind kind;
	} figures[KEYS_MAX];
};

static const struct part memory_v1[] = {
	{"memory.usage_in_bytes", false, {{NULL, "cgroup.memory.current", "bytes", 1, SERIES_GAUGE}}},
	{"memory.max_usage_in_bytes", true, {{NULL, "cgroup.memory.peak", "bytes", 1, SERIES_GAUGE}}},
	{"memory.stat",
	 false,
	 {{"total_rss", "cgroup.memory.anon", "bytes", 1, SERIES_GAUGE},
	  {"total_cache", "cgroup.memory.file", "bytes", 1, SERIES_GAUGE}}},
	{"memory.oom_control", true, {{"oom_kill", "cgroup.oom_kills", "count", 1, SERIES_COUNTER}}},
	{NULL},
};
static const struct part memory_v2[] = {
	{"memory.current", false, {{NULL, "cgroup.memory.current", "bytes", 1, SERIES_GAUGE}}},
	{"memory.peak", true, {{NULL, "cgroup.memory.peak", "bytes", 1, SERIES_GAUGE}}},
	{"memory.stat",
	 false,
	 {{"anon", "cgroup.memory.anon", "bytes", 1, SERIES_GAUGE},
	  {"file", "cgroup.memory.file", "bytes", 1, SERIES_GAUGE}}},
	{"memory.events", true, {{"oom_kill", "cgroup.oom_kills", "count", 1, SERIES_COUNTER}}},
	{NULL},
};
static const struct part cpuacct_v1[] = {
	{"cpuacct.usage", false, {{NULL, "cgroup.cpu.usage", "s", 1e-9, SERIES_COUNTER}}},
	{NULL},
};
static const struct part cpu_v1[] = {
	{"cpu.stat",
	 false,
	 {{"nr_periods", "cgroup.cpu.periods", "count", 1, SERIES_COUNTER},
	  {"nr_throttled", "cgroup.cpu.throttled_periods", "count", 1, SERIES_COUNTER},
	  {"throttled_time", "cgroup.cpu.throttled", "s", 1e-9, SERIES_COUNTER}}},
	{NULL},
};
static const struct part cpu_v2[] = {
	{"cpu.stat",
	 false,
	 {{"usage_usec", "cgroup.cpu.usage", "s", 1e-6, SERIES_COUNTER},
	  {"nr_periods", "cgroup.cpu.periods", "count", 1, SERIES_COUNTER},
	  {"nr_throttled", "cgroup.cpu.throttled_periods", "count", 1, SERIES_COUNTER},
	  {"throttled_usec", "cgroup.cpu.throttled", "s", 1e-6, SERIES_COUNTER}}},
	{NULL},
};

static const struct {
	const char *file, *some, *full;
} pressures[] = {
	{"cpu.pressure", "cgroup.pressure.cpu.some", "cgroup.pressure.cpu.full"},
	{"memory.pressure", "cgroup.pressure.memory.some", "cgroup.pressure.memory.full"},
	{"io.pressure", "cgroup.pressure.io.some", "cgroup.pressure.io.full"},
};

#define PARTS_MAX 8
#define PRESSURES 3

struct cgroup_state {
	struct open_part {
		const struct part *part;
		int fd, series[KEYS_MAX];
	} parts[PARTS_MAX];
	size_t part_count;
	struct open_pressure {
		int fd, some, full;
	} pressures[PRESSURES];
	size_t pressure_count;
	/* Folders that limits are looked for in, upwards to their mount points; path "": none. */
	struct cgroup_folder memory, cpu;
	bool memory_is_v1, cpu_is_v1;
	int limit, quota;    /* series */
	int64_t seldom_next; /* when limits and the like are read again */
	struct pace pace;
};

static int open_in(const struct cgroup_folder *folder, const char *name)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof path, "%s/%s", folder->path, name) >= (int)sizeof path)
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Fills `keys` for the figures of the part; returns how many figures it has. */
static size_t part_keys(const struct part *part, struct scan_key keys[KEYS_MAX])
{
	size_t count = 0;

	for (; count < KEYS_MAX && part->figures[count].series; count++)
		keys[count] = (struct scan_key){.name = part->figures[count].key};
	return count;
}

static size_t read_part(const struct part *part, int fd, struct scan_key keys[KEYS_MAX])
{
	char text[16384];
	const char *at = text;
	size_t count = part_keys(part, keys);
	ssize_t length = procfs_read_all(fd, text, sizeof text);

	if (length <= 0)
		return 0;
	if (keys[0].name)
		scan_keys(text, (size_t)length, keys, count);
	else
		keys[0].found = scan_u64(&at, text + length, &keys[0].value);
	return count;
}

/* Keeps those of the files open that hold at least one of their figures, and defines series for what is there. */
static void open_parts(struct cgroup_state *s, struct source_context *c, const struct cgroup_folder *folder,
		       const struct part *parts)
{
	for (const struct part *part = parts; part->file && s->part_count < PARTS_MAX; part++) {
		struct open_part *open = &s->parts[s->part_count];
		struct scan_key keys[KEYS_MAX];
		bool any = false;
		size_t count;

		open->part = part;
		open->fd = open_in(folder, part->file);
		if (open->fd < 0)
			continue;
		count = read_part(part, open->fd, keys);
		for (size_t i = 0; i < KEYS_MAX; i++) {
			const struct part_figure *f = &part->figures[i];

			open->series[i] = -1;
			if (i >= count || !keys[i].found)
				continue;
			any = true;
			open->series[i] = series_define(
				c, &(struct series_desc){f->series, f->unit, "cgroup", "cgroup", f->kind});
		}
		if (any)
			s->part_count++;
		else
			close(open->fd);
	}
}

static void open_pressures(struct cgroup_state *s, struct source_context *c, const struct cgroup_folder *folder)
{
	for (size_t i = 0; i < PRESSURES; i++) {
		struct open_pressure *open = &s->pressures[s->pressure_count];
		struct series_desc desc = {pressures[i].some, "s", "cgroup", "cgroup", SERIES_COUNTER};
		struct psi psi;

		open->fd = open_in(folder, pressures[i].file);
		if (open->fd < 0)
			continue;
		if (psi_read(open->fd, &psi) <= 0) {
			close(open->fd);
			continue;
		}
		open->some = series_define(c, &desc);
		desc.name = pressures[i].full;
		open->full = isnan(psi.full_s) ? -1 : series_define(c, &desc);
		s->pressure_count++;
	}
}

static bool usable(const struct cgroup_folder *folder)
{
	return folder->path[0] && !folder->root;
}

/* The folders of the command in each hierarchy. */
struct found {
	struct cgroup_folder memory, cpu, cpuacct, unified;
};

static int find(pid_t pid, struct found *f, struct error *err)
{
	if (cgroup_find(pid, "memory", &f->memory, err) < 0 || cgroup_find(pid, "cpu", &f->cpu, err) < 0 ||
	    cgroup_find(pid, "cpuacct", &f->cpuacct, err) < 0 || cgroup_find(pid, "", &f->unified, err) < 0)
		return -1;
	return 0;
}

static void open_found(struct cgroup_state *s, struct source_context *c, const struct found *f)
{
	/* A controller belongs to one version at a time, but version 2 counts CPU time without one. */
	s->memory_is_v1 = usable(&f->memory);
	s->cpu_is_v1 = usable(&f->cpu) || usable(&f->cpuacct);
	s->memory = s->memory_is_v1 ? f->memory : f->unified;
	s->cpu = s->cpu_is_v1 ? f->cpu : f->unified;
	if (usable(&s->memory))
		open_parts(s, c, &s->memory, s->memory_is_v1 ? memory_v1 : memory_v2);
	if (s->cpu_is_v1 && usable(&f->cpuacct))
		open_parts(s, c, &f->cpuacct, cpuacct_v1);
	if (usable(&s->cpu))
		open_parts(s, c, &s->cpu, s->cpu_is_v1 ? cpu_v1 : cpu_v2);
	if (usable(&f->unified))
		open_pressures(s, c, &f->unified);
	if (s->part_count == 0)
		return;
	s->limit = series_define(
		c, &(struct series_desc){"cgroup.memory.limit", "bytes", "cgroup", "cgroup", SERIES_GAUGE});
	s->quota =
		series_define(c, &(struct series_desc){"cgroup.cpu.quota", "count", "cgroup", "cgroup", SERIES_GAUGE});
}

static void cgroup_close(void *state)
{
	struct cgroup_state *s = state;

	for (size_t i = 0; i < s->part_count; i++)
		close(s->parts[i].fd);
	for (size_t i = 0; i < s->pressure_count; i++)
		close(s->pressures[i].fd);
	free(s);
}

static int cgroup_open(struct source_context *c, void **ret_state, struct error *why_not)
{
	struct cgroup_state *s = calloc(1, sizeof *s);
	struct found *f = calloc(1, sizeof *f);
	bool any, root;

	if (!s || !f || find(c->command, f, why_not) < 0) {
		if (!s || !f)
			error_set(why_not, "out of memory");
		free(s);
		free(f);
		return -1;
	}
	s->limit = s->quota = -1;
	any = f->memory.path[0] || f->cpu.path[0] || f->cpuacct.path[0] || f->unified.path[0];
	root = f->memory.root || f->cpu.root || f->cpuacct.root || f->unified.root;
	open_found(s, c, f);
	free(f);
	if (s->part_count > 0 || s->pressure_count > 0) {
		*ret_state = s;
		return 0;
	}
	cgroup_close(s);
	if (!any)
		return error_set(why_not,
				 "no cgroup file system is mounted that shows the command's group; mount one at "
				 "/sys/fs/cgroup");
	if (root)
		return error_set(why_not,
				 "the command runs in the root cgroup, which has no figures of its own; start it in a "
				 "group, for example with systemd-run --scope or in a container");
	return error_set(why_not, "the command's cgroup has no memory or cpu controller; turn them on in the "
				  "cgroup.subtree_control of the groups above it");
}

/* Calls `read` for the folder and those above it down to the mount point; returns the smallest answer, NaN for none. */
static double smallest_upwards(const struct cgroup_folder *folder, double (*read)(const struct cgroup_folder *folder))
{
	struct cgroup_folder at = *folder;
	double smallest = NAN;

	for (;;) {
		double value = read(&at);
		char *slash = strrchr(at.path, '/');

		if (isnan(smallest) || value < smallest)
			smallest = value;
		if (!slash || (size_t)(slash - at.path) < at.top)
			return smallest;
		*slash = '\0';
	}
}

/* The text of a small file, "" where it cannot be read. */
static size_t read_small(const struct cgroup_folder *folder, const char *name, char *text, size_t size)
{
	int fd = open_in(folder, name);
	ssize_t length = fd < 0 ? 0 : procfs_read_all(fd, text, size);

	if (fd >= 0)
		close(fd);
	return length > 0 ? (size_t)length : 0;
}

/* The first number of a file; false for "max", "-1" and where there is none. */
static bool read_number(const struct cgroup_folder *folder, const char *name, uint64_t *ret)
{
	char text[64];
	const char *at = text;

	return scan_u64(&at, text + read_small(folder, name, text, sizeof text), ret);
}

static double limit_v1(const struct cgroup_folder *folder)
{
	uint64_t limit;

	return read_number(folder, "memory.limit_in_bytes", &limit) && limit < NO_LIMIT ? (double)limit : NAN;
}

static double limit_v2(const struct cgroup_folder *folder)
{
	uint64_t limit;

	return read_number(folder, "memory.max", &limit) && limit < NO_LIMIT ? (double)limit : NAN;
}

static double quota_v1(const struct cgroup_folder *folder)
{
	uint64_t quota, period;

	return read_number(folder, "cpu.cfs_quota_us", &quota) && read_number(folder, "cpu.cfs_period_us", &period) &&
			       period > 0
		       ? (double)quota / (double)period
		       : NAN;
}

static double quota_v2(const struct cgroup_folder *folder)
{
	char text[64];
	const char *at = text, *end = text + read_small(folder, "cpu.max", text, sizeof text);
	uint64_t quota, period;

	return scan_u64(&at, end, &quota) && scan_u64(&at, end, &period) && period > 0 ? (double)quota / (double)period
										       : NAN;
}

/* They seldom change, but may: a container can be given more while it runs. */
static void read_limits(struct cgroup_state *s, struct source_context *c, int64_t now)
{
	if (usable(&s->memory))
		timeline_put(c->timeline, s->limit, now,
			     smallest_upwards(&s->memory, s->memory_is_v1 ? limit_v1 : limit_v2));
	if (usable(&s->cpu))
		timeline_put(c->timeline, s->quota, now, smallest_upwards(&s->cpu, s->cpu_is_v1 ? quota_v1 : quota_v2));
}

static void put_part(struct source_context *c, const struct open_part *open, int64_t now)
{
	struct scan_key keys[KEYS_MAX];
	size_t count = read_part(open->part, open->fd, keys);

	for (size_t i = 0; i < count; i++)
		if (keys[i].found)
			timeline_put(c->timeline, open->series[i], now,
				     (double)keys[i].value * open->part->figures[i].factor);
}

static void cgroup_slow(void *state, struct source_context *c, int64_t now)
{
	struct cgroup_state *s = state;
	bool seldom = now >= s->seldom_next || c->exact;

	if (!pace_due(&s->pace, c, now))
		return;
	for (size_t i = 0; i < s->part_count; i++)
		if (seldom || !s->parts[i].part->seldom)
			put_part(c, &s->parts[i], now);
	for (size_t i = 0; i < s->pressure_count; i++) {
		struct psi psi;

		if (psi_read(s->pressures[i].fd, &psi) <= 0)
			continue;
		timeline_put(c->timeline, s->pressures[i].some, now, psi.some_s);
		timeline_put(c->timeline, s->pressures[i].full, now, psi.full_s);
	}
	if (seldom) {
		read_limits(s, c, now);
		s->seldom_next = now + SELDOM_NS;
	}
	pace_done(&s->pace, now, PACE_FACTOR);
}

const struct source source_cgroup = {
	.name = "cgroup",
	.summary = "memory, CPU time, throttling and kills of the control group that the command started in",
	.open = cgroup_open,
	.slow = cgroup_slow,
	.close = cgroup_close,
};
