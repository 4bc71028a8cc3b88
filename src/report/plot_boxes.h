/* Rows of boxes along time in which nothing is narrower than a cell: calls that are, are merged into what fills it.
 *
 * Knows no drawing and no files. Times are ns from the left edge of the figure, 0 or more; boxes come to a row in the
 * order of their starts. When there are too many, cells grow. */
#ifndef ASSAY_REPORT_PLOT_BOXES_H
#define ASSAY_REPORT_PLOT_BOXES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define BOX_TALLY 8 /* regions told apart within one cell; of more the least is given up */

struct box {
	int64_t start, end;
	int64_t busy;    /* ns that its region's calls took, at most end - start */
	uint64_t calls;  /* of its region; 1: one call as it was */
	uint64_t others; /* calls of other regions that it hides */
	uint32_t region;
};

struct box_row {
	struct box *boxes;
	size_t count, room;
	int64_t cell; /* the one that is being filled, -1 none */
	struct box tally[BOX_TALLY];
	size_t tally_count;
};

struct boxes {
	struct box_row *rows;
	size_t count, room;
	size_t total; /* boxes of all rows */
	int64_t cell; /* its width in ns */
};

void boxes_init(struct boxes *b, int64_t cell);
void boxes_release(struct boxes *b);

/* A new row; its index is *ret. */
int boxes_add_row(struct boxes *b, size_t *ret, struct error *err);

int boxes_add(struct boxes *b, size_t row, const struct box *box, struct error *err);

/* After the last box, and before they are read. Leaves at most `most` boxes, or one per row and cell of the whole
 * figure. */
int boxes_finish(struct boxes *b, size_t most, struct error *err);

#endif
