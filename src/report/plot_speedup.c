/* Figure speedup: how much faster each region, and the whole run, became with more ranks.
 *
 * The time of a region is that of the rank that spent most in it; of the whole, from the first start to the last end.
 */
#include "report/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "report/plot_selection.h"
#include "report/plot_sheet.h"
#include "report/plot_table.h"

#define DRAWN_MAX 10 /* regions; the data has all */
#define WHOLE_NAME "whole run"
#define LEGEND_ROWS 3
#define AXIS_ROOM 20.0 /* left of the y axis, beside its labels */

/* One count of ranks; several files that have it are repeats. */
struct scale {
	uint64_t ranks;
	size_t files;
	double *times; /* ns by region, at the end the whole: median of its files; NaN: none has it */
};

struct speedup {
	struct plot_selection chosen;
	size_t regions; /* the whole is number `regions` */
	double *times;  /* [file * (regions + 1) + region]; NaN */
	struct scale *scales; /* by ranks */
	size_t scale_count;
	uint32_t *order; /* regions by time at the smallest count */
	size_t shown;
};

static void speedup_release(void *data)
{
	struct speedup *s = data;

	if (!s)
		return;
	for (size_t i = 0; s->scales && i < s->scale_count; i++)
		free(s->scales[i].times);
	free(s->scales);
	free(s->times);
	free(s->order);
	plot_selection_release(&s->chosen);
	free(s);
}

static int add_up(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	double *totals = context;
	const int64_t *starts = b->columns[REGION_START], *ends = b->columns[REGION_END];

	(void)worker, (void)err;
	for (size_t i = 0; i < b->n; i++)
		if (region_call_is_sound(starts[i], ends[i]))
			totals[b->part] += (double)(ends[i] - starts[i]);
	return 0;
}

/* A region may be several parts of one rank: their sum is the rank's. Parts come by rank or by region. */
struct share {
	uint32_t rank, region;
	double total;
};

static int by_region_and_rank(const void *left, const void *right)
{
	const struct share *a = left, *b = right;

	if (a->region != b->region)
		return a->region < b->region ? -1 : 1;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

static int read_file(struct speedup *s, const struct plot_input *in, size_t file, struct error *err)
{
	const struct plot_chosen *c = &s->chosen.files[file];
	const struct regions *r = c->regions;
	CLEANUP(free_cleanup) double *totals = calloc(r->part_count + 1, sizeof *totals);
	CLEANUP(free_cleanup) struct share *shares = calloc(r->part_count + 1, sizeof *shares);
	double *times = &s->times[file * (s->regions + 1)];
	struct region_scan scan = {.wanted = c->wanted, .workers = 1, .block = add_up, .context = totals};
	size_t n = 0;

	if (!totals || !shares)
		return error_set(err, "out of memory for %zu regions", r->part_count);
	if (region_file_scan(in->files[file], &scan, err) < 0)
		return -1;
	for (size_t i = 0; i <= s->regions; i++)
		times[i] = NAN;
	for (size_t i = 0; i < r->part_count; i++)
		if (c->wanted[i] && r->parts[i].count)
			shares[n++] = (struct share){r->parts[i].rank, c->pooled[r->parts[i].region], totals[i]};
	qsort(shares, n, sizeof *shares, by_region_and_rank);
	for (size_t i = 0; i < n; i++) {
		double *time = &times[shares[i].region];

		if (i + 1 < n && by_region_and_rank(&shares[i], &shares[i + 1]) == 0)
			shares[i + 1].total += shares[i].total;
		else
			*time = isnan(*time) ? shares[i].total : fmax(*time, shares[i].total);
	}
	if (c->span.calls)
		times[s->regions] = (double)(c->span.last - c->span.first);
	return 0;
}

static uint64_t ranks_of(const struct plot_chosen *c, const struct region_query *q)
{
	uint64_t ranks = 0;

	for (size_t i = 0; i < c->regions->rank_count; i++)
		ranks += region_query_takes_rank(q, c->regions->ranks[i]);
	return ranks;
}

static int ascending(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static int by_ranks(const void *left, const void *right)
{
	const struct scale *a = left, *b = right;

	return (a->ranks > b->ranks) - (a->ranks < b->ranks);
}

/* Where files have the same count of ranks, the median of their times. */
static int fill_scale(struct speedup *s, struct scale *scale, const struct plot_input *in, struct error *err)
{
	CLEANUP(free_cleanup) double *repeats = calloc(in->file_count, sizeof *repeats);

	scale->times = calloc(s->regions + 1, sizeof *scale->times);
	if (!scale->times || !repeats)
		return error_set(err, "out of memory for %zu regions", s->regions);
	for (size_t region = 0; region <= s->regions; region++) {
		size_t n = 0;

		for (size_t file = 0; file < in->file_count; file++) {
			double time = s->times[file * (s->regions + 1) + region];

			if (ranks_of(&s->chosen.files[file], in->query) == scale->ranks && !isnan(time))
				repeats[n++] = time;
		}
		qsort(repeats, n, sizeof *repeats, ascending);
		scale->times[region] = n ? (repeats[(n - 1) / 2] + repeats[n / 2]) / 2 : NAN;
	}
	return 0;
}

static int find_scales(struct speedup *s, const struct plot_input *in, struct error *err)
{
	s->scales = calloc(in->file_count, sizeof *s->scales);
	if (!s->scales)
		return error_set(err, "out of memory for %zu files", in->file_count);
	for (size_t file = 0; file < in->file_count; file++) {
		uint64_t ranks = ranks_of(&s->chosen.files[file], in->query);
		size_t at = 0;

		if (s->chosen.files[file].span.calls == 0)
			continue;
		while (at < s->scale_count && s->scales[at].ranks != ranks)
			at++;
		s->scales[at].ranks = ranks;
		s->scales[at].files++;
		s->scale_count += at == s->scale_count;
	}
	qsort(s->scales, s->scale_count, sizeof *s->scales, by_ranks);
	if (s->scale_count < 2)
		return error_set(err, "all files have %" PRIu64 " ranks: a speedup needs files of different counts",
				 s->scales[0].ranks);
	for (size_t i = 0; i < s->scale_count; i++)
		if (fill_scale(s, &s->scales[i], in, err) < 0)
			return -1;
	return 0;
}

static double speedup_at(const struct speedup *s, size_t scale, size_t region)
{
	double base = s->scales[0].times[region], time = s->scales[scale].times[region];

	return base > 0 && time > 0 ? base / time : NAN;
}

static int order_regions(struct speedup *s, struct warnings *notes, struct error *err)
{
	CLEANUP(free_cleanup) double *times = calloc(s->regions, sizeof *times);
	size_t comparable = 0, absent = 0;

	s->order = calloc(s->regions, sizeof *s->order);
	if (!s->order || !times)
		return error_set(err, "out of memory for %zu regions", s->regions);
	for (size_t i = 0; i < s->regions; i++) {
		times[i] = s->scales[0].times[i] > 0 ? s->scales[0].times[i] : 0;
		absent += !(times[i] > 0);
	}
	comparable = plot_order(times, s->regions, s->order);
	s->shown = comparable < DRAWN_MAX ? comparable : DRAWN_MAX;
	if (absent)
		warnings_add(notes,
			     "regions without a time at the smallest count of ranks (%s), and so without a speedup: %s",
			     units_count((double)s->scales[0].ranks).text, units_count((double)absent).text);
	if (comparable > s->shown)
		warnings_add(notes, "the figure shows the %zu regions that take longest of %s: --include chooses",
			     s->shown, units_count((double)comparable).text);
	return 0;
}

static int prepare(const struct plot_input *in, void **ret, struct error *err)
{
	struct speedup *s = calloc(1, sizeof *s);
	int got;

	if (!s)
		return error_set(err, "out of memory for a figure");
	got = plot_selection_make(&s->chosen, in, err);
	s->regions = s->chosen.pool.name_count;
	if (got == 0) {
		s->times = calloc((s->regions + 1) * in->file_count, sizeof *s->times);
		got = s->times ? 0 : error_set(err, "out of memory for %zu regions", s->regions);
	}
	for (size_t i = 0; got == 0 && i < in->file_count; i++)
		got = read_file(s, in, i, err);
	if (got == 0)
		got = find_scales(s, in, err);
	if (got == 0)
		got = order_regions(s, in->notes, err);
	if (got < 0) {
		speedup_release(s);
		return -1;
	}
	*ret = s;
	return 0;
}

static void speedup_size(const void *data, const struct plot_input *in, double *width, double *height)
{
	(void)data, (void)in;
	*width = *width > 0 ? *width : SHEET_WIDTH * 0.75;
	*height = *height > 0 ? *height : SHEET_HEIGHT;
}

struct speedup_axes {
	struct sheet_axis x, y; /* y: as if horizontal, from the bottom upwards */
	double bottom, room; /* room: left of the y axis */
};

static double y_of(const struct speedup_axes *axes, double value)
{
	return axes->bottom - sheet_axis_at(&axes->y, value);
}

static void power_label(char *text, size_t size, double value)
{
	if (value > 1e6 || value < 1e-6)
		snprintf(text, size, "%.0e", value);
	else if (value >= 1)
		snprintf(text, size, "%.0f", value);
	else
		snprintf(text, size, "1/%.0f", 1 / value);
}

static double labels_width(const struct sheet *sheet, const struct speedup_axes *axes)
{
	double most = 0;

	for (double at = exp2(ceil(log2(axes->y.from))); at <= axes->y.to * 1.0001; at *= 2) {
		char text[32];

		power_label(text, sizeof text, at);
		most = fmax(most, sheet_text_width(sheet, SHEET_TEXT, text));
	}
	return most;
}

/* The figure reaches the next power of two beyond what it shows, on both sides of 1. */
static void set_axes(const struct speedup *s, const struct sheet *sheet, const struct sheet_area *a,
		     struct speedup_axes *axes)
{
	double first = (double)s->scales[0].ranks, last = (double)s->scales[s->scale_count - 1].ranks;
	double low = 1, high = last / first;

	for (size_t scale = 0; scale < s->scale_count; scale++) {
		for (size_t i = 0; i <= s->shown; i++) {
			double value = speedup_at(s, scale, i < s->shown ? s->order[i] : s->regions);

			low = value < low ? value : low;
			high = value > high ? value : high;
		}
	}
	axes->y = (struct sheet_axis){0, a->height, exp2(floor(log2(low) - 1e-9)) * (low < 1 ? 1 : 1.6),
				      exp2(ceil(log2(high) + 1e-9)), true};
	axes->bottom = a->y + a->height;
	axes->room = AXIS_ROOM + labels_width(sheet, axes);
	axes->x = (struct sheet_axis){a->x + axes->room, a->width - axes->room - 8, first / 1.1, last * 1.1, true};
}

static void draw_y_axis(const struct sheet *s, const struct speedup_axes *axes, uint64_t base)
{
	double x = axes->x.x, right = x + axes->x.width, free_below = INFINITY;
	char title[64];

	for (double at = exp2(ceil(log2(axes->y.from))); at <= axes->y.to * 1.0001; at *= 2) {
		double y = y_of(axes, at);
		char text[32];

		s->on->line(s->c, x - 3, y, x, y, 0.6, sheet_black);
		s->on->line(s->c, x, y, right, y, 0.4, sheet_pale);
		if (y + SHEET_TEXT / 2 > free_below)
			continue;
		power_label(text, sizeof text, at);
		s->on->text(s->c, x - 5, y + SHEET_TEXT * 0.36, SHEET_TEXT, CANVAS_RIGHT, 0, sheet_black, text);
		free_below = y - SHEET_TEXT / 2 - 2;
	}
	s->on->line(s->c, x, y_of(axes, axes->y.from), x, y_of(axes, axes->y.to), 0.6, sheet_black);
	snprintf(title, sizeof title, "speedup over %" PRIu64 " rank%s", base, base == 1 ? "" : "s");
	s->on->text(s->c, x - axes->room + SHEET_TEXT, axes->bottom - axes->y.width / 2, SHEET_TEXT, CANVAS_MIDDLE, 90,
		    sheet_black, title);
}

static void draw_curve(const struct speedup *s, const struct sheet *sheet, const struct speedup_axes *axes,
		       size_t region, double width, size_t mark, struct canvas_colour colour)
{
	double before_x = NAN, before_y = NAN;

	for (size_t i = 0; i < s->scale_count; i++) {
		double value = speedup_at(s, i, region), x, y;

		if (isnan(value))
			continue;
		x = sheet_axis_at(&axes->x, (double)s->scales[i].ranks);
		y = y_of(axes, value);
		if (!isnan(before_x))
			sheet->on->line(sheet->c, before_x, before_y, x, y, width, colour);
		sheet_mark(sheet, x, y, width + 0.9, mark, colour);
		before_x = x;
		before_y = y;
	}
}

static void draw_ideal(const struct speedup *s, const struct sheet *sheet, const struct speedup_axes *axes)
{
	double first = (double)s->scales[0].ranks, last = (double)s->scales[s->scale_count - 1].ranks;
	double x1 = sheet_axis_at(&axes->x, first), y1 = y_of(axes, 1);
	double x2 = sheet_axis_at(&axes->x, last), y2 = y_of(axes, last / first);
	double length = hypot(x2 - x1, y2 - y1);

	for (double at = 0; at < length; at += 7) {
		double end = fmin(at + 4, length);

		sheet->on->line(sheet->c, x1 + (x2 - x1) * at / length, y1 + (y2 - y1) * at / length,
				x1 + (x2 - x1) * end / length, y1 + (y2 - y1) * end / length, 0.8, sheet_grey);
	}
}

static double legend(const struct speedup *s, const struct sheet *sheet, double y, bool on)
{
	struct sheet_legend_item items[DRAWN_MAX + 2] = {{WHOLE_NAME, sheet_black, 0}};

	for (size_t i = 0; i < s->shown; i++) {
		const char *name = s->chosen.pool.names[s->order[i]];

		items[i + 1] = (struct sheet_legend_item){name, plot_colour(name), (i + 1) % SHEET_MARKS};
	}
	items[s->shown + 1] = (struct sheet_legend_item){"ideal (dashed)", sheet_grey, 0};
	return sheet_legend(sheet, SHEET_MARGIN, y, sheet->width - 2 * SHEET_MARGIN, LEGEND_ROWS, items, s->shown + 2,
			    on);
}

static int draw(const void *data, const struct plot_input *in, const struct canvas_plugin *on, struct canvas *c,
		double width, double height, struct error *err)
{
	const struct speedup *s = data;
	const struct sheet sheet = {on, c, width, height};
	struct sheet_area a = sheet_begin(&sheet, in->title, NULL);
	double legend_height = legend(s, &sheet, 0, false);
	struct sheet_ticks ticks = {.n = 0};
	struct speedup_axes axes;

	a.height -= SHEET_AXIS_HEIGHT + legend_height + 4;
	if (a.height < 30)
		return error_set(err, "the figure is too small: --width and --height");
	set_axes(s, &sheet, &a, &axes);
	if (axes.x.width < 20)
		return error_set(err, "the figure is too small: --width and --height");
	for (size_t i = 0; i < s->scale_count && ticks.n < SHEET_TICKS_MAX; i++) {
		ticks.at[ticks.n] = (double)s->scales[i].ranks;
		snprintf(ticks.label[ticks.n++], sizeof ticks.label[0], "%" PRIu64, s->scales[i].ranks);
	}
	sheet_axis_bottom(&sheet, &axes.x, &ticks, axes.bottom, a.y, "ranks");
	draw_y_axis(&sheet, &axes, s->scales[0].ranks);
	draw_ideal(s, &sheet, &axes);
	for (size_t i = s->shown; i > 0; i--)
		draw_curve(s, &sheet, &axes, s->order[i - 1], 1.2, i % SHEET_MARKS,
			   plot_colour(s->chosen.pool.names[s->order[i - 1]]));
	draw_curve(s, &sheet, &axes, s->regions, 1.8, 0, sheet_black);
	legend(s, &sheet, axes.bottom + SHEET_AXIS_HEIGHT + 4, true);
	return 0;
}

static int write_data(const void *data, enum plot_data_format format, FILE *out, struct error *err)
{
	static const char *const columns[] = {"region", "ranks", "files", "time_ns", "speedup", "ideal", NULL};
	const struct speedup *s = data;
	struct plot_table t;

	plot_table_begin(&t, out, format, "speedup", columns);
	for (size_t i = 0; i <= s->regions; i++) {
		size_t region = i == 0 ? s->regions : s->order[i - 1];

		for (size_t scale = 0; scale < s->scale_count; scale++) {
			const struct scale *at = &s->scales[scale];

			/* The whole has no name: no region's can be taken for it. */
			if (i == 0)
				plot_table_unknown(&t);
			else
				plot_table_text(&t, s->chosen.pool.names[region]);
			plot_table_integer(&t, (int64_t)at->ranks);
			plot_table_integer(&t, (int64_t)at->files);
			plot_table_number(&t, at->times[region]);
			plot_table_number(&t, speedup_at(s, scale, region));
			plot_table_number(&t, (double)at->ranks / (double)s->scales[0].ranks);
		}
	}
	return plot_table_end(&t, err);
}

const struct plot_kind plot_speedup = {
	.name = "speedup",
	.summary = "how much faster regions became with more ranks",
	.least_files = 2,
	.prepare = prepare,
	.size = speedup_size,
	.draw = draw,
	.write_data = write_data,
	.release = speedup_release,
};
