/* Figure durations: how long the calls of each region take, as boxes: quartiles, percentiles 5 and 95, extremes. */
#include "report/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "report/plot_selection.h"
#include "report/plot_sheet.h"
#include "report/plot_table.h"

#define EXACT_MAX (1u << 24) /* calls whose durations are held at a time, 8 bytes each */
#define DRAWN_MAX 40         /* regions; the data has all */
#define LOG_RATIO 100.0      /* from the least to the largest: beyond it the axis is logarithmic */
#define BOX_USUAL 11.0
#define BOX_LEAST 3.0
#define NAME_ROOM 130.0
#define LABEL_ROOM 60.0
#define POINTS 5
#define BUCKETS (64 * 128) /* 128 to each power of two */

static const double points[POINTS] = {5, 25, 50, 75, 95};

struct spread {
	uint64_t calls;
	int64_t min, max, least; /* least: above zero */
	double total, at[POINTS];
	uint64_t *counts; /* while it is read: of a region that is too large to be held */
	int64_t *values;
	uint64_t held;
};

struct durations {
	struct plot_selection chosen;
	struct spread *spreads; /* [file * regions + region] */
	size_t regions;
	uint32_t *order; /* by total over all files */
	size_t shown;
};

static struct spread *spread_of(const struct durations *d, size_t file, size_t region)
{
	return &d->spreads[file * d->regions + region];
}

static void durations_release(void *data)
{
	struct durations *d = data;

	if (!d)
		return;
	for (size_t i = 0; d->spreads && i < d->chosen.file_count * d->regions; i++) {
		free(d->spreads[i].counts);
		free(d->spreads[i].values);
	}
	free(d->spreads);
	free(d->order);
	plot_selection_release(&d->chosen);
	free(d);
}

/* Values below 256 have a bucket each; above, one is 1/128 of its power of two wide. */
static size_t bucket_of(uint64_t value)
{
	unsigned shift = value < 256 ? 0 : (unsigned)(56 - __builtin_clzll(value));

	return shift * 128 + (size_t)(value >> shift);
}

static double bucket_middle(size_t bucket)
{
	unsigned shift = bucket < 256 ? 0 : (unsigned)(bucket / 128 - 1);
	uint64_t low = (uint64_t)(bucket - shift * 128) << shift;

	return (double)low + (double)(((uint64_t)1 << shift) - 1) / 2;
}

struct durations_reading {
	struct durations *d;
	const struct plot_chosen *c;
	size_t file;
};

static int take_block(void *context, unsigned worker, const struct region_block *b, struct error *err)
{
	struct durations_reading *r = context;
	const int64_t *starts = b->columns[REGION_START], *ends = b->columns[REGION_END];
	struct spread *s = spread_of(r->d, r->file, r->c->pooled[r->c->regions->parts[b->part].region]);

	(void)worker;
	for (size_t i = 0; i < b->n; i++) {
		int64_t took;

		if (!region_call_is_sound(starts[i], ends[i]))
			continue;
		took = ends[i] - starts[i];
		s->min = s->calls == 0 || took < s->min ? took : s->min;
		s->max = s->calls == 0 || took > s->max ? took : s->max;
		s->least = took > 0 && (s->least == 0 || took < s->least) ? took : s->least;
		s->total += (double)took;
		s->calls++;
		if (s->counts)
			s->counts[bucket_of((uint64_t)took)]++;
		else if (s->calls <= s->held)
			s->values[s->calls - 1] = took;
		else
			return error_set(err, "%s changed while it was read", r->c->regions->path);
	}
	return 0;
}

static int ascending(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* numpy's default: between the two nearest of the sorted values. */
static void exact_points(struct spread *s)
{
	qsort(s->values, s->calls, sizeof *s->values, ascending);
	for (size_t i = 0; i < POINTS; i++) {
		double position = points[i] / 100 * (double)(s->calls - 1);
		uint64_t low = (uint64_t)position;
		uint64_t high = low + 1 < s->calls ? low + 1 : low;
		double between = (double)(s->values[high] - s->values[low]) * (position - (double)low);

		s->at[i] = (double)s->values[low] + between;
	}
}

static void bucket_points(struct spread *s)
{
	for (size_t i = 0; i < POINTS; i++) {
		double position = points[i] / 100 * (double)(s->calls - 1);
		uint64_t below = 0;
		size_t bucket = 0;

		while (bucket + 1 < BUCKETS && (double)(below + s->counts[bucket]) <= position)
			below += s->counts[bucket++];
		s->at[i] = fmin(fmax(bucket_middle(bucket), (double)s->min), (double)s->max);
	}
}

static int hold(struct spread *s, uint64_t calls, struct error *err)
{
	s->held = calls;
	if (calls > EXACT_MAX)
		s->counts = calloc(BUCKETS, sizeof *s->counts);
	else
		s->values = reallocarray(NULL, calls ? calls : 1, sizeof *s->values);
	return s->counts || s->values ? 0 : error_set(err, "out of memory for %" PRIu64 " durations", calls);
}

static void let_go(struct spread *s)
{
	if (s->calls && s->counts)
		bucket_points(s);
	else if (s->calls && s->values)
		exact_points(s);
	free(s->counts);
	free(s->values);
	s->counts = NULL;
	s->values = NULL;
}

/* Reads some regions, [from, to) by number, of a file; `calls` is what each has. */
static int read_regions(struct durations *d, const struct plot_input *in, size_t file, const uint64_t *calls,
			size_t from, size_t to, struct error *err)
{
	const struct plot_chosen *c = &d->chosen.files[file];
	const struct regions *r = c->regions;
	struct durations_reading reading = {d, c, file};
	CLEANUP(free_cleanup) bool *wanted = calloc(r->part_count ? r->part_count : 1, sizeof *wanted);
	struct region_scan scan = {.wanted = wanted, .workers = 1, .block = take_block, .context = &reading};

	if (!wanted)
		return error_set(err, "out of memory for %zu regions", r->part_count);
	for (size_t i = 0; i < r->part_count; i++) {
		size_t region = c->pooled[r->parts[i].region];

		wanted[i] = c->wanted[i] && region >= from && region < to;
	}
	for (size_t i = from; i < to; i++)
		if (calls[i] && hold(spread_of(d, file, i), calls[i], err) < 0)
			return -1;
	if (region_file_scan(in->files[file], &scan, err) < 0)
		return -1;
	for (size_t i = from; i < to; i++)
		let_go(spread_of(d, file, i));
	return 0;
}

/* As many regions at a time as may be held. */
static int read_file(struct durations *d, const struct plot_input *in, size_t file, struct error *err)
{
	const struct plot_chosen *c = &d->chosen.files[file];
	CLEANUP(free_cleanup) uint64_t *calls = calloc(d->regions, sizeof *calls);
	size_t from = 0;
	uint64_t held = 0;

	if (!calls)
		return error_set(err, "out of memory for %zu regions", d->regions);
	for (size_t i = 0; i < c->regions->part_count; i++)
		if (c->wanted[i])
			calls[c->pooled[c->regions->parts[i].region]] += c->regions->parts[i].count;
	for (size_t i = 0; i < d->regions; i++) {
		uint64_t cost = calls[i] > EXACT_MAX ? BUCKETS : calls[i];

		if (held && held + cost > EXACT_MAX) {
			if (read_regions(d, in, file, calls, from, i, err) < 0)
				return -1;
			from = i;
			held = 0;
		}
		held += cost;
		if (calls[i] > EXACT_MAX)
			warnings_add(in->notes, "%s: percentiles of '%s' (%s calls) are within 1%%",
				     c->regions->path, d->chosen.pool.names[i],
				     units_count((double)calls[i]).text);
	}
	return read_regions(d, in, file, calls, from, d->regions, err);
}

static int order_regions(struct durations *d, struct warnings *notes, struct error *err)
{
	CLEANUP(free_cleanup) double *totals = calloc(d->regions, sizeof *totals);
	size_t with_calls = 0;

	d->order = calloc(d->regions, sizeof *d->order);
	if (!totals || !d->order)
		return error_set(err, "out of memory for %zu regions", d->regions);
	for (size_t i = 0; i < d->regions; i++) {
		totals[i] = -1;
		for (size_t file = 0; file < d->chosen.file_count; file++)
			if (spread_of(d, file, i)->calls)
				totals[i] = fmax(totals[i], 0) + spread_of(d, file, i)->total;
		with_calls += totals[i] >= 0;
	}
	plot_order(totals, d->regions, d->order);
	d->shown = with_calls < DRAWN_MAX ? with_calls : DRAWN_MAX;
	if (with_calls > d->shown)
		warnings_add(notes,
			     "the figure shows the %zu regions with the largest totals of %s: --include chooses",
			     d->shown, units_count((double)with_calls).text);
	return 0;
}

static int prepare(const struct plot_input *in, void **ret, struct error *err)
{
	struct durations *d = calloc(1, sizeof *d);
	int got;

	if (!d)
		return error_set(err, "out of memory for a figure");
	got = plot_selection_make(&d->chosen, in, err);
	d->regions = d->chosen.pool.name_count;
	if (got == 0) {
		d->spreads = calloc(d->regions * in->file_count, sizeof *d->spreads);
		got = d->spreads ? 0 : error_set(err, "out of memory for %zu regions", d->regions);
	}
	for (size_t i = 0; got == 0 && i < in->file_count; i++)
		got = read_file(d, in, i, err);
	if (got == 0)
		got = order_regions(d, in->notes, err);
	if (got < 0) {
		durations_release(d);
		return -1;
	}
	*ret = d;
	return 0;
}

static void durations_size(const void *data, const struct plot_input *in, double *width, double *height)
{
	const struct durations *d = data;
	double boxes = (double)(d->shown * d->chosen.file_count) * BOX_USUAL + (double)d->shown * 4;
	double others = SHEET_AXIS_HEIGHT + SHEET_NOTE_HEIGHT + 2 * SHEET_MARGIN + (in->title ? SHEET_TITLE_HEIGHT : 0);

	*width = *width > 0 ? *width : SHEET_WIDTH;
	if (!(*height > 0))
		*height = fmin(boxes + others, SHEET_TALLEST);
}

/* Puts "0" before the other ticks, of which there are fewer than their room: int64_t has 19 decades. */
static void tick_zero(struct sheet_ticks *t, double at)
{
	memmove(t->at + 1, t->at, t->n * sizeof *t->at);
	memmove(t->label + 1, t->label, t->n * sizeof *t->label);
	t->at[0] = at;
	snprintf(t->label[0], sizeof t->label[0], "0");
	t->n++;
}

/* The axis: linear from 0, or logarithmic from the least duration above 0. */
static void set_axis(const struct durations *d, struct sheet_axis *axis, struct sheet_ticks *ticks, char *title,
		     size_t size)
{
	int64_t least = INT64_MAX, most = 1;
	struct sheet_unit unit;
	bool zeros = false;

	for (size_t i = 0; i < d->shown; i++) {
		for (size_t file = 0; file < d->chosen.file_count; file++) {
			const struct spread *s = spread_of(d, file, d->order[i]);

			least = s->least && s->least < least ? s->least : least;
			zeros |= s->calls && s->min == 0;
			most = s->max > most ? s->max : most;
		}
	}
	axis->logarithmic = least < most && (double)most / (double)least >= LOG_RATIO;
	if (axis->logarithmic) {
		axis->from = (double)least * (zeros ? 0.2 : 0.8);
		axis->to = (double)most * 1.25;
		sheet_ticks_decades(ticks, (double)least * 0.8, axis->to);
		if (zeros)
			tick_zero(ticks, axis->from);
		snprintf(title, size, "duration of a call (logarithmic%s)", zeros ? "; 0 at the left end" : "");
		return;
	}
	unit = sheet_unit((double)most);
	axis->from = 0;
	axis->to = (double)most * 1.03;
	sheet_ticks_linear(ticks, 0, axis->to / unit.ns, (size_t)fmax(2, axis->width / 50));
	for (size_t i = 0; i < ticks->n; i++)
		ticks->at[i] *= unit.ns;
	snprintf(title, size, "duration of a call (%s)", unit.name);
}

/* A call of no length has no place on a logarithmic axis: it stands at its left end. */
static double place(const struct sheet_axis *axis, double ns)
{
	return axis->logarithmic && ns < axis->from ? axis->x : sheet_axis_at(axis, ns);
}

static void draw_spread(const struct sheet *s, const struct sheet_axis *axis, const struct spread *d,
			struct canvas_colour colour, double y, double height)
{
	double middle = y + height / 2, half = fmin(height * 0.36, 6), mark = fmin(half * 0.6, 2);
	double at[POINTS], extremes[2] = {place(axis, (double)d->min), place(axis, (double)d->max)};

	for (size_t i = 0; i < POINTS; i++)
		at[i] = place(axis, d->at[i]);
	s->on->line(s->c, at[0], middle, at[4], middle, 0.8, sheet_black);
	for (size_t i = 0; i < POINTS; i += POINTS - 1)
		s->on->line(s->c, at[i], middle - half * 0.6, at[i], middle + half * 0.6, 0.8, sheet_black);
	s->on->rect(s->c, at[1], middle - half, fmax(at[3] - at[1], 0.6), 2 * half, colour);
	s->on->path(s->c, (const double[]){at[1], middle - half, at[3], middle - half, at[3], middle + half, at[1],
					   middle + half, at[1], middle - half}, 5, 0.5, sheet_black,
		    (struct canvas_colour){0});
	s->on->line(s->c, at[2], middle - half, at[2], middle + half, 1.4, sheet_black);
	for (size_t i = 0; i < 2; i++)
		s->on->path(s->c, (const double[]){extremes[i] - mark, middle, extremes[i], middle - mark,
						   extremes[i] + mark, middle, extremes[i], middle + mark}, 4, 0,
			    sheet_grey, sheet_grey);
}

static void draw_regions(const struct durations *d, const struct sheet *s, const struct sheet_area *a,
			 const struct sheet_axis *axis, double labels)
{
	size_t files = d->chosen.file_count;
	double band = a->height / (double)d->shown, box = fmin((band - fmin(4, band * 0.2)) / (double)files, 18);

	for (size_t i = 0; i < d->shown; i++) {
		const char *name = d->chosen.pool.names[d->order[i]];
		double y = a->y + (double)i * band;

		if (i > 0 && files > 1)
			s->on->line(s->c, a->x, y, axis->x + axis->width, y, 0.3, sheet_pale);
		if (band >= SHEET_SMALL || i % (size_t)ceil(SHEET_SMALL / band) == 0)
			sheet_text(s, axis->x - 6 - labels, y + band / 2 + SHEET_TEXT * 0.36, fmin(SHEET_TEXT, band),
				   CANVAS_RIGHT, sheet_black, axis->x - 6 - labels - a->x, name);
		for (size_t file = 0; file < files; file++) {
			const struct spread *spread = spread_of(d, file, d->order[i]);
			double top = y + (band - box * (double)files) / 2 + (double)file * box;

			if (labels > 0 && box >= SHEET_SMALL - 1)
				sheet_text(s, axis->x - 4, top + box / 2 + SHEET_SMALL * 0.34, fmin(SHEET_SMALL, box),
					   CANVAS_RIGHT, sheet_grey, labels - 2, d->chosen.files[file].label);
			if (spread->calls)
				draw_spread(s, axis, spread, plot_colour(name), top, box);
		}
	}
}

static int draw(const void *data, const struct plot_input *in, const struct canvas_plugin *on, struct canvas *c,
		double width, double height, struct error *err)
{
	const struct durations *d = data;
	const struct sheet s = {on, c, width, height};
	double names = 0, labels = 0;
	struct sheet_axis axis = {0};
	struct sheet_ticks ticks;
	struct sheet_area a;
	char title[64];

	a = sheet_begin(&s, in->title, "Box 25 to 75%, line median, whiskers 5 to 95%, marks extremes.");
	for (size_t i = 0; i < d->shown; i++)
		names = fmax(names, sheet_text_width(&s, SHEET_TEXT, d->chosen.pool.names[d->order[i]]));
	for (size_t i = 0; d->chosen.file_count > 1 && i < d->chosen.file_count; i++)
		labels = fmax(labels, sheet_text_width(&s, SHEET_SMALL, d->chosen.files[i].label) + 6);
	names = fmin(names, NAME_ROOM) + 1;
	labels = fmin(labels, LABEL_ROOM);
	axis.x = a.x + names + labels + 6;
	axis.width = a.width - names - labels - 12;
	a.height -= SHEET_AXIS_HEIGHT;
	if (axis.width < 20 || a.height < BOX_LEAST * (double)(d->shown * d->chosen.file_count))
		return error_set(err, "the figure is too small for %zu boxes: --width and --height, or fewer regions",
				 d->shown * d->chosen.file_count);
	set_axis(d, &axis, &ticks, title, sizeof title);
	sheet_axis_bottom(&s, &axis, &ticks, a.y + a.height, a.y, title);
	draw_regions(d, &s, &a, &axis, labels);
	return 0;
}

static int write_data(const void *data, enum plot_data_format format, FILE *out, struct error *err)
{
	static const char *const columns[] = {"file",  "region", "calls",  "min_ns",  "p5_ns",	"p25_ns",
					      "p50_ns", "p75_ns", "p95_ns", "max_ns", "mean_ns", NULL};
	const struct durations *d = data;
	struct plot_table t;

	plot_table_begin(&t, out, format, "durations", columns);
	for (size_t i = 0; i < d->regions; i++) {
		for (size_t file = 0; file < d->chosen.file_count; file++) {
			const struct spread *s = spread_of(d, file, d->order[i]);

			if (!s->calls)
				continue;
			plot_table_text(&t, d->chosen.files[file].label);
			plot_table_text(&t, d->chosen.pool.names[d->order[i]]);
			plot_table_integer(&t, (int64_t)s->calls);
			plot_table_integer(&t, s->min);
			for (size_t j = 0; j < POINTS; j++)
				plot_table_number(&t, s->at[j]);
			plot_table_integer(&t, s->max);
			plot_table_number(&t, s->total / (double)s->calls);
		}
	}
	return plot_table_end(&t, err);
}

const struct plot_kind plot_durations = {
	.name = "durations",
	.summary = "how long the calls of each region take",
	.least_files = 1,
	.prepare = prepare,
	.size = durations_size,
	.draw = draw,
	.write_data = write_data,
	.release = durations_release,
};
