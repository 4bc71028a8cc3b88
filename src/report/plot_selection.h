/* What a figure is made of: of each file the parts that were asked for, their time span, and one number for each name
 * of a region over all files. */
#ifndef ASSAY_REPORT_PLOT_SELECTION_H
#define ASSAY_REPORT_PLOT_SELECTION_H

#include "report/plot.h"
#include "report/plot_sheet.h"
#include "report/region_order.h"

struct plot_chosen {
	const struct regions *regions; /* of the file, which must outlive this */
	char *label;
	bool *wanted;     /* by part */
	uint32_t *pooled; /* by region of the file: its number over all files */
	struct region_span span;
};

struct plot_selection {
	struct regions pool; /* only its names are used: those of all files */
	struct plot_chosen *files;
	size_t file_count;
};

/* Fills *s, which it initialises and leaves to be released also where it fails. Reads each file once. Fails where no
 * file has a call of what was asked for. */
int plot_selection_make(struct plot_selection *s, const struct plot_input *in, struct error *err);
void plot_selection_release(struct plot_selection *s);

/* Puts 0 .. count - 1 in the order of their figures, the largest first (ret_order has `count`). Returns how many
 * figures are above 0. */
size_t plot_order(const double *figures, size_t count, uint32_t *ret_order);

/* A legend of them, in the order of plot_order; owned. NULL: out of memory. */
struct sheet_legend_item *plot_legend_items(const struct plot_selection *s, const double *figures, size_t *ret_count);

#endif
