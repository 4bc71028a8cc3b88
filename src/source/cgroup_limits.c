#include "source/cgroup_limits.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/procfs.h"

#define NO_LIMIT ((uint64_t)1 << 60) /* version 1 writes a number past all memory */

/* The text of a small file, "" where it cannot be read. */
static size_t read_small(const struct cgroup_folder *folder, const char *name, char *text, size_t size)
{
	int fd = cgroup_open_in(folder, name);
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

/* Calls `read` for the folder and those above it down to the mount point. */
static struct cgroup_limit smallest_upwards(const struct cgroup_folder *folder,
					    double (*read)(const struct cgroup_folder *folder))
{
	struct cgroup_folder at = *folder;
	struct cgroup_limit smallest = {NAN, strlen(at.path)};

	while (at.path[0]) {
		double value = read(&at);
		char *slash = strrchr(at.path, '/');

		if (!isnan(value) && !(value >= smallest.value))
			smallest = (struct cgroup_limit){value, strlen(at.path)};
		if (!slash || (size_t)(slash - at.path) < at.top)
			break;
		*slash = '\0';
	}
	return smallest;
}

struct cgroup_limit cgroup_memory_limit(const struct cgroup_folder *folder, bool version_1)
{
	return smallest_upwards(folder, version_1 ? limit_v1 : limit_v2);
}

struct cgroup_limit cgroup_cpu_quota(const struct cgroup_folder *folder, bool version_1)
{
	return smallest_upwards(folder, version_1 ? quota_v1 : quota_v2);
}
