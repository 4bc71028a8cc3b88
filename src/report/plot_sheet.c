#include "report/plot_sheet.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/wrap.h"

#define NAME_COLUMNS 200 /* of a name that is drawn: longer ones fit nowhere, and measuring them costs */
#define SHORTEST_CUT 4   /* bytes that are left of a name: fewer say nothing */
#define ELLIPSIS "\xe2\x80\xa6"
#define SWATCH 7.0
#define LETTER 0.6 /* of a text's size: how wide a letter is, taken together */
#define LEGEND_GAP 10.0
#define LEGEND_NAME_ROOM 150.0

const struct canvas_colour sheet_black = {25, 25, 25, 255};
const struct canvas_colour sheet_grey = {105, 105, 105, 255};
const struct canvas_colour sheet_pale = {222, 222, 222, 255};

struct sheet_unit sheet_unit(double ns)
{
	static const struct sheet_unit units[] = {
		{"h", 3.6e12}, {"min", 6e10}, {"s", 1e9}, {"ms", 1e6}, {"\xc2\xb5s", 1e3}, {"ns", 1},
	};
	size_t i = 0;

	/* Minutes and hours only where seconds would be in thousands. */
	while (i + 1 < sizeof units / sizeof *units && ns < units[i].ns * (i < 2 ? 20 : 1))
		i++;
	return units[i];
}

void sheet_ticks_linear(struct sheet_ticks *t, double low, double high, size_t most)
{
	static const double steps[] = {1, 2, 5, 10};
	double power, step, first;
	size_t i = 0;
	int places;

	t->n = 0;
	if (!(high > low) || !isfinite(high - low) || most == 0)
		return;
	most = most < SHEET_TICKS_MAX ? most : SHEET_TICKS_MAX;
	power = pow(10, floor(log10((high - low) / (double)most)));
	while (i < 3 && steps[i] * power * (double)most < high - low)
		i++;
	step = steps[i] * power;
	first = ceil(low / step - 1e-9);
	places = step < 1 ? (int)fmin(9, ceil(-log10(step) - 1e-9)) : 0;
	for (; t->n < SHEET_TICKS_MAX && (first + (double)t->n) * step <= high + step * 1e-9; t->n++) {
		t->at[t->n] = (first + (double)t->n) * step;
		snprintf(t->label[t->n], sizeof t->label[0], "%.*f", places, t->at[t->n] + 0.0);
	}
}

void sheet_ticks_decades(struct sheet_ticks *t, double low, double high)
{
	t->n = 0;
	for (double at = pow(10, ceil(log10(low) - 1e-9)); at <= high * (1 + 1e-9) && t->n < SHEET_TICKS_MAX;
	     at *= 10) {
		struct sheet_unit unit = sheet_unit(at * 1.0001);

		if (unit.ns > 1e9)
			unit = (struct sheet_unit){"s", 1e9};
		t->at[t->n] = at;
		snprintf(t->label[t->n++], sizeof t->label[0], "%.0f %s", at / unit.ns, unit.name);
	}
}

struct canvas_colour sheet_contrast(struct canvas_colour ground)
{
	double light = 0.299 * ground.r + 0.587 * ground.g + 0.114 * ground.b;

	light = light * ground.a / 255 + 255 - ground.a;
	return light > 125 ? sheet_black : (struct canvas_colour){255, 255, 255, 255};
}

static double width_of(const struct sheet *s, double size, struct buf *text, size_t length)
{
	char kept = text->text[length];
	double width;

	text->text[length] = '\0';
	width = s->on->text_width(s->c, size, text->text);
	text->text[length] = kept;
	return width;
}

/* The longest beginning that fits with an ellipsis behind it; by bisection, for names may be long. */
static size_t fitting(const struct sheet *s, double size, struct buf *text, double room)
{
	size_t low = 0, high = text->length;

	while (low < high) {
		size_t middle = utf8_cut(text->text, text->length, (low + high + 1) / 2);

		if (middle <= low) { /* one character lies across the middle */
			middle = low + 1;
			while (middle < high && ((unsigned char)text->text[middle] & 0xc0) == 0x80)
				middle++;
		}
		if (width_of(s, size, text, middle) <= room)
			low = middle;
		else
			high = utf8_cut(text->text, text->length, middle - 1);
	}
	return low;
}

void sheet_text(const struct sheet *s, double x, double y, double size, enum canvas_anchor anchor,
		struct canvas_colour colour, double room, const char *text)
{
	CLEANUP(buf_release) struct buf shown;

	buf_init(&shown);
	if (room < size)
		return; /* a look without measuring: thousands of boxes are narrow */
	utf8_append_line(&shown, text, NAME_COLUMNS);
	if (s->on->text_width(s->c, size, shown.text) > room) {
		size_t length = fitting(s, size, &shown, room - s->on->text_width(s->c, size, ELLIPSIS));

		if (length < SHORTEST_CUT)
			return;
		shown.length = length;
		shown.text[length] = '\0';
		buf_puts(&shown, ELLIPSIS);
	}
	if (!shown.failed)
		s->on->text(s->c, x, y, size, anchor, 0, colour, shown.text);
}

double sheet_text_width(const struct sheet *s, double size, const char *text)
{
	CLEANUP(buf_release) struct buf shown;

	buf_init(&shown);
	utf8_append_line(&shown, text, NAME_COLUMNS);
	return s->on->text_width(s->c, size, shown.text);
}

double sheet_text_about(double size, const char *text)
{
	return (double)wrap_width(text) * size * LETTER;
}

struct sheet_area sheet_begin(const struct sheet *s, const char *title, const char *note)
{
	struct sheet_area a = {SHEET_MARGIN, SHEET_MARGIN, s->width - 2 * SHEET_MARGIN, s->height - 2 * SHEET_MARGIN};

	if (title) {
		sheet_text(s, s->width / 2, a.y + SHEET_TITLE, SHEET_TITLE, CANVAS_MIDDLE, sheet_black, a.width, title);
		a.y += SHEET_TITLE_HEIGHT;
		a.height -= SHEET_TITLE_HEIGHT;
	}
	if (note) {
		sheet_text(s, a.x, a.y + a.height - 1, SHEET_SMALL, CANVAS_LEFT, sheet_grey, a.width, note);
		a.height -= SHEET_NOTE_HEIGHT;
	}
	return a;
}

double sheet_axis_at(const struct sheet_axis *a, double value)
{
	double share = a->logarithmic ? log(value / a->from) / log(a->to / a->from)
				      : (value - a->from) / (a->to - a->from);

	return a->x + a->width * share;
}

void sheet_axis_bottom(const struct sheet *s, const struct sheet_axis *a, const struct sheet_ticks *t, double y,
		       double top, const char *title)
{
	double free_from = 0;

	for (size_t i = 0; i < t->n; i++) {
		double x = sheet_axis_at(a, t->at[i]), half = sheet_text_width(s, SHEET_TEXT, t->label[i]) / 2;
		double at = fmin(fmax(x, half + 1), s->width - half - 1);

		if (top < y)
			s->on->line(s->c, x, y, x, top, 0.4, sheet_pale);
		s->on->line(s->c, x, y, x, y + 3, 0.6, sheet_black);
		if (at - half < free_from)
			continue;
		s->on->text(s->c, at, y + 4 + SHEET_TEXT, SHEET_TEXT, CANVAS_MIDDLE, 0, sheet_black, t->label[i]);
		free_from = at + half + 4;
	}
	s->on->line(s->c, a->x, y, a->x + a->width, y, 0.6, sheet_black);
	sheet_text(s, a->x + a->width / 2, y + 15 + SHEET_TEXT, SHEET_TEXT, CANVAS_MIDDLE, sheet_black, a->width,
		   title);
}

void sheet_mark(const struct sheet *s, double x, double y, double half, size_t mark, struct canvas_colour colour)
{
	/* Of about the same area: square, diamond, triangles, cross. */
	static const struct {
		size_t n;
		double xy[24];
	} marks[SHEET_MARKS] = {
		{4, {-1, -1, 1, -1, 1, 1, -1, 1}},
		{4, {0, -1.35, 1.35, 0, 0, 1.35, -1.35, 0}},
		{3, {0, -1.3, 1.35, 1.05, -1.35, 1.05}},
		{3, {0, 1.3, 1.35, -1.05, -1.35, -1.05}},
		{12, {-0.45, -1.3, 0.45, -1.3, 0.45, -0.45, 1.3, -0.45, 1.3, 0.45, 0.45, 0.45,
		      0.45, 1.3, -0.45, 1.3, -0.45, 0.45, -1.3, 0.45, -1.3, -0.45, -0.45, -0.45}},
	};
	size_t n = marks[mark % SHEET_MARKS].n;
	double xy[24];

	for (size_t i = 0; i < 2 * n; i++)
		xy[i] = (i % 2 ? y : x) + half * marks[mark % SHEET_MARKS].xy[i];
	s->on->path(s->c, xy, n, 0, colour, colour);
}

double sheet_legend(const struct sheet *s, double x, double y, double width, size_t rows,
		    const struct sheet_legend_item *items, size_t n, bool on)
{
	double at = x, more_room = s->on->text_width(s->c, SHEET_SMALL, "and 000,000 more") + LEGEND_GAP;
	size_t row = 0;

	for (size_t i = 0; i < n; i++) {
		double name = fmin(sheet_text_width(s, SHEET_SMALL, items[i].text), LEGEND_NAME_ROOM);
		double end = at + SWATCH + 3 + name;

		if (at > x && end + (row + 1 == rows && i + 1 < n ? LEGEND_GAP + more_room : 0) > x + width) {
			if (row + 1 == rows) {
				char text[48];

				snprintf(text, sizeof text, "and %zu more", n - i);
				if (on)
					sheet_text(s, at, y + (double)row * SHEET_LEGEND_ROW + SWATCH, SHEET_SMALL,
						   CANVAS_LEFT, sheet_grey, more_room, text);
				break;
			}
			row++;
			end -= at - x;
			at = x;
		}
		if (on) {
			double base = y + (double)row * SHEET_LEGEND_ROW;

			sheet_mark(s, at + SWATCH / 2, base + SWATCH / 2, items[i].mark ? SWATCH * 0.38 : SWATCH / 2,
				   items[i].mark, items[i].colour);
			sheet_text(s, at + SWATCH + 3, base + SWATCH - 0.5, SHEET_SMALL, CANVAS_LEFT, sheet_black,
				   LEGEND_NAME_ROOM + 1, items[i].text);
		}
		at = end + LEGEND_GAP;
	}
	return n ? (double)(row + 1) * SHEET_LEGEND_ROW : 0;
}

double sheet_legend_about(double width, size_t rows, const struct sheet_legend_item *items, size_t n)
{
	double at = 0;
	size_t row = 0;

	for (size_t i = 0; i < n && row < rows; i++) {
		double item = SWATCH + 3 + fmin(sheet_text_about(SHEET_SMALL, items[i].text), LEGEND_NAME_ROOM);

		if (at > 0 && at + item > width) {
			row++;
			at = 0;
		}
		at += item + LEGEND_GAP;
	}
	return n ? (double)(row < rows ? row + 1 : rows) * SHEET_LEGEND_ROW : 0;
}
