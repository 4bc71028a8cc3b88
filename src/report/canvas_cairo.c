/* The plug-in assay-cairo.so: a canvas drawn by cairo. The only file that knows cairo; it knows nothing of figures.
 *
 * Coordinates are rounded to 1/100 point, which no eye sees and which keeps SVG small. A failure anywhere turns the
 * surface into one that ignores everything (cairo's way), and is told by `finish`. */
#include "report/canvas.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PNG_SCALE 2
#define RADIANS (3.14159265358979323846 / 180)

struct canvas {
	cairo_surface_t *surface;
	cairo_t *cr;
	FILE *out;
	enum canvas_format format;
	bool failed; /* no memory for a text */
};

static cairo_status_t put(void *closure, const unsigned char *bytes, unsigned length)
{
	return fwrite(bytes, 1, length, closure) == length ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static int start(char *text, size_t size, struct error *err)
{
	if (cairo_version() < CAIRO_VERSION_ENCODE(1, 14, 0))
		return error_set(err, "cairo %s is too old: 1.14 is needed", cairo_version_string());
	snprintf(text, size, "cairo %s", cairo_version_string());
	return 0;
}

static void release(struct canvas *c)
{
	cairo_destroy(c->cr);
	cairo_surface_destroy(c->surface);
	free(c);
}

static cairo_surface_t *new_surface(FILE *out, enum canvas_format format, double width, double height)
{
	switch (format) {
	case CANVAS_SVG:
		return cairo_svg_surface_create_for_stream(put, out, width, height);
	case CANVAS_PDF:
		return cairo_pdf_surface_create_for_stream(put, out, width, height);
	case CANVAS_PNG:
		break;
	}
	return cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(width * PNG_SCALE),
					  (int)ceil(height * PNG_SCALE));
}

static int open_canvas(FILE *out, enum canvas_format format, double width, double height, struct canvas **ret,
		       struct error *err)
{
	struct canvas *c = calloc(1, sizeof *c);
	cairo_status_t status;

	if (!c)
		return error_set(err, "out of memory for a figure");
	c->out = out;
	c->format = format;
	c->surface = new_surface(out, format, width, height);
	c->cr = cairo_create(c->surface);
	status = cairo_status(c->cr);
	if (status != CAIRO_STATUS_SUCCESS) {
		release(c);
		return error_set(err, "cairo makes no sheet of %g by %g points: %s", width, height,
				 cairo_status_to_string(status));
	}
	if (format == CANVAS_PNG)
		cairo_scale(c->cr, PNG_SCALE, PNG_SCALE);
	cairo_set_source_rgb(c->cr, 1, 1, 1);
	cairo_paint(c->cr);
	cairo_select_font_face(c->cr, "sans", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
	*ret = c;
	return 0;
}

static double rounded(double length)
{
	return round(length * 100) / 100;
}

static void set_colour(struct canvas *c, struct canvas_colour colour)
{
	cairo_set_source_rgba(c->cr, colour.r / 255.0, colour.g / 255.0, colour.b / 255.0, colour.a / 255.0);
}

static void rect(struct canvas *c, double x, double y, double width, double height, struct canvas_colour fill)
{
	set_colour(c, fill);
	cairo_rectangle(c->cr, rounded(x), rounded(y), rounded(width), rounded(height));
	cairo_fill(c->cr);
}

static void path(struct canvas *c, const double *xy, size_t n, double width, struct canvas_colour stroke,
		 struct canvas_colour fill)
{
	for (size_t i = 0; i < n; i++)
		cairo_line_to(c->cr, rounded(xy[2 * i]), rounded(xy[2 * i + 1]));
	if (fill.a) {
		cairo_close_path(c->cr);
		set_colour(c, fill);
		cairo_fill_preserve(c->cr);
	}
	if (width > 0) {
		set_colour(c, stroke);
		cairo_set_line_width(c->cr, width);
		cairo_stroke_preserve(c->cr);
	}
	cairo_new_path(c->cr);
}

static void line(struct canvas *c, double x1, double y1, double x2, double y2, double width,
		 struct canvas_colour colour)
{
	path(c, (const double[]){x1, y1, x2, y2}, 2, width, colour, (struct canvas_colour){0});
}

/* How long the noncharacter at s is (U+FDD0 to FDEF, and all that end in FFFE or FFFF); 0: it is none. */
static size_t noncharacter(const unsigned char *s)
{
	if (s[0] == 0xef && ((s[1] == 0xb7 && s[2] >= 0x90 && s[2] <= 0xaf) || (s[1] == 0xbf && s[2] >= 0xbe)))
		return 3;
	return s[0] >= 0xf0 && (s[1] & 0x0f) == 0x0f && s[2] == 0xbf && s[3] >= 0xbe ? 4 : 0;
}

/* To cairo these are invalid text, after which it would draw nothing any more. NULL when out of memory. */
static char *drawable(const char *text)
{
	char *copy = strdup(text), *to = copy;

	for (const char *from = copy; from && *from;) {
		size_t length = noncharacter((const unsigned char *)from);

		*to++ = length ? '?' : *from;
		from += length ? length : 1;
	}
	if (copy)
		*to = '\0';
	return copy;
}

static double width_of(struct canvas *c, double size, const char *text)
{
	cairo_text_extents_t e;

	cairo_set_font_size(c->cr, size);
	cairo_text_extents(c->cr, text, &e);
	return e.x_advance;
}

static double text_width(struct canvas *c, double size, const char *text)
{
	char *shown = drawable(text);
	double width = shown ? width_of(c, size, shown) : 0;

	free(shown);
	return width;
}

static void text(struct canvas *c, double x, double y, double size, enum canvas_anchor anchor, double angle,
		 struct canvas_colour colour, const char *text)
{
	double share = anchor == CANVAS_LEFT ? 0 : anchor == CANVAS_MIDDLE ? 0.5 : 1;
	char *shown = drawable(text);

	if (!shown) {
		c->failed = true;
		return;
	}
	cairo_save(c->cr);
	cairo_translate(c->cr, rounded(x), rounded(y));
	if (angle != 0)
		cairo_rotate(c->cr, -angle * RADIANS);
	set_colour(c, colour);
	cairo_set_font_size(c->cr, size);
	cairo_move_to(c->cr, share > 0 ? rounded(-share * width_of(c, size, shown)) : 0, 0);
	cairo_show_text(c->cr, shown);
	cairo_new_path(c->cr);
	cairo_restore(c->cr);
	free(shown);
}

static int finish(struct canvas *c, struct error *err)
{
	cairo_status_t status = c->failed ? CAIRO_STATUS_NO_MEMORY : cairo_status(c->cr);

	if (status == CAIRO_STATUS_SUCCESS && c->format == CANVAS_PNG)
		status = cairo_surface_write_to_png_stream(c->surface, put, c->out);
	cairo_surface_finish(c->surface);
	if (status == CAIRO_STATUS_SUCCESS)
		status = cairo_surface_status(c->surface);
	release(c);
	if (status != CAIRO_STATUS_SUCCESS)
		return error_set(err, "cairo could not write the figure: %s", cairo_status_to_string(status));
	return 0;
}

static void abandon(struct canvas *c)
{
	if (c)
		release(c);
}

extern const struct canvas_plugin assay_canvas_plugin;

const struct canvas_plugin assay_canvas_plugin = {
	.version = CANVAS_PLUGIN_VERSION,
	.start = start,
	.open = open_canvas,
	.rect = rect,
	.line = line,
	.path = path,
	.text = text,
	.text_width = text_width,
	.finish = finish,
	.abandon = abandon,
};
