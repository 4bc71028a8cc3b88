/* The native format of the Python package, .spt version 2: one rank, and of each region its name, place and calls. Only
 * where each part lies is kept; calls are read when they are asked for. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "store/region_parts.h"
#include "store/region_source.h"

#define SPT_VERSION 2
#define SPT_HEADER 8 /* bytes of the magic before it */
#define SPT_TEXT_MAX 65536
#define SPT_WINDOW 65536u
#define SPT_REGION_BYTES 20u /* of a region with empty texts and no calls */

struct cursor {
	int fd;
	uint64_t at, end;
};

static int take(struct cursor *c, void *out, size_t length, struct error *err)
{
	if (length > c->end - c->at || pread(c->fd, out, length, (off_t)c->at) != (ssize_t)length)
		return error_set(err, "it ends at byte %" PRIu64 ", in the middle of a region", c->end);
	c->at += length;
	return 0;
}

/* A text as valid UTF-8 up to its first zero. */
static int take_text(struct cursor *c, const char *what, struct buf *ret, struct error *err)
{
	CLEANUP(free_cleanup) char *bytes = NULL;
	int32_t length;

	if (take(c, &length, sizeof length, err) < 0)
		return -1;
	if (length < 0 || length > SPT_TEXT_MAX)
		return error_set(err, "a %s of %" PRId32 " bytes at byte %" PRIu64, what, length, c->at);
	bytes = calloc(1, (size_t)length + 1);
	if (!bytes)
		return error_set(err, "out of memory");
	if (take(c, bytes, (size_t)length, err) < 0)
		return -1;
	buf_clear(ret);
	utf8_append_clean(ret, bytes, strlen(bytes));
	buf_puts(ret, "");
	return ret->failed ? error_set(err, "out of memory") : 0;
}

static int take_region(struct cursor *c, uint32_t rank, struct regions *r, uint64_t *ret_offset, struct error *err)
{
	CLEANUP(buf_release) struct buf name, file;
	struct region_part *part;
	int64_t region, count;
	int32_t line;

	buf_init(&name), buf_init(&file);
	if (take_text(c, "name", &name, err) < 0 || take_text(c, "file name", &file, err) < 0 ||
	    take(c, &line, sizeof line, err) < 0 || take(c, &count, sizeof count, err) < 0)
		return -1;
	if (count < 0 || (uint64_t)count > (c->end - c->at) / 16)
		return error_set(err, "the region %.200s says that it has %" PRId64 " calls, and the file ends",
				 name.text, count);
	region = regions_name(r, name.text, err);
	part = region < 0 ? NULL : regions_add_part(r, rank, (uint32_t)region, err);
	if (!part || region_text(&part->file, file.text, err) < 0)
		return -1;
	part->first = r->call_count;
	part->count = part->calls = (uint64_t)count;
	part->line = line > 0 ? line : REGIONS_UNKNOWN;
	r->call_count += (uint64_t)count;
	*ret_offset = c->at;
	c->at += (uint64_t)count * 16;
	return 0;
}

int region_spt_open(int fd, struct regions *r, struct region_source *ret, struct error *err)
{
	CLEANUP(free_cleanup) uint64_t *offsets = NULL;
	struct cursor c = {.fd = fd, .at = SPT_HEADER};
	int32_t version, rank;
	int64_t count;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set(err, "%s", strerror(errno));
	c.end = (uint64_t)st.st_size;
	if (take(&c, &version, sizeof version, err) < 0)
		return -1;
	if (version != SPT_VERSION)
		return error_set(err, "it is .spt version %" PRId32 ", and this program knows version %d", version,
				 SPT_VERSION);
	if (take(&c, &rank, sizeof rank, err) < 0 || take(&c, &count, sizeof count, err) < 0)
		return -1;
	if (rank < 0 || count < 0 || (uint64_t)count > (c.end - c.at) / SPT_REGION_BYTES)
		return error_set(err, "it says that it has %" PRId64 " regions of rank %" PRId32 " in %" PRIu64
				      " bytes", count, rank, c.end);
	offsets = calloc((size_t)count + 1, sizeof *offsets);
	if (!offsets)
		return error_set(err, "out of memory for %" PRId64 " regions", count);
	r->layout = 0;
	r->columns = 1u << REGION_START | 1u << REGION_END;
	if (regions_add_rank(r, (uint32_t)rank, err) < 0)
		return -1;
	for (int64_t i = 0; i < count; i++)
		if (take_region(&c, (uint32_t)rank, r, &offsets[i], err) < 0)
			return -1;
	ret->fd = fd;
	ret->offsets = offsets;
	ret->window = SPT_WINDOW;
	offsets = NULL;
	return 0;
}

int region_spt_read(const struct region_source *s, enum region_column column, uint64_t first, uint64_t count,
		    int64_t *out, struct error *err)
{
	const struct regions *r = s->regions;

	for (size_t i = region_part_at(r, first); count; i++) {
		const struct region_part *part = &r->parts[i];
		uint64_t left = part->first + part->count - first, step = left < count ? left : count;
		uint64_t row = first - part->first + (column == REGION_END ? part->count : 0);

		for (uint64_t done = 0, bytes = step * sizeof *out; done < bytes;) {
			ssize_t got = pread(s->fd, (char *)out + done, bytes - done,
					    (off_t)(s->offsets[i] + row * sizeof *out + done));

			if (got <= 0)
				return error_set(err, "its calls cannot be read: %s",
						 got < 0 ? strerror(errno) : "it was cut");
			done += (uint64_t)got;
		}
		first += step;
		count -= step;
		out += step;
	}
	return 0;
}
