/* What figures share: frame, axes with ticks, legends, texts that fit. Knows no regions.
 *
 * Lengths are points. Names come from files: they are made valid and put on one line before they are drawn. */
#ifndef ASSAY_REPORT_PLOT_SHEET_H
#define ASSAY_REPORT_PLOT_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/canvas.h"

#define SHEET_TITLE 9.5
#define SHEET_TEXT 8.0
#define SHEET_SMALL 7.0
#define SHEET_MARGIN 6.0
#define SHEET_WIDTH (7 * 72.0) /* of a figure unless asked otherwise */
#define SHEET_HEIGHT (4 * 72.0)
#define SHEET_TALLEST (10 * 72.0)
#define SHEET_TITLE_HEIGHT (SHEET_TITLE + 6) /* what a title takes from a figure */
#define SHEET_NOTE_HEIGHT (SHEET_SMALL + 4)
#define SHEET_TICKS_MAX 24

struct sheet {
	const struct canvas_plugin *on;
	struct canvas *c;
	double width, height;
};

struct sheet_area {
	double x, y, width, height;
};

struct sheet_ticks {
	double at[SHEET_TICKS_MAX];
	char label[SHEET_TICKS_MAX][24];
	size_t n;
};

/* A unit of time for figures of about this size. */
struct sheet_unit {
	const char *name; /* "ns", "µs", "ms", "s", "min", "h" */
	double ns;
};

extern const struct canvas_colour sheet_black, sheet_grey, sheet_pale;

struct sheet_unit sheet_unit(double ns);

/* At 1, 2 or 5 times a power of ten, at most `most` of them within [low, high] (in units). */
void sheet_ticks_linear(struct sheet_ticks *t, double low, double high, size_t most);

/* Times on a logarithmic axis: powers of ten of ns within [low, high], labelled with their units. */
void sheet_ticks_decades(struct sheet_ticks *t, double low, double high);

/* Black or white, whatever is read better on it. */
struct canvas_colour sheet_contrast(struct canvas_colour ground);

/* Shortened with an ellipsis to `room`; nothing where too little would be left. */
void sheet_text(const struct sheet *s, double x, double y, double size, enum canvas_anchor anchor,
		struct canvas_colour colour, double room, const char *text);

/* The width of a text as sheet_text would draw it in unlimited room. */
double sheet_text_width(const struct sheet *s, double size, const char *text);

/* About that, a little more rather than less, where nothing can be drawn yet. */
double sheet_text_about(double size, const char *text);

/* Draws the title (NULL: none) and `note` at the foot (may be NULL), and returns what is left in between. */
struct sheet_area sheet_begin(const struct sheet *s, const char *title, const char *note);

/* A horizontal axis along y, with grid lines up to `top` where grid is set; `from` and `to` are the axis' ends in the
 * units of the ticks. A label that would touch the one before it is left out. Takes SHEET_AXIS_HEIGHT below y. */
#define SHEET_AXIS_HEIGHT 26.0
struct sheet_axis {
	double x, width, from, to;
	bool logarithmic;
};
double sheet_axis_at(const struct sheet_axis *a, double value);
void sheet_axis_bottom(const struct sheet *s, const struct sheet_axis *a, const struct sheet_ticks *t, double y,
		       double top, const char *title);

/* Marks that differ where colours may be alike. */
#define SHEET_MARKS 5
void sheet_mark(const struct sheet *s, double x, double y, double half, size_t mark, struct canvas_colour colour);

/* Names with their colours, in rows that fill `width`; at most `rows` of them, the rest as "and N more". Draws nothing
 * where on is false; returns the height. */
struct sheet_legend_item {
	const char *text;
	struct canvas_colour colour;
	size_t mark; /* 0: a square */
};
#define SHEET_LEGEND_ROW 11.0
double sheet_legend(const struct sheet *s, double x, double y, double width, size_t rows,
		    const struct sheet_legend_item *items, size_t n, bool on);

/* The height that it will take, or a little more, where nothing can be measured yet. */
double sheet_legend_about(double width, size_t rows, const struct sheet_legend_item *items, size_t n);

#endif
