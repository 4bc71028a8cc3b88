#include "base/touch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/procfs.h"

/* What the walk takes of the caller's CPU; on a busy machine the wall clock would count the waiting too. */
static int64_t cpu_ns(void)
{
	struct timespec used;

	return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) < 0 ? 0
								 : (int64_t)used.tv_sec * NS_PER_S + used.tv_nsec;
}

static int open_to_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

static int fail(struct error *err, int pid, const char *name, int code)
{
	/* A process that has just ended has its folder still, but no memory. */
	if (code == -ENOENT)
		code = -ESRCH;
	error_set(err, "%s/%d/%s: %s", procfs_root(), pid, name,
		  code == -ESRCH ? "the process has ended" : strerror(-code));
	return code;
}

int touch_clear(int pid, struct touch *t, struct error *err)
{
	char path[PATH_MAX];
	CLEANUP(fd_cleanup) int fd = -1;
	int64_t began, used;

	if (snprintf(path, sizeof path, "%s/%d/clear_refs", procfs_root(), pid) >= (int)sizeof path)
		return fail(err, pid, "clear_refs", -ENAMETOOLONG);
	fd = open_to_write(path);
	if (fd < 0)
		return fail(err, pid, "clear_refs", fd);
	began = clock_mono_ns();
	used = cpu_ns();
	if (write(fd, "1", 1) < 0) /* of pages of all kinds */
		return fail(err, pid, "clear_refs", -errno);
	*t = (struct touch){.cleared_at = began + (clock_mono_ns() - began) / 2, .cost_ns = cpu_ns() - used};
	return 0;
}

int touch_read(int pid, struct touch *t, struct error *err)
{
	CLEANUP(fd_cleanup) int fd = procfs_open("%d/smaps_rollup", pid);
	/* The huge ones may be missing: old kernels, and kernels without them. */
	struct scan_key keys[] = {{.name = "Rss:"},
				  {.name = "Referenced:"},
				  {.name = "AnonHugePages:"},
				  {.name = "ShmemPmdMapped:"},
				  {.name = "FilePmdMapped:"}};
	char text[4096];
	int64_t began = clock_mono_ns(), used = cpu_ns();
	ssize_t length;

	if (fd < 0)
		return fail(err, pid, "smaps_rollup", fd);
	length = procfs_read_record(fd, text, sizeof text);
	if (length <= 0)
		return fail(err, pid, "smaps_rollup", length < 0 ? (int)length : -ESRCH);
	scan_keys(text, (size_t)length, keys, sizeof keys / sizeof *keys);
	if (!keys[0].found || !keys[1].found) {
		error_set(err, "%s/%d/smaps_rollup does not tell Rss and Referenced, as it does on Linux",
			  procfs_root(), pid);
		return -EPROTO;
	}
	t->seen_at = began + (clock_mono_ns() - began) / 2;
	t->cost_ns += cpu_ns() - used;
	t->resident = 1024.0 * (double)keys[0].value;
	t->touched = 1024.0 * (double)keys[1].value;
	t->huge = 0;
	for (size_t i = 2; i < sizeof keys / sizeof *keys; i++)
		t->huge += keys[i].found ? 1024.0 * (double)keys[i].value : 0;
	return 0;
}
