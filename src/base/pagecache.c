#include "base/pagecache.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <math.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/procfs.h"

/* What a C library of before the call does not declare. The number is the same everywhere but on Alpha. */
#ifndef SYS_cachestat
#ifdef __alpha__
#define SYS_cachestat 561
#else
#define SYS_cachestat 451
#endif
#endif

#define ZFS_MAGIC 0x2fc12fc1
#define WINDOW (UINT64_C(1) << 30) /* of a file, looked at in one go */
/* A look takes up to 30 ms per GiB, so of larger files only parts are looked at, evenly spread. What is cached of a
 * file lies in long stretches: those that end inside one of 256 strides are what is missed. */
#define SAMPLE_ABOVE (UINT64_C(512) << 20)
#define SAMPLES 256
#define SAMPLE_LENGTH (UINT64_C(2) << 20)

struct cachestat_range {
	uint64_t offset, length; /* length 0: to the end */
};

/* In pages. */
struct cachestat_counts {
	uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

struct opened {
	int fd;
	bool owned; /* the caller owns the file, or may do as if */
};

static void opened_release(struct opened *o)
{
	fd_cleanup(&o->fd);
}

/* Whether a process holds a lease on the file for writing: opening it would break that, and send the holder a signal
 * that ends it where it is not prepared. /proc/locks has a line of each: "1: LEASE ACTIVE WRITE PID MAJOR:MINOR:INODE".
 */
static bool is_leased(const struct stat *st)
{
	char text[16384], inode[32];
	ssize_t length = procfs_read_file(text, sizeof text, "locks");
	const char *line = text, *end = text + (length > 0 ? length : 0), *next;
	int digits = snprintf(inode, sizeof inode, ":%llu ", (unsigned long long)st->st_ino);

	for (; (next = memchr(line, '\n', (size_t)(end - line))); line = next + 1) {
		size_t whole = (size_t)(next - line);

		if (memmem(line, whole, " LEASE ", 7) && memmem(line, whole, inode, (size_t)digits))
			return true;
	}
	return false;
}

/* Looked at before it is opened, since to open a device or a pipe can do something. O_NOATIME is what only an owner may
 * ask for, by the very check that mincore makes. */
static int open_file(const char *path, struct opened *ret, uint64_t *ret_size, struct error *err)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	struct stat st;

	if (stat(path, &st) < 0)
		return error_set(err, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, "%s: it is not a regular file", path);
	if (is_leased(&st))
		return error_set(err, "%s: a process holds a lease on it", path);
	ret->fd = open(path, flags | O_NOATIME);
	ret->owned = ret->fd >= 0;
	if (ret->fd < 0 && errno == EPERM)
		ret->fd = open(path, flags);
	if (ret->fd < 0 || fstat(ret->fd, &st) < 0)
		return error_set(err, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, "%s: it is not a regular file", path);
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

enum cache_kind {
	CACHE_OWN,   /* the kernel's page cache, by this file */
	CACHE_BELOW, /* by the file of another file system, which a mapping leads to */
	CACHE_NONE,  /* none, or one that the kernel does not see all of */
};

static enum cache_kind cache_kind(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return CACHE_NONE;
	switch ((unsigned long)fs.f_type) {
	case OVERLAYFS_SUPER_MAGIC:
		return CACHE_BELOW;
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case FUSE_SUPER_MAGIC: /* may go past the page cache, or have another one in its server */
	case V9FS_MAGIC:
	case ZFS_MAGIC: /* has a cache of its own */
		return CACHE_NONE;
	default:
		return CACHE_OWN;
	}
}

/* Which parts of a file are looked at. */
struct parts {
	uint64_t size;
	uint64_t length, stride;
};

static struct parts parts_of(uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (size <= SAMPLE_ABOVE)
		return (struct parts){size, WINDOW, WINDOW};
	return (struct parts){size, SAMPLE_LENGTH, size / SAMPLES / page * page};
}

static uint64_t length_at(const struct parts *parts, uint64_t from)
{
	return parts->size - from < parts->length ? parts->size - from : parts->length;
}

/* From pages of the parts to bytes of the file. The last page of a file reaches beyond its end. */
static double bytes_of(uint64_t pages, const struct parts *parts)
{
	double looked_at = 0;

	for (uint64_t from = 0; from < parts->size; from += parts->stride)
		looked_at += (double)length_at(parts, from);
	if (!(looked_at > 0))
		return 0;
	return (double)parts->size / looked_at * fmin((double)pages * (double)sysconf(_SC_PAGESIZE), looked_at);
}

static bool ask_cachestat(int fd, const struct parts *parts, struct pagecache *p)
{
	struct cachestat_counts sum = {0}, counts;

	for (uint64_t from = 0; from < parts->size || from == 0; from += parts->stride) {
		struct cachestat_range range = {from, length_at(parts, from)};

		if (syscall(SYS_cachestat, fd, &range, &counts, 0) != 0)
			return false;
		sum.cached += counts.cached;
		sum.evicted += counts.evicted;
		sum.recently_evicted += counts.recently_evicted;
	}
	p->cached = bytes_of(sum.cached, parts);
	p->evicted = bytes_of(sum.evicted, parts);
	p->recently_evicted = bytes_of(sum.recently_evicted, parts);
	p->how = "cachestat";
	return true;
}

/* Pages of one part that are there; false where it cannot be said. */
static bool count_part(int fd, uint64_t from, size_t length, unsigned char *pages, uint64_t *count)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, (off_t)from);
	bool told;

	if (map == MAP_FAILED)
		return false;
	told = mincore(map, length, pages) == 0;
	munmap(map, length);
	for (size_t i = 0; told && i < (length + page - 1) / page; i++)
		*count += pages[i] & 1;
	return told;
}

/* Of a file that the caller neither owns nor may write, the kernel says that all pages are there: no answer. */
static bool mincore_tells(const char *path, const struct opened *o)
{
	return o->owned || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static void ask_mincore(const char *path, const struct opened *o, const struct parts *parts, struct pagecache *p)
{
	CLEANUP(free_cleanup) unsigned char *pages = NULL;
	uint64_t count = 0;

	if (!mincore_tells(path, o))
		return;
	pages = malloc((size_t)(length_at(parts, 0) / (uint64_t)sysconf(_SC_PAGESIZE)) + 1);
	if (!pages)
		return;
	for (uint64_t from = 0; from < parts->size; from += parts->stride)
		if (!count_part(o->fd, from, (size_t)length_at(parts, from), pages, &count))
			return;
	p->cached = bytes_of(count, parts);
	p->how = "mincore";
}

static int look(const char *path, bool with_cachestat, struct pagecache *ret, struct error *err)
{
	CLEANUP(opened_release) struct opened o = {.fd = -1};
	struct pagecache p = {.cached = NAN, .evicted = NAN, .recently_evicted = NAN};
	enum cache_kind kind;
	struct parts parts;

	if (open_file(path, &o, &p.size, err) < 0)
		return -1;
	parts = parts_of(p.size);
	kind = cache_kind(o.fd);
	if (kind != CACHE_NONE && !(with_cachestat && kind == CACHE_OWN && ask_cachestat(o.fd, &parts, &p)))
		ask_mincore(path, &o, &parts, &p);
	*ret = p;
	return 0;
}

int pagecache_look(const char *path, struct pagecache *ret, struct error *err)
{
	return look(path, true, ret, err);
}

int pagecache_look_by_mincore(const char *path, struct pagecache *ret, struct error *err)
{
	return look(path, false, ret, err);
}
