#include "exec/memory_room.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/procfs.h"

#define CPUS_MAX 8192 /* more than any kernel is built for by its makers */
#define INDEXES 8
#define CPU_CACHE "devices/system/cpu/cpu%d/cache/index%d/"

/* A number at the start of a text, perhaps with K or M behind it; false where there is none, as in "max". */
static bool read_number(double *ret, const char *text, ssize_t length)
{
	const char *at = text;
	uint64_t value;

	if (length <= 0 || !scan_u64(&at, text + length, &value))
		return false;
	*ret = (double)value * (*at == 'K' ? 1024 : *at == 'M' ? 1024 * 1024 : 1);
	return true;
}

/* Which of a CPU's caches is the last that holds data; -1 where none is told. */
static int last_index(int cpu)
{
	char text[64];
	double level, highest = 0;
	int found = -1;

	for (int i = 0; i < INDEXES; i++) {
		if (!read_number(&level, text, sysfs_read_file(text, sizeof text, CPU_CACHE "level", cpu, i)))
			break;
		sysfs_read_word(text, sizeof text, CPU_CACHE "type", cpu, i);
		if (level > highest && strcmp(text, "Instruction") != 0) {
			highest = level;
			found = i;
		}
	}
	return found;
}

static bool is_first_of_list(int cpu, int index)
{
	char text[1024];
	double first;

	return read_number(&first, text, sysfs_read_file(text, sizeof text, CPU_CACHE "shared_cpu_list", cpu, index)) &&
	       first == cpu;
}

void last_cache_read(struct last_cache *ret)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int index = -1;
	char text[64];

	*ret = (struct last_cache){0};
	for (int cpu = 0; cpu < cpus && cpu < CPUS_MAX; cpu++) {
		double size;

		if (index < 0)
			index = last_index(cpu);
		/* Counted at the first of the CPUs that share it. One that is off line has no such files. */
		if (index < 0 || !is_first_of_list(cpu, index) ||
		    !read_number(&size, text, sysfs_read_file(text, sizeof text, CPU_CACHE "size", cpu, index)))
			continue;
		ret->all += size;
		ret->largest = fmax(ret->largest, size);
	}
}

/* The names of one version of cgroups. */
struct group_files {
	const char *controller; /* in /proc/self/cgroup; "": version 2 */
	const char *mount;	/* below /sys */
	const char *limit, *used, *spare_key;
};

static const struct group_files versions[] = {
	{"", "fs/cgroup", "memory.max", "memory.current", "inactive_file"},
	{"memory", "fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
};

/* The path in "NUMBER:CONTROLLERS:PATH" of the line that is meant, cut at its end; NULL where there is none. */
static char *find_path(char *text, const char *controller)
{
	char *line, *rest = text;

	while ((line = strsep(&rest, "\n"))) {
		char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		if (strcmp(list + 1, controller) == 0)
			return path;
	}
	return NULL;
}

/* What one group leaves; INFINITY where it has no limit or is not to be seen. */
static double group_room(const struct group_files *v, const char *path)
{
	struct scan_key spare = {.name = v->spare_key};
	char text[8192];
	double limit, used;
	ssize_t length;

	if (!read_number(&limit, text, sysfs_read_file(text, sizeof text, "%s%s/%s", v->mount, path, v->limit)) ||
	    !read_number(&used, text, sysfs_read_file(text, sizeof text, "%s%s/%s", v->mount, path, v->used)))
		return INFINITY;
	length = sysfs_read_file(text, sizeof text, "%s%s/memory.stat", v->mount, path);
	if (length > 0 && scan_keys(text, (size_t)length, &spare, 1) == 1)
		used = fmax(0, used - (double)spare.value);
	return fmax(0, limit - used);
}

/* The least on the way up to the mount point, which alone is looked at where the path is one of the outside. */
static double groups_room(const struct group_files *v)
{
	char text[8192], *path;
	ssize_t length = procfs_read_file(text, sizeof text, "self/cgroup");
	double room = INFINITY;

	path = length > 0 ? find_path(text, v->controller) : NULL;
	while (path && *path) {
		char *slash = strrchr(path, '/');

		room = fmin(room, group_room(v, strcmp(path, "/") == 0 ? "" : path));
		if (!slash || slash == path)
			break;
		*slash = '\0';
	}
	return path ? fmin(room, group_room(v, "")) : room;
}

double memory_room_read(void)
{
	struct scan_key available = {.name = "MemAvailable:"};
	char text[8192];
	ssize_t length = procfs_read_file(text, sizeof text, "meminfo");
	double room = INFINITY;

	if (length > 0 && scan_keys(text, (size_t)length, &available, 1) == 1)
		room = 1024.0 * (double)available.value;
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
		room = fmin(room, groups_room(&versions[i]));
	return isfinite(room) ? room : NAN;
}
