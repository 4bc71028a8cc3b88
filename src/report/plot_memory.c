#include "report/plot_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "base/utf8.h"
#include "report/plot_sheet.h"

#define TITLE_COLUMNS 60
#define GPU_HEIGHT 90.0
#define LEGEND_ROWS 4
#define PANEL_GAP 12.0
#define HEADROOM 1.12 /* room for the peak's words */
#define TICKS_Y 6
#define TICKS_X 8
#define TICKS_GPU 3
#define DASH 4.0
#define MARK_SHOWN 1.02 /* a mark that is hardly above the peak reading would only hide it */
#define LABEL_GAP 5.0
#define AXIS_ROOM 14.0  /* of an axis' title that stands upright */

static const struct canvas_colour rss_colour = {0, 114, 178, 255}, rss_area = {0, 114, 178, 34},
				  mark_colour = {213, 94, 0, 255};

/* Hues of Okabe and Ito; the widest first, so that the finer ones are drawn over it. What is read seldom has points
 * and no line: what lies between two of them was not seen. */
static const struct {
	const char *label;
	struct canvas_colour colour;
	double width; /* 0: points */
} looks[SPY_RESOURCES] = {
	[SPY_RSS] = {"RSS: all that is resident", {0, 114, 178, 255}, 1.6},
	[SPY_ANON] = {"anonymous: heap, stacks", {230, 159, 0, 255}, 1.1},
	[SPY_FILE] = {"file: mapped files, shared memory", {0, 158, 115, 255}, 1.1},
	[SPY_SWAP] = {"swap", {204, 121, 167, 255}, 1.1},
	[SPY_PSS] = {"PSS, where it was read", {0, 0, 0, 255}, 0},
};

static const struct canvas_colour gpu_colours[] = {
	{86, 180, 233, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
};
#define GPU_COLOURS (sizeof gpu_colours / sizeof *gpu_colours)

struct byte_unit {
	const char *name;
	double bytes;
};

/* One panel: a part of the sheet with the two axes that its lines are drawn by. */
struct panel {
	struct sheet_area area;
	double t_end;  /* seconds from the course's begin at the right end */
	double v_end;  /* bytes at the top */
	struct byte_unit unit;
};

bool plot_memory_format(const char *path, enum canvas_format *ret)
{
	static const char *const ends[] = {[CANVAS_SVG] = ".svg", [CANVAS_PDF] = ".pdf", [CANVAS_PNG] = ".png"};
	size_t length = strlen(path);

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		if (length <= strlen(ends[i]) || strcmp(path + length - strlen(ends[i]), ends[i]) != 0)
			continue;
		*ret = (enum canvas_format)i;
		return true;
	}
	return false;
}

static struct byte_unit unit_of(double bytes)
{
	static const struct byte_unit units[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}};

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (bytes >= units[i].bytes)
			return units[i];
	return (struct byte_unit){"bytes", 1};
}

static double x_at(const struct panel *p, const struct course *c, int64_t t)
{
	return p->area.x + p->area.width * fmax((double)(t - c->begin) / (double)NS_PER_S, 0) / p->t_end;
}

static double y_at(const struct panel *p, double bytes)
{
	return p->area.y + p->area.height * (1 - bytes / p->v_end);
}

/* The points of a series, two per cell, in the order of time. Returns how many there are; xy has room for all. */
static size_t points_of(const struct panel *p, const struct course *c, size_t series, double *xy)
{
	size_t n = 0;

	for (size_t i = 0; i < c->used; i++) {
		const struct course_cell *cell = course_cell(c, i, series);
		bool low_first = cell->low_at <= cell->high_at;

		if (cell->low < 0)
			continue;
		for (int half = 0; half < (cell->low_at == cell->high_at ? 1 : 2); half++) {
			bool low = (half == 0) == low_first;

			xy[2 * n] = x_at(p, c, low ? cell->low_at : cell->high_at);
			xy[2 * n++ + 1] = y_at(p, (double)(low ? cell->low : cell->high));
		}
	}
	return n;
}

static void draw_series(const struct sheet *s, const struct panel *p, const struct course *c, size_t series,
			struct canvas_colour colour, double width, double *xy)
{
	const struct canvas_colour none = {0, 0, 0, 0};
	size_t n = points_of(p, c, series, xy);

	if (n > 1 && width > 0)
		s->on->path(s->c, xy, n, width, colour, none);
	for (size_t i = 0; i < n && (n == 1 || width <= 0); i++)
		sheet_mark(s, xy[2 * i], xy[2 * i + 1], 2, 1, colour);
}

static void fill_rss(const struct sheet *s, const struct panel *p, const struct course *c, double *xy)
{
	const struct canvas_colour none = {0, 0, 0, 0};
	size_t n = points_of(p, c, SPY_RSS, xy);
	double foot = p->area.y + p->area.height;

	if (n < 2)
		return;
	xy[2 * n] = xy[2 * (n - 1)];
	xy[2 * n + 1] = foot;
	xy[2 * n + 2] = xy[0];
	xy[2 * n + 3] = foot;
	s->on->path(s->c, xy, n + 2, 0, none, rss_area);
}

static void draw_left_axis(const struct sheet *s, const struct panel *p, size_t most, const char *title)
{
	double right = p->area.x + p->area.width, foot = p->area.y + p->area.height;
	struct sheet_ticks ticks;
	char text[48];

	sheet_ticks_linear(&ticks, 0, p->v_end / p->unit.bytes, most);
	for (size_t i = 0; i < ticks.n; i++) {
		double y = y_at(p, ticks.at[i] * p->unit.bytes);

		s->on->line(s->c, p->area.x, y, right, y, 0.4, sheet_pale);
		s->on->line(s->c, p->area.x - 3, y, p->area.x, y, 0.6, sheet_black);
		s->on->text(s->c, p->area.x - 5, y + SHEET_TEXT * 0.35, SHEET_TEXT, CANVAS_RIGHT, 0, sheet_black,
			    ticks.label[i]);
	}
	s->on->line(s->c, p->area.x, p->area.y, p->area.x, foot, 0.6, sheet_black);
	snprintf(text, sizeof text, "%s, %s", title, p->unit.name);
	s->on->text(s->c, SHEET_MARGIN + SHEET_TEXT, p->area.y + p->area.height / 2, SHEET_TEXT, CANVAS_MIDDLE, 90,
		    sheet_black, text);
}

/* What the labels of the left axis take. */
static double label_room(const struct sheet *s, const struct panel *p, size_t most)
{
	struct sheet_ticks ticks;
	double widest = 0;

	sheet_ticks_linear(&ticks, 0, p->v_end / p->unit.bytes, most);
	for (size_t i = 0; i < ticks.n; i++)
		widest = fmax(widest, sheet_text_width(s, SHEET_TEXT, ticks.label[i]));
	return widest + 7 + AXIS_ROOM;
}

static void dashed(const struct sheet *s, double from, double to, double y, struct canvas_colour colour)
{
	for (double x = from; x < to; x += 2 * DASH)
		s->on->line(s->c, x, y, fmin(x + DASH, to), y, 1, colour);
}

/* Words on a pale ground beside a point, on the side where there is room for them; y is their baseline. */
static void put_label(const struct sheet *s, const struct panel *p, double x, double y, struct canvas_colour colour,
		      const char *text)
{
	const struct canvas_colour ground = {255, 255, 255, 200};
	double width = sheet_text_width(s, SHEET_TEXT, text), right = p->area.x + p->area.width;
	double left = x + LABEL_GAP + width > right ? fmax(x - LABEL_GAP - width, p->area.x + 1) : x + LABEL_GAP;

	s->on->rect(s->c, left - 1, y - SHEET_TEXT, width + 2, SHEET_TEXT + 2, ground);
	s->on->text(s->c, left, y, SHEET_TEXT, CANVAS_LEFT, 0, colour, text);
}

static bool mark_is_above(const struct spy_result *r)
{
	const struct monitor *rss = &r->resources[SPY_RSS];

	return r->peak_from_mark && (!rss->n || (double)r->peak > MARK_SHOWN * (double)rss->peak);
}

/* Returns how high the line is. */
static double draw_mark(const struct sheet *s, const struct panel *p, const struct spy_result *r)
{
	double y = y_at(p, (double)r->peak);
	char text[96];

	dashed(s, p->area.x, p->area.x + p->area.width, y, mark_colour);
	snprintf(text, sizeof text, "%s %s between readings, by the kernel's high-water mark",
		 r->peak_exact ? "peak" : "at least", units_bytes((double)r->peak).text);
	put_label(s, p, p->area.x, y - 4, mark_colour, text);
	return y;
}

static void draw_peak(const struct sheet *s, const struct panel *p, const struct plot_memory *m)
{
	const struct spy_result *r = m->result;
	const struct monitor *rss = &r->resources[SPY_RSS];
	bool marked = mark_is_above(r);
	double mark = marked ? draw_mark(s, p, r) : 0, x, y;
	char text[96];

	if (!rss->n)
		return;
	x = x_at(p, m->course, rss->peak_at);
	y = y_at(p, (double)rss->peak);
	snprintf(text, sizeof text, "%s %s at %s", marked || !r->peak_exact ? "largest reading" : "peak",
		 units_bytes((double)rss->peak).text,
		 units_seconds((double)(rss->peak_at - r->begin) / (double)NS_PER_S).text);
	sheet_mark(s, x, y, 2.4, 0, rss_colour);
	/* Below its point where the mark's line would run through it. */
	put_label(s, p, x, marked && y - mark < 2 * SHEET_TEXT ? y + SHEET_TEXT + 2 : y - 4, rss_colour, text);
}

/* Swap and PSS only where there is some. */
static bool is_shown(const struct course *c, size_t series)
{
	int64_t largest = course_largest(c, series);

	return series == SPY_SWAP ? largest > 0 : largest >= 0;
}

static size_t legend_of(const struct plot_memory *m, struct sheet_legend_item *items, char (*names)[120])
{
	size_t n = 0;

	for (size_t i = 0; i < SPY_RESOURCES; i++)
		if (is_shown(m->course, i))
			items[n++] = (struct sheet_legend_item){looks[i].label, looks[i].colour, i == SPY_PSS};
	for (size_t i = 0; i < m->result->gpu_count; i++) {
		snprintf(names[i], sizeof names[i], "gpu%zu: %s", i, m->result->gpu_names[i]);
		items[n++] = (struct sheet_legend_item){names[i], gpu_colours[i % GPU_COLOURS], 0};
	}
	return n;
}

static void draw_host(const struct sheet *s, const struct panel *p, const struct plot_memory *m, double *xy)
{
	draw_left_axis(s, p, TICKS_Y, m->subject->tree ? "memory of all processes" : "memory");
	fill_rss(s, p, m->course, xy);
	for (size_t i = 0; i < SPY_RESOURCES; i++)
		if (is_shown(m->course, i))
			draw_series(s, p, m->course, i, looks[i].colour, looks[i].width, xy);
	draw_peak(s, p, m);
}

static void draw_gpus(const struct sheet *s, const struct panel *p, const struct plot_memory *m, double *xy)
{
	draw_left_axis(s, p, TICKS_GPU, "GPU");
	for (size_t i = 0; i < m->result->gpu_count; i++)
		draw_series(s, p, m->course, SPY_RESOURCES + i, gpu_colours[i % GPU_COLOURS], 1.2, xy);
}

static void draw_time_axis(const struct sheet *s, const struct panel *p, double top)
{
	struct sheet_unit unit = sheet_unit(p->t_end * 1e9);
	struct sheet_axis axis = {p->area.x, p->area.width, 0, p->t_end * 1e9 / unit.ns, false};
	struct sheet_ticks ticks;
	char title[48];

	sheet_ticks_linear(&ticks, axis.from, axis.to, TICKS_X);
	snprintf(title, sizeof title, "time since the first reading, %s", unit.name);
	sheet_axis_bottom(s, &axis, &ticks, p->area.y + p->area.height, top, title);
}

static double largest_of(const struct plot_memory *m, size_t from, size_t to)
{
	double largest = from == 0 && mark_is_above(m->result) ? (double)m->result->peak : 0;

	for (size_t i = from; i < to; i++)
		largest = fmax(largest, (double)course_largest(m->course, i));
	return largest > 0 ? largest : 1;
}

static struct panel panel_of(const struct plot_memory *m, size_t from, size_t to)
{
	double largest = largest_of(m, from, to), seconds = 0;

	if (m->course->used)
		seconds = (double)(m->course->last - m->course->begin) / (double)NS_PER_S;
	return (struct panel){
		.t_end = seconds > 0 ? seconds : 1e-3, .v_end = largest * HEADROOM, .unit = unit_of(largest)};
}

static void draw_panels(const struct sheet *s, const struct plot_memory *m, struct sheet_area a, double *xy)
{
	struct panel host = panel_of(m, 0, SPY_RESOURCES);
	struct panel gpus = panel_of(m, SPY_RESOURCES, m->course->series);
	bool has_gpus = m->result->gpu_count > 0;
	double room = fmax(label_room(s, &host, TICKS_Y), has_gpus ? label_room(s, &gpus, TICKS_GPU) : 0);
	double below = SHEET_AXIS_HEIGHT + (has_gpus ? GPU_HEIGHT + PANEL_GAP : 0);

	host.area = (struct sheet_area){a.x + room, a.y + 2, a.width - room - 6, a.height - below - 2};
	gpus.area = host.area;
	gpus.area.y += host.area.height + PANEL_GAP;
	gpus.area.height = GPU_HEIGHT;
	/* The grid of time lies below all lines. */
	draw_time_axis(s, has_gpus ? &gpus : &host, host.area.y);
	draw_host(s, &host, m, xy);
	if (has_gpus)
		draw_gpus(s, &gpus, m, xy);
}

static void draw_all(const struct sheet *s, const struct plot_memory *m, double *xy)
{
	struct sheet_legend_item items[SPY_RESOURCES + SPY_GPUS_MAX];
	char names[SPY_GPUS_MAX][120];
	size_t n = legend_of(m, items, names);
	CLEANUP(buf_release) struct buf title;
	struct sheet_area a;
	double legend;

	buf_init(&title);
	buf_puts(&title, "Memory of ");
	utf8_append_line(&title, m->subject->name, TITLE_COLUMNS);
	a = sheet_begin(s, title.failed ? NULL : title.text,
			m->course->used ? NULL : "Nothing was read before its end.");
	legend = sheet_legend(s, a.x, a.y, a.width, LEGEND_ROWS, items, n, true);
	a.y += legend + 4;
	a.height -= legend + 4;
	draw_panels(s, m, a, xy);
}

int plot_memory_draw(const struct plot_memory *p, const struct canvas_plugin *on, enum canvas_format format, FILE *out,
		     struct error *err)
{
	/* Two points of each cell, and the two that close an area. */
	CLEANUP(free_cleanup) double *xy = reallocarray(NULL, 2 * COURSE_CELLS + 2, 2 * sizeof *xy);
	struct sheet s = {.on = on, .width = SHEET_WIDTH};

	s.height = SHEET_HEIGHT + (p->result->gpu_count ? GPU_HEIGHT + PANEL_GAP : 0);
	if (!xy)
		return error_set(err, "out of memory for a figure");
	if (on->open(out, format, s.width, s.height, &s.c, err) < 0)
		return -1;
	draw_all(&s, p, xy);
	return on->finish(s.c, err);
}
