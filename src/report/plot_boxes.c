#include "report/plot_boxes.h"

#include <stdlib.h>

#define HELD_MAX 400000u /* boxes, before cells grow while calls still come */
#define CELL_LARGEST ((int64_t)1 << 62)

void boxes_init(struct boxes *b, int64_t cell)
{
	*b = (struct boxes){.cell = cell > 0 ? cell : 1};
}

void boxes_release(struct boxes *b)
{
	for (size_t i = 0; i < b->count; i++)
		free(b->rows[i].boxes);
	free(b->rows);
	boxes_init(b, 1);
}

int boxes_add_row(struct boxes *b, size_t *ret, struct error *err)
{
	if (b->count == b->room) {
		size_t room = b->room ? 2 * b->room : 16;
		struct box_row *rows = reallocarray(b->rows, room, sizeof *rows);

		if (!rows)
			return error_set(err, "out of memory for %zu rows", room);
		b->rows = rows;
		b->room = room;
	}
	b->rows[b->count] = (struct box_row){.cell = -1};
	*ret = b->count++;
	return 0;
}

static int append(struct boxes *b, struct box_row *row, const struct box *box, struct error *err)
{
	if (row->count == row->room) {
		size_t room = row->room ? 2 * row->room : 32;
		struct box *boxes = reallocarray(row->boxes, room, sizeof *boxes);

		if (!boxes)
			return error_set(err, "out of memory for %zu boxes", room);
		row->boxes = boxes;
		row->room = room;
	}
	row->boxes[row->count++] = *box;
	b->total++;
	return 0;
}

/* Puts the region that fills most of the cell in its place; a merged box of the same region just before grows. */
static int flush(struct boxes *b, struct box_row *row, struct error *err)
{
	struct box most = {.busy = -1};
	struct box *last = row->count ? &row->boxes[row->count - 1] : NULL;
	uint64_t calls = 0;

	if (row->cell < 0)
		return 0;
	for (size_t i = 0; i < row->tally_count; i++) {
		calls += row->tally[i].calls + row->tally[i].others;
		if (row->tally[i].busy > most.busy)
			most = row->tally[i];
	}
	most.others = calls - most.calls;
	row->cell = -1;
	row->tally_count = 0;
	if (last && last->region == most.region && last->calls > 1 && most.start - last->end < b->cell) {
		last->end = most.end > last->end ? most.end : last->end;
		last->busy += most.busy;
		last->calls += most.calls;
		last->others += most.others;
		return 0;
	}
	return append(b, row, &most, err);
}

static void tally(struct box_row *row, const struct box *box)
{
	struct box *least = NULL;

	for (size_t i = 0; i < row->tally_count; i++) {
		struct box *t = &row->tally[i];

		if (t->region == box->region) {
			t->end = box->end > t->end ? box->end : t->end;
			t->busy += box->busy;
			t->calls += box->calls;
			t->others += box->others;
			return;
		}
		least = !least || t->busy < least->busy ? t : least;
	}
	if (row->tally_count < BOX_TALLY) {
		row->tally[row->tally_count++] = *box;
	} else {
		uint64_t given_up = least->calls + least->others;

		*least = *box;
		least->others += given_up;
	}
}

static int put(struct boxes *b, struct box_row *row, const struct box *box, struct error *err)
{
	int64_t cell = box->start / b->cell;

	if (row->cell != cell && flush(b, row, err) < 0)
		return -1;
	if (box->end - box->start >= b->cell)
		return flush(b, row, err) < 0 ? -1 : append(b, row, box, err);
	row->cell = cell;
	tally(row, box);
	return 0;
}

/* Cells twice as wide: each row is made anew from its own boxes. */
static int coarsen(struct boxes *b, struct error *err)
{
	b->cell *= 2;
	b->total = 0;
	for (size_t i = 0; i < b->count; i++) {
		struct box_row *row = &b->rows[i], old = *row;
		int got = 0;

		*row = (struct box_row){.cell = -1};
		for (size_t j = 0; got == 0 && j < old.count; j++)
			got = put(b, row, &old.boxes[j], err);
		/* What waited for its cell to end goes on waiting, in the wider one. */
		for (size_t j = 0; got == 0 && j < old.tally_count; j++)
			got = put(b, row, &old.tally[j], err);
		free(old.boxes);
		if (got < 0)
			return -1;
	}
	return 0;
}

int boxes_add(struct boxes *b, size_t row, const struct box *box, struct error *err)
{
	if (put(b, &b->rows[row], box, err) < 0)
		return -1;
	while (b->total > HELD_MAX && b->cell < CELL_LARGEST)
		if (coarsen(b, err) < 0)
			return -1;
	return 0;
}

int boxes_finish(struct boxes *b, size_t most, struct error *err)
{
	for (size_t i = 0; i < b->count; i++)
		if (flush(b, &b->rows[i], err) < 0)
			return -1;
	while (b->total > most && b->total > b->count && b->cell < CELL_LARGEST) {
		if (coarsen(b, err) < 0)
			return -1;
		for (size_t i = 0; i < b->count; i++)
			if (flush(b, &b->rows[i], err) < 0)
				return -1;
	}
	return 0;
}
