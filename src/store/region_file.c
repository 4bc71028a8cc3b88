/* Opening a file of regions, whatever its format, and reading its calls in pieces of any size. */
#include "store/region_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "store/region_source.h"

#define IN_RUN_DIRECTORY "regions.h5"

static const unsigned char hdf5_magic[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
static const char spt_magic[8] = {'S', 'C', 'O', 'P', 'E', 'P', 'R', 'F'};

/* The rows of a column that were read last: those who ask for few at a time would else inflate a chunk for each. */
struct window_cache {
	uint64_t first, count;
	int64_t *rows;
};

struct region_file {
	struct regions regions;
	struct region_source source;
	pthread_mutex_t lock; /* of what is below */
	struct region_reader *reader;
	struct window_cache cache[REGION_COLUMNS];
};

enum format { FORMAT_OTHER, FORMAT_HDF5, FORMAT_SPT };

/* An HDF5 file may begin with something else: its signature then stands at 512, 1024, 2048, ... */
static enum format format_of(int fd)
{
	char head[8];

	if (pread(fd, head, sizeof head, 0) != sizeof head)
		return FORMAT_OTHER;
	if (memcmp(head, spt_magic, sizeof head) == 0)
		return FORMAT_SPT;
	for (off_t at = 512; memcmp(head, hdf5_magic, sizeof head) != 0; at *= 2)
		if (at > 1 << 20 || pread(fd, head, sizeof head, at) != sizeof head)
			return FORMAT_OTHER;
	return FORMAT_HDF5;
}

/* The file itself, or regions.h5 of a run directory; owned. */
static char *path_of(const char *path)
{
	return fs_is_dir(path) ? fs_join(path, IN_RUN_DIRECTORY) : strdup(path);
}

/* A pipe or a device is no file: opening must not wait for someone to write. */
static int open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

bool region_file_is_one(const char *path)
{
	CLEANUP(free_cleanup) char *real = path_of(path);
	struct stat st;
	/* Who writes to a pipe would find it closed: it is left to whoever reads it. */
	bool regular = real && stat(real, &st) == 0 && S_ISREG(st.st_mode);
	CLEANUP(fd_cleanup) int fd = regular ? open_regular(real) : -1;

	return fd >= 0 && format_of(fd) != FORMAT_OTHER;
}

static int open_hdf5(struct region_file *f, int fd, struct error *err)
{
	struct region_source *s = &f->source;

	if (region_fence_open(f->regions.path, fd, &f->regions, &s->stored, &s->fence, err) < 0)
		return -1;
	s->window = s->stored.window;
	s->fd = fd;
	return 0;
}

static int open_format(struct region_file *f, struct error *err)
{
	CLEANUP(fd_cleanup) int fd = open_regular(f->regions.path);
	enum format format;
	int result;

	if (fd < 0)
		return error_set(err, "%s", errno == EINVAL ? "it is no regular file" : strerror(errno));
	format = format_of(fd);
	if (format == FORMAT_OTHER)
		return error_set(err, "it is neither HDF5 nor .spt, so no file of regions");
	result = format == FORMAT_HDF5 ? open_hdf5(f, fd, err) : region_spt_open(fd, &f->regions, &f->source, err);
	if (result == 0)
		fd = -1;
	return result;
}

int region_file_open(const char *path, struct region_file **ret, struct error *err)
{
	CLEANUP(region_file_cleanup) struct region_file *f = calloc(1, sizeof *f);

	if (!f)
		return error_set(err, "%s: out of memory", path);
	regions_init(&f->regions);
	pthread_mutex_init(&f->lock, NULL);
	region_source_init(&f->source, &f->regions);
	f->regions.path = path_of(path);
	if (!f->regions.path)
		return error_set(err, "%s: out of memory", path);
	if (fs_is_dir(path) && !fs_exists(f->regions.path))
		return error_set(err,
				 "%.250s: no regions are here (no " IN_RUN_DIRECTORY "): its program marked none, they "
				 "were not recorded, or `assay merge` is yet to put them together",
				 path);
	if (open_format(f, err) < 0)
		return error_prefix(err, "%.250s", f->regions.path);
	*ret = f;
	f = NULL;
	return 0;
}

void region_file_free(struct region_file *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < REGION_COLUMNS; i++)
		free(f->cache[i].rows);
	region_source_reader_free(f->reader);
	region_source_release(&f->source);
	regions_release(&f->regions);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void region_file_cleanup(struct region_file **f)
{
	region_file_free(*f);
}

const struct regions *region_file_regions(const struct region_file *f)
{
	return &f->regions;
}

/* Fills the cache with the window that a row is in. */
static int fill_cache(struct region_file *f, enum region_column column, uint64_t row, struct error *err)
{
	struct window_cache *cache = &f->cache[column];
	uint64_t window = f->source.window, first = row - row % window, left = f->regions.call_count - first;

	if (cache->count && cache->first == first)
		return 0;
	if (!cache->rows)
		cache->rows = malloc(window * sizeof *cache->rows);
	if (!cache->rows)
		return error_set(err, "out of memory for %" PRIu64 " calls", window);
	cache->first = first;
	cache->count = 0;
	left = left < window ? left : window;
	if (region_source_read(f->reader, column, first, left, cache->rows, err) < 0)
		return -1;
	cache->count = left;
	return 0;
}

static int read_rows(struct region_file *f, enum region_column column, uint64_t first, uint64_t count, int64_t *out,
		     struct error *err)
{
	if (!f->reader && region_source_reader(&f->source, &f->reader, err) < 0)
		return -1;
	if (count >= f->source.window)
		return region_source_read(f->reader, column, first, count, out, err);
	while (count) {
		const struct window_cache *cache = &f->cache[column];
		uint64_t skip, step;

		if (fill_cache(f, column, first, err) < 0)
			return -1;
		skip = first - cache->first;
		step = cache->count - skip < count ? cache->count - skip : count;
		memcpy(out, cache->rows + skip, step * sizeof *out);
		first += step;
		count -= step;
		out += step;
	}
	return 0;
}

int region_file_read(struct region_file *f, enum region_column column, uint64_t first, uint64_t count, int64_t *out,
		     struct error *err)
{
	int result;

	if (first > f->regions.call_count || count > f->regions.call_count - first)
		return error_set(err, "%.250s: calls %" PRIu64 " to %" PRIu64 " are not in it", f->regions.path, first,
				 first + count);
	pthread_mutex_lock(&f->lock);
	result = read_rows(f, column, first, count, out, err);
	pthread_mutex_unlock(&f->lock);
	return result < 0 ? error_prefix(err, "%.250s", f->regions.path) : 0;
}

int region_file_scan(struct region_file *f, const struct region_scan *scan, struct error *err)
{
	return region_source_scan(&f->source, scan, err) < 0 ? error_prefix(err, "%.250s", f->regions.path) : 0;
}
