/* Figures of region files: one file in this folder (plot_NAME.c) and one row in plots.def each. A plot first makes its
 * data (what --data writes as CSV or JSON), and draws nothing else. A region has the same colour in every figure. */
#ifndef ASSAY_REPORT_PLOT_H
#define ASSAY_REPORT_PLOT_H

#include <stdio.h>

#include "model/region_query.h"
#include "model/warnings.h"
#include "report/canvas.h"
#include "store/region_file.h"

struct plot_input {
	struct region_file *const *files;
	size_t file_count;
	const char *const *labels; /* of the files */
	const struct region_query *query;
	const char *title;         /* NULL: none */
	double width, height;      /* points; 0: as the plot likes */
	double from, to;           /* seconds from each file's first start; NaN: its start, its end */
	struct warnings *notes;    /* what the reader of the figure must be told is added here by `prepare` */
};

enum plot_data_format { PLOT_DATA_CSV, PLOT_DATA_JSON };

struct plot_kind {
	const char *name, *summary;
	size_t least_files; /* 2 for speedup */
	bool windowed;      /* heeds from and to */
	/* Makes the data; *ret is freed by `release`. Fails also where there is nothing to draw. */
	int (*prepare)(const struct plot_input *in, void **ret, struct error *err);
	/* Fills what of width and height is 0. */
	void (*size)(const void *data, const struct plot_input *in, double *width, double *height);
	int (*draw)(const void *data, const struct plot_input *in, const struct canvas_plugin *on, struct canvas *c,
		    double width, double height, struct error *err);
	int (*write_data)(const void *data, enum plot_data_format format, FILE *out, struct error *err);
	void (*release)(void *data); /* NULL accepted */
};

#define PLOT(name) extern const struct plot_kind plot_##name;
#include "report/plots.def"
#undef PLOT

extern const struct plot_kind *const plots[];
extern const size_t plot_count;

/* NULL: no such kind. */
const struct plot_kind *plot_find(const char *name);

/* By name alone, from a palette that colour-blind people can tell apart, evenly in lightness beyond it. */
struct canvas_colour plot_colour(const char *region);

#endif
