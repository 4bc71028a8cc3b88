#include "store/region_scatter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MEMORY_ROWS (UINT64_C(2) << 20) /* 64 MiB */
#define ARENA_ROWS ((size_t)2 << 20)    /* of all lanes together, where there are more rows than fit in memory */
#define LANE_ROWS_MAX ((size_t)16 << 10)
#define LANE_ROWS_MIN ((size_t)32)

struct lane {
	uint64_t place; /* of its first row in the buffer; the others follow */
	uint32_t used;
};

struct region_scatter {
	char *path; /* of the result, for errors */
	char *template; /* of the unlinked file */
	int fd;      /* -1: not made yet */
	uint64_t rows;
	struct scatter_row *memory; /* the rows themselves where there are few; else the lanes' buffers */
	size_t memory_rows;
	struct lane *lanes;
	size_t lane_count, lane_rows;
};

int region_scatter_new(const char *path, struct region_scatter **ret, struct error *err)
{
	struct region_scatter *s = calloc(1, sizeof *s);

	if (!s)
		return error_set(err, "%s: out of memory", path);
	s->fd = -1;
	s->path = strdup(path);
	if (!s->path || asprintf(&s->template, "%s.XXXXXX", path) < 0) {
		s->template = NULL;
		region_scatter_free(s);
		return error_set(err, "%s: out of memory", path);
	}
	*ret = s;
	return 0;
}

void region_scatter_free(struct region_scatter *s)
{
	if (!s)
		return;
	fd_cleanup(&s->fd);
	free(s->path);
	free(s->template);
	free(s->memory);
	free(s->lanes);
	free(s);
}

void region_scatter_cleanup(struct region_scatter **s)
{
	region_scatter_free(*s);
}

static int make_file(struct region_scatter *s, struct error *err)
{
	if (s->fd >= 0)
		return 0;
	s->fd = mkostemp(s->template, O_CLOEXEC);
	if (s->fd < 0)
		return error_set(err, "%s: no file for intermediate results can be made beside it: %s", s->path,
				 strerror(errno));
	unlink(s->template);
	return 0;
}

static int room_for(struct region_scatter *s, size_t rows, struct error *err)
{
	struct scatter_row *memory;

	if (rows <= s->memory_rows)
		return 0;
	memory = reallocarray(s->memory, rows, sizeof *memory);
	if (!memory)
		return error_set(err, "out of memory for %zu calls", rows);
	s->memory = memory;
	s->memory_rows = rows;
	return 0;
}

int region_scatter_begin(struct region_scatter *s, uint64_t rows, struct error *err)
{
	s->rows = rows;
	s->lane_count = 0;
	if (rows <= MEMORY_ROWS)
		return room_for(s, (size_t)rows, err);
	return make_file(s, err);
}

int region_scatter_lanes(struct region_scatter *s, size_t lanes, struct error *err)
{
	struct lane *made = reallocarray(s->lanes, lanes ? lanes : 1, sizeof *made);

	if (!made)
		return error_set(err, "out of memory for %zu regions", lanes);
	memset(made, 0, lanes * sizeof *made);
	s->lanes = made;
	s->lane_count = lanes;
	if (s->rows <= MEMORY_ROWS || lanes == 0)
		return 0;
	s->lane_rows = ARENA_ROWS / lanes;
	if (s->lane_rows > LANE_ROWS_MAX)
		s->lane_rows = LANE_ROWS_MAX;
	if (s->lane_rows < LANE_ROWS_MIN)
		s->lane_rows = LANE_ROWS_MIN;
	return room_for(s, s->lane_rows * lanes, err);
}

static int write_lane(struct region_scatter *s, size_t number, struct error *err)
{
	struct lane *lane = &s->lanes[number];
	const char *from = (const char *)(s->memory + (number + 1) * s->lane_rows - lane->used);
	size_t length = lane->used * sizeof(struct scatter_row), done = 0;
	uint64_t offset = lane->place * sizeof(struct scatter_row);

	while (done < length) {
		ssize_t got = pwrite(s->fd, from + done, length - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set(err, "%s: intermediate results cannot be written beside it: %s", s->path,
					 strerror(errno));
		done += (size_t)got;
	}
	lane->used = 0;
	return 0;
}

int region_scatter_put(struct region_scatter *s, size_t lane, uint64_t place, const struct scatter_row *row,
		       struct error *err)
{
	struct lane *l = &s->lanes[lane];

	if (s->rows <= MEMORY_ROWS) {
		s->memory[place] = *row;
		return 0;
	}
	l->used++;
	l->place = place;
	s->memory[(lane + 1) * s->lane_rows - l->used] = *row;
	return l->used == s->lane_rows ? write_lane(s, lane, err) : 0;
}

int region_scatter_flush(struct region_scatter *s, struct error *err)
{
	if (s->rows <= MEMORY_ROWS)
		return 0;
	for (size_t i = 0; i < s->lane_count; i++)
		if (s->lanes[i].used && write_lane(s, i, err) < 0)
			return -1;
	return 0;
}

int region_scatter_read(struct region_scatter *s, uint64_t first, size_t n, struct scatter_row *out, struct error *err)
{
	size_t length = n * sizeof *out, done = 0;

	if (s->rows <= MEMORY_ROWS) {
		memcpy(out, s->memory + first, length);
		return 0;
	}
	while (done < length) {
		ssize_t got = pread(s->fd, (char *)out + done, length - done, (off_t)(first * sizeof *out + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return error_set(err, "%s: intermediate results cannot be read again: %s", s->path,
					 got < 0 ? strerror(errno) : "they are shorter than what was written");
		done += (size_t)got;
	}
	return 0;
}
