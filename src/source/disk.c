/* Whole disks of the machine, from /proc/diskstats: bytes, operations, and for how long they were busy.
 *
 * Partitions, loop devices and RAM disks are left out. Devices made of others (dm, md) are counted too, marked virtual:
 * their bytes are those of the disks below once more. */
#include "source/source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/procfs.h"
#include "source/reading.h"

#define DISKS_MAX 64  /* with series */
#define LINES_MAX 512 /* of /proc/diskstats that are looked at */
#define NAME_MAX_DISK 32
#define BUFFER 65536
#define SECTOR 512.0 /* what the file counts in, whatever the disk's own sector */

enum { READ_BYTES, WRITE_BYTES, READS, WRITES, BUSY, FIGURES };

static const struct {
	const char *name, *unit;
} figures[FIGURES] = {
	[READ_BYTES] = {"read_bytes", "bytes"},
	[WRITE_BYTES] = {"write_bytes", "bytes"},
	[READS] = {"reads", "count"},
	[WRITES] = {"writes", "count"},
	[BUSY] = {"busy", "s"},
};

/* A line of the file, which keeps its place while no device comes or goes. */
struct device {
	char name[NAME_MAX_DISK];
	bool shown;
	int series[FIGURES];
};

struct disk_state {
	int fd;
	struct device *devices; /* LINES_MAX of them */
	size_t count, shown;
	struct pace pace;
	char text[BUFFER];
};

static bool contains_any(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcasestr(text, *words))
			return true;
	return false;
}

/* ssd, hdd or virtual: made up by the kernel or a hypervisor, so that what is behind it is not known. */
static const char *kind_of(const char *name)
{
	static const char *const virtual_paths[] = {"/virtual/", "/virtio", "/vbd", "/vmbus", "/VMBUS", NULL};
	static const char *const virtual_makers[] = {"QEMU", "VMware", "VBOX", "Virtual", "Msft", "Xen", NULL};
	char path[PATH_MAX], target[PATH_MAX], maker[64], model[64], rotational[8];
	ssize_t length;

	if (snprintf(path, sizeof path, "%s/block/%s", sysfs_root(), name) >= (int)sizeof path)
		return "unknown";
	length = readlink(path, target, sizeof target - 1);
	target[length > 0 ? length : 0] = '\0';
	sysfs_read_word(maker, sizeof maker, "block/%s/device/vendor", name);
	sysfs_read_word(model, sizeof model, "block/%s/device/model", name);
	if (contains_any(target, virtual_paths) || contains_any(maker, virtual_makers) ||
	    contains_any(model, virtual_makers))
		return "virtual";
	sysfs_read_word(rotational, sizeof rotational, "block/%s/queue/rotational", name);
	return strcmp(rotational, "1") == 0 ? "hdd" : strcmp(rotational, "0") == 0 ? "ssd" : "unknown";
}

/* Whole disks have a folder of their own in /sys/block. */
static bool is_whole_disk(const char *name, uint64_t major)
{
	char path[PATH_MAX];

	/* 1: RAM disks, 7: loop devices, by the kernel's list of devices. */
	if (major == 1 || major == 7 || *name == '.' ||
	    snprintf(path, sizeof path, "%s/block/%s", sysfs_root(), name) >= (int)sizeof path)
		return false;
	return access(path, F_OK) == 0;
}

static void define_series(struct disk_state *s, struct source_context *c, struct device *d, const char *folder)
{
	char scope[NAME_MAX_DISK + 32], name[NAME_MAX_DISK + 32];

	snprintf(scope, sizeof scope, "disk %s %s", folder, kind_of(folder));
	for (size_t i = 0; i < FIGURES; i++) {
		snprintf(name, sizeof name, "disk.%s.%s", folder, figures[i].name);
		d->series[i] =
			series_define(c, &(struct series_desc){name, figures[i].unit, "disk", scope, SERIES_COUNTER});
	}
	d->shown = true;
	s->shown++;
}

/* Makes `d` the device of that name. A / in it is a ! in its folder's name, and in those of its series. */
static void take_device(struct disk_state *s, struct source_context *c, struct device *d, const char *name,
			uint64_t major)
{
	char folder[NAME_MAX_DISK];

	*d = (struct device){0};
	snprintf(d->name, sizeof d->name, "%s", name);
	snprintf(folder, sizeof folder, "%s", name);
	for (char *slash = folder; (slash = strchr(slash, '/'));)
		*slash = '!';
	if (is_whole_disk(folder, major) && s->shown < DISKS_MAX)
		define_series(s, c, d, folder);
}

static struct device *device_on_line(struct disk_state *s, struct source_context *c, size_t line, const char *name,
				     uint64_t major)
{
	if (line < s->count && strcmp(s->devices[line].name, name) == 0)
		return &s->devices[line];
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->devices[i].name, name) == 0)
			return &s->devices[i];
	if (s->count == LINES_MAX)
		return NULL;
	take_device(s, c, &s->devices[s->count], name, major);
	return &s->devices[s->count++];
}

/* The figures behind the name: reads, merged, sectors, ms; the same of writes; in flight, ms busy. */
static bool scan_figures(const char *at, const char *end, double ret[FIGURES])
{
	uint64_t reads, sectors_read, writes, sectors_written, busy_ms;

	if (!scan_u64(&at, end, &reads) || !scan_words(&at, end, 1) || !scan_u64(&at, end, &sectors_read) ||
	    !scan_words(&at, end, 1) || !scan_u64(&at, end, &writes) || !scan_words(&at, end, 1) ||
	    !scan_u64(&at, end, &sectors_written) || !scan_words(&at, end, 2) || !scan_u64(&at, end, &busy_ms))
		return false;
	ret[READ_BYTES] = SECTOR * (double)sectors_read;
	ret[WRITE_BYTES] = SECTOR * (double)sectors_written;
	ret[READS] = (double)reads;
	ret[WRITES] = (double)writes;
	ret[BUSY] = (double)busy_ms / 1e3;
	return true;
}

static void read_line(struct disk_state *s, struct source_context *c, size_t number, const char *at, const char *end,
		      int64_t now)
{
	char name[NAME_MAX_DISK];
	double values[FIGURES];
	uint64_t major, minor;
	struct device *d;
	const char *word;

	if (!scan_u64(&at, end, &major) || !scan_u64(&at, end, &minor) || !scan_words(&at, end, 1))
		return;
	for (word = at; word[-1] != ' ' && word[-1] != '\t'; word--)
		;
	if ((size_t)(at - word) >= sizeof name)
		return;
	memcpy(name, word, (size_t)(at - word));
	name[at - word] = '\0';
	d = device_on_line(s, c, number, name, major);
	if (!d || !d->shown || !scan_figures(at, end, values))
		return;
	for (size_t i = 0; i < FIGURES; i++)
		timeline_put(c->timeline, d->series[i], now, values[i]);
}

static void disk_slow(void *state, struct source_context *c, int64_t now)
{
	struct disk_state *s = state;
	const char *line_end;
	size_t number = 0;
	ssize_t length;

	if (!pace_due(&s->pace, c, now))
		return;
	length = procfs_read_all(s->fd, s->text, sizeof s->text);
	for (const char *line = s->text; length > 0 && line < s->text + length; line = line_end + 1) {
		line_end = memchr(line, '\n', (size_t)(s->text + length - line));
		if (!line_end)
			break;
		read_line(s, c, number++, line, line_end, now);
	}
	pace_done(&s->pace, now, PACE_FACTOR);
}

static void disk_close(void *state)
{
	struct disk_state *s = state;

	close(s->fd);
	free(s->devices);
	free(s);
}

static int disk_open(struct source_context *c, void **ret_state, struct error *why_not)
{
	int fd = procfs_open("diskstats");
	struct disk_state *s;

	(void)c;
	if (fd < 0)
		return error_set(why_not,
				 "%s/diskstats: %s; it takes a proc file system that is not restricted (subset=pid "
				 "or masked in a container)",
				 procfs_root(), strerror(-fd));
	s = calloc(1, sizeof *s);
	if (s)
		s->devices = calloc(LINES_MAX, sizeof *s->devices);
	if (!s || !s->devices) {
		close(fd);
		free(s);
		return error_set(why_not, "out of memory");
	}
	s->fd = fd;
	*ret_state = s;
	return 0;
}

const struct source source_disk = {
	.name = "disk",
	.summary = "bytes, operations and busy time of each disk of the machine",
	.open = disk_open,
	.slow = disk_slow,
	.close = disk_close,
};
