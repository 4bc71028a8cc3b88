#include "report/memory_course.h"

#include <assert.h>
#include <stdlib.h>

void course_init(struct course *c)
{
	*c = (struct course){0};
}

void course_release(struct course *c)
{
	free(c->cells);
	course_init(c);
}

static struct course_cell *cell_at(const struct course *c, size_t cell, size_t series)
{
	return &c->cells[cell * c->series + series];
}

static void clear(struct course *c, size_t from)
{
	for (size_t i = from * c->series; i < COURSE_CELLS * c->series; i++)
		c->cells[i] = (struct course_cell){.low = -1, .high = -1};
}

int course_open(struct course *c, size_t series, int64_t width, struct error *err)
{
	assert(series > 0 && width > 0);
	c->cells = reallocarray(NULL, COURSE_CELLS * series, sizeof *c->cells);
	if (!c->cells)
		return error_set(err, "out of memory for a figure of %zu values", series);
	c->series = series;
	c->width = width;
	c->used = 0;
	clear(c, 0);
	return 0;
}

static void join(struct course_cell *to, const struct course_cell *from)
{
	if (from->low < 0)
		return;
	if (to->low < 0 || from->low < to->low) {
		to->low = from->low;
		to->low_at = from->low_at;
	}
	if (from->high > to->high) {
		to->high = from->high;
		to->high_at = from->high_at;
	}
}

static void halve(struct course *c)
{
	for (size_t i = 0; i < COURSE_CELLS / 2; i++) {
		for (size_t k = 0; k < c->series; k++) {
			struct course_cell joined = *cell_at(c, 2 * i, k);

			join(&joined, cell_at(c, 2 * i + 1, k));
			*cell_at(c, i, k) = joined;
		}
	}
	clear(c, COURSE_CELLS / 2);
	c->used = (c->used + 1) / 2;
	c->width *= 2;
}

void course_add(struct course *c, int64_t t, const int64_t *values)
{
	size_t cell;

	if (!c->used)
		c->begin = t;
	t = t < c->begin ? c->begin : t;
	while ((t - c->begin) / c->width >= COURSE_CELLS)
		halve(c);
	cell = (size_t)((t - c->begin) / c->width);
	for (size_t k = 0; k < c->series; k++) {
		struct course_cell one = {values[k], values[k], t, t};

		join(cell_at(c, cell, k), &one);
	}
	c->used = cell + 1 > c->used ? cell + 1 : c->used;
	c->last = t > c->last ? t : c->last;
}

const struct course_cell *course_cell(const struct course *c, size_t cell, size_t series)
{
	return cell_at(c, cell, series);
}

int64_t course_largest(const struct course *c, size_t series)
{
	int64_t largest = -1;

	for (size_t i = 0; i < c->used; i++)
		if (cell_at(c, i, series)->high > largest)
			largest = cell_at(c, i, series)->high;
	return largest;
}
