/* A sheet to draw figures on: SVG, PDF or PNG through cairo, which is loaded on first use (plug-in assay-cairo.so,
 * built from canvas_cairo.c). Lengths are points (1/72 inch) from the upper left corner; PNG has two pixels to a
 * point. Texts are valid UTF-8. */
#ifndef ASSAY_REPORT_CANVAS_H
#define ASSAY_REPORT_CANVAS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum canvas_format { CANVAS_SVG, CANVAS_PDF, CANVAS_PNG };
enum canvas_anchor { CANVAS_LEFT, CANVAS_MIDDLE, CANVAS_RIGHT };

struct canvas_colour {
	uint8_t r, g, b, a;
};

struct canvas; /* of the plug-in */

#define CANVAS_PLUGIN_FILE "assay-cairo.so"
#define CANVAS_PLUGIN_SYMBOL "assay_canvas_plugin"
#define CANVAS_PLUGIN_VERSION 1

struct canvas_plugin {
	unsigned version;
	int (*start)(char *text, size_t size, struct error *err); /* *text: which library */
	/* A sheet whose bytes go to `out`, which stays the caller's and is not flushed. */
	int (*open)(FILE *out, enum canvas_format format, double width, double height, struct canvas **ret,
		    struct error *err);
	void (*rect)(struct canvas *c, double x, double y, double width, double height, struct canvas_colour fill);
	void (*line)(struct canvas *c, double x1, double y1, double x2, double y2, double width,
		     struct canvas_colour colour);
	/* n points, joined; closed and filled where fill.a is not 0, no line where width is 0. */
	void (*path)(struct canvas *c, const double *xy, size_t n, double width, struct canvas_colour stroke,
		     struct canvas_colour fill);
	/* y is the baseline; angle in degrees, counterclockwise. */
	void (*text)(struct canvas *c, double x, double y, double size, enum canvas_anchor anchor, double angle,
		     struct canvas_colour colour, const char *text);
	double (*text_width)(struct canvas *c, double size, const char *text);
	int (*finish)(struct canvas *c, struct error *err); /* writes the rest, frees *c, also when it fails */
	void (*abandon)(struct canvas *c);                  /* NULL accepted */
};

/* The plug-in, loaded; NULL with *err. */
const struct canvas_plugin *canvas_load(char *version, size_t size, struct error *err);

#endif
