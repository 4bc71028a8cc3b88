/* Figure gantt: what each thread of each rank did when, nested calls on top of each other. */
#include "report/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "report/plot_boxes.h"
#include "report/plot_selection.h"
#include "report/plot_sheet.h"
#include "report/plot_table.h"
#include "report/region_nest.h"

#define CELLS 1000     /* over the width of the figure: half a point at its usual width */
#define BOXES_MAX 20000
#define LANES_MAX 256
#define DEPTH_MAX 64
#define ROW_LOW 2.0    /* points */
#define ROW_USUAL 10.0
#define ROW_HIGH 16.0
#define LANE_GAP 3.0
#define LEGEND_ROWS 3
#define NAME_ROOM 92.0 /* of a lane */

struct gantt_lane {
	size_t file;
	uint32_t rank;
	int64_t thread;
	char *name;
	size_t rows[DEPTH_MAX], row_count;
	int64_t row_ends[DEPTH_MAX]; /* where the last call on the row ends */
};

struct gantt {
	struct plot_selection chosen;
	struct boxes boxes;
	struct gantt_lane *lanes;
	size_t lane_count;
	double *totals;   /* ns by region, as drawn */
	int64_t from, to; /* ns from each file's first start */
};

/* Reading one file. */
struct gantt_reading {
	struct gantt *g;
	const struct plot_chosen *c;
	struct nest nest;
	size_t file, first_lane;
	int64_t origin; /* left edge */
	int64_t width;
	uint64_t too_deep, hidden;
};

static void gantt_release(void *data)
{
	struct gantt *g = data;

	if (!g)
		return;
	for (size_t i = 0; i < g->lane_count; i++)
		free(g->lanes[i].name);
	free(g->lanes);
	free(g->totals);
	boxes_release(&g->boxes);
	plot_selection_release(&g->chosen);
	free(g);
}

/* Threads of a rank are often of one name, that of the program: then the index tells which is meant. */
static char *lane_name(const struct regions *r, uint32_t rank, int64_t thread)
{
	const char *of = "";
	char *name = NULL;
	bool shared = false;
	int made;

	for (size_t i = 0; thread >= 0 && i < r->thread_count; i++)
		if (r->threads[i].rank == rank && r->threads[i].index == thread && r->threads[i].name)
			of = r->threads[i].name;
	for (size_t i = 0; *of && i < r->thread_count; i++)
		shared |= r->threads[i].rank == rank && r->threads[i].index != thread && r->threads[i].name &&
			  strcmp(r->threads[i].name, of) == 0;
	if (*of && !shared)
		made = asprintf(&name, "rank %" PRIu32 " %s", rank, of);
	else if (thread >= 0)
		made = asprintf(&name, "rank %" PRIu32 " %s %" PRId64, rank, *of ? of : "thread", thread);
	else
		made = asprintf(&name, "rank %" PRIu32, rank);
	return made < 0 ? NULL : name;
}

static int add_lane(struct gantt_reading *g, uint32_t rank, int64_t thread, struct error *err)
{
	struct gantt_lane *lanes = reallocarray(g->g->lanes, g->g->lane_count + 1, sizeof *lanes);
	struct gantt_lane *lane;

	if (!lanes)
		return error_set(err, "out of memory for %zu lanes", g->g->lane_count + 1);
	g->g->lanes = lanes;
	lane = &lanes[g->g->lane_count];
	*lane = (struct gantt_lane){
		.file = g->file, .rank = rank, .thread = thread, .name = lane_name(g->c->regions, rank, thread)};
	if (!lane->name)
		return error_set(err, "out of memory for %zu lanes", g->g->lane_count + 1);
	g->g->lane_count++;
	return 0;
}

/* The row of a call: the lowest above the call that it lies in where nothing else is at that time. DEPTH_MAX: none. */
static uint32_t find_row(const struct gantt_lane *lane, const struct region_call *c, uint32_t parent_row)
{
	uint32_t row = parent_row == UINT32_MAX ? 0 : parent_row + 1;

	while (row < lane->row_count && lane->row_ends[row] > c->start)
		row++;
	return row < DEPTH_MAX ? row : DEPTH_MAX;
}

static int draw_on_row(struct gantt_reading *g, struct gantt_lane *lane, uint32_t row, const struct region_call *c,
		       struct error *err)
{
	struct box box = {.calls = 1, .region = g->c->pooled[g->c->regions->parts[c->part].region]};

	while (lane->row_count <= row) {
		if (boxes_add_row(&g->g->boxes, &lane->rows[lane->row_count], err) < 0)
			return -1;
		lane->row_ends[lane->row_count++] = INT64_MIN;
	}
	lane->row_ends[row] = c->end;
	box.start = c->start > g->origin ? c->start - g->origin : 0;
	box.end = c->end - g->origin < g->width ? c->end - g->origin : g->width;
	box.busy = box.end - box.start;
	g->g->totals[box.region] += (double)box.busy;
	return boxes_add(&g->g->boxes, lane->rows[row], &box, err);
}

static int take_call(void *context, const struct region_call *c, struct error *err)
{
	struct gantt_reading *g = context;
	uint32_t rank = g->c->regions->parts[c->part].rank, parent_row;
	struct nest_entry *entry;
	size_t index;

	/* By time alone, whatever the file says: boxes that lie in each other must be drawn so. */
	if (nest_enter(&g->nest, rank, c, false, &index, &entry, &parent_row, err) < 0)
		return -1;
	index += g->first_lane;
	if (index >= LANES_MAX) {
		g->hidden++;
		return 0;
	}
	if (index >= g->g->lane_count &&
	    add_lane(g, rank, g->nest.threads.items[index - g->first_lane].thread, err) < 0)
		return -1;
	entry->node = find_row(&g->g->lanes[index], c, parent_row);
	if (entry->node >= DEPTH_MAX) {
		g->too_deep++;
		return 0;
	}
	return draw_on_row(g, &g->g->lanes[index], entry->node, c, err);
}

static int compare_lanes(const void *left, const void *right)
{
	const struct gantt_lane *a = left, *b = right;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

static void note_what_is_missing(const struct gantt_reading *g, struct warnings *notes)
{
	const struct regions *r = g->c->regions;

	if (g->hidden)
		warnings_add(notes, "%s: the figure has room for %d lanes; left out: %s; --ranks chooses", r->path,
			     LANES_MAX,
			     units_count((double)(g->first_lane + g->nest.threads.count - LANES_MAX)).text);
	if (g->too_deep)
		warnings_add(notes, "%s: calls that found no place in the %d rows of a lane and are left out: %s",
			     r->path, DEPTH_MAX, units_count((double)g->too_deep).text);
	if (g->nest.overlaps)
		warnings_add(notes, "%s: calls that ended after the call that they began in: %s%s", r->path,
			     units_count((double)g->nest.overlaps).text,
			     r->columns & 1u << REGION_THREAD ? "" : "; the file does not tell threads apart");
}

static int read_file(struct gantt *g, const struct plot_input *in, size_t file, struct error *err)
{
	const struct plot_chosen *c = &g->chosen.files[file];
	struct gantt_reading reading = {.g = g,
					.c = c,
					.file = file,
					.first_lane = g->lane_count,
					.origin = c->span.first + g->from,
					.width = g->to - g->from};
	struct region_visit visit = {.from = reading.origin,
				     .to = reading.origin + reading.width,
				     .call = take_call,
				     .context = &reading};
	CLEANUP(region_order_release) struct region_order order;
	int got;

	region_order_init(&order);
	nest_init(&reading.nest);
	got = region_order_by_time(&order, in->files[file], c->wanted, &c->span, err);
	if (got == 0)
		got = region_order_visit(&order, &visit, err);
	if (got == 0)
		note_what_is_missing(&reading, in->notes);
	nest_release(&reading.nest);
	return got;
}

/* The window that was asked for, within what there is. */
static int set_window(struct gantt *g, const struct plot_input *in, struct error *err)
{
	int64_t longest = 1;

	for (size_t i = 0; i < g->chosen.file_count; i++) {
		const struct region_span *s = &g->chosen.files[i].span;

		longest = s->last - s->first > longest ? s->last - s->first : longest;
	}
	g->to = longest;
	if (!isnan(in->from) && in->from * 1e9 >= (double)longest)
		return error_set(err, "option '--from': the last call ends at %.9g s", (double)longest / 1e9);
	if (!isnan(in->from))
		g->from = (int64_t)(in->from * 1e9);
	if (!isnan(in->to) && in->to * 1e9 < (double)longest)
		g->to = (int64_t)ceil(in->to * 1e9);
	if (g->to <= g->from)
		return error_set(err, "option '--to': the window ends before it begins");
	return 0;
}

static int prepare(const struct plot_input *in, void **ret, struct error *err)
{
	struct gantt *g = calloc(1, sizeof *g);
	int got;

	if (!g)
		return error_set(err, "out of memory for a figure");
	got = plot_selection_make(&g->chosen, in, err);
	if (got == 0)
		got = set_window(g, in, err);
	boxes_init(&g->boxes, (g->to - g->from) / CELLS);
	if (got == 0) {
		g->totals = calloc(g->chosen.pool.name_count, sizeof *g->totals);
		got = g->totals ? 0 : error_set(err, "out of memory for %zu regions", g->chosen.pool.name_count);
	}
	for (size_t i = 0; got == 0 && i < in->file_count; i++)
		got = read_file(g, in, i, err);
	if (got == 0)
		got = boxes_finish(&g->boxes, BOXES_MAX, err);
	if (got == 0 && g->lane_count == 0)
		got = error_set(err, "there are no calls between '--from' and '--to'");
	if (got < 0) {
		gantt_release(g);
		return -1;
	}
	qsort(g->lanes, g->lane_count, sizeof *g->lanes, compare_lanes);
	*ret = g;
	return 0;
}

static size_t rows_of(const struct gantt *g)
{
	size_t rows = 0;

	for (size_t i = 0; i < g->lane_count; i++)
		rows += g->lanes[i].row_count;
	return rows;
}

/* Where several files stand above each other, each has its name over its lanes. */
static double headings_height(const struct gantt *g)
{
	return g->chosen.file_count > 1 ? (double)g->chosen.file_count * (SHEET_TEXT + 5) : 0;
}

static bool has_merged(const struct gantt *g)
{
	for (size_t i = 0; i < g->boxes.count; i++)
		for (size_t j = 0; j < g->boxes.rows[i].count; j++)
			if (g->boxes.rows[i].boxes[j].calls > 1 || g->boxes.rows[i].boxes[j].others)
				return true;
	return false;
}

/* As high as its rows like to be; many rows are lower, and at last there is no higher page. */
static void gantt_size(const void *data, const struct plot_input *in, double *width, double *height)
{
	const struct gantt *g = data;
	size_t count;
	CLEANUP(free_cleanup) struct sheet_legend_item *items = plot_legend_items(&g->chosen, g->totals, &count);
	double others = (double)g->lane_count * LANE_GAP + headings_height(g) + SHEET_AXIS_HEIGHT + 2 * SHEET_MARGIN +
			4 + (has_merged(g) ? SHEET_NOTE_HEIGHT : 0) + (in->title ? SHEET_TITLE_HEIGHT : 0);
	double high, usual;

	*width = *width > 0 ? *width : SHEET_WIDTH;
	others += sheet_legend_about(*width - 2 * SHEET_MARGIN, LEGEND_ROWS, items, count);
	high = (double)rows_of(g) * ROW_HIGH + others;
	usual = (double)rows_of(g) * ROW_USUAL + others;
	if (!(*height > 0))
		*height = fmin(fmax(usual, fmin(high, SHEET_HEIGHT)), SHEET_TALLEST);
}

static void draw_box(const struct gantt *g, const struct sheet *s, const struct box *b, const struct sheet_axis *axis,
		     double unit, double y, double height)
{
	double left = sheet_axis_at(axis, (double)(g->from + b->start) / unit);
	double width = sheet_axis_at(axis, (double)(g->from + b->end) / unit) - left;
	const char *name = g->chosen.pool.names[b->region];
	struct canvas_colour colour = plot_colour(name);
	char merged[256];

	if (b->calls > 1 || b->others)
		colour.a = 150;
	/* A thread of white between boxes, where there is room for one. */
	s->on->rect(s->c, left, y, width > 2 ? width - 0.3 : fmax(width, 0.25), height > 3 ? height - 0.5 : height,
		    colour);
	if (height < SHEET_SMALL + 0.5 || width < 12)
		return;
	if (b->calls > 1) {
		snprintf(merged, sizeof merged, "%.200s \xc3\x97%s", name, units_count((double)b->calls).text);
		name = merged;
	}
	sheet_text(s, left + 2, y + height / 2 + SHEET_SMALL * 0.36, fmin(SHEET_TEXT, height - 1), CANVAS_LEFT,
		   sheet_contrast(colour), width - 4, name);
}

static void draw_lane(const struct gantt *g, const struct sheet *s, const struct gantt_lane *lane,
		      const struct sheet_axis *axis, double unit, double y, double row_height)
{
	double height = (double)lane->row_count * row_height;

	for (size_t i = 0; i < lane->row_count; i++) {
		const struct box_row *row = &g->boxes.rows[lane->rows[i]];

		for (size_t j = 0; j < row->count; j++)
			draw_box(g, s, &row->boxes[j], axis, unit, y + height - (double)(i + 1) * row_height,
				 row_height);
	}
	s->on->line(s->c, axis->x, y + height, axis->x + axis->width, y + height, 0.3, sheet_pale);
}

/* Lanes from the top; where rows are low, only every so many lanes have their names. */
static void draw_lanes(const struct gantt *g, const struct sheet *s, const struct sheet_area *a,
		       const struct sheet_axis *axis, double unit)
{
	double room = a->height - headings_height(g), named_until = -1;
	double gap = fmin(LANE_GAP, room * 0.2 / (double)g->lane_count);
	double row = fmin((room - gap * (double)g->lane_count) / (double)rows_of(g), ROW_HIGH);
	double y = a->y;

	for (size_t i = 0; i < g->lane_count; i++) {
		const struct gantt_lane *lane = &g->lanes[i];
		double height = (double)lane->row_count * row, middle = y + height / 2;

		if (g->chosen.file_count > 1 && (i == 0 || lane->file != g->lanes[i - 1].file)) {
			sheet_text(s, a->x, y + SHEET_TEXT, SHEET_TEXT, CANVAS_LEFT, sheet_black, a->width,
				   g->chosen.files[lane->file].label);
			y += SHEET_TEXT + 5;
			middle = y + height / 2;
		}
		draw_lane(g, s, lane, axis, unit, y, row);
		if (middle - SHEET_SMALL / 2 > named_until) {
			sheet_text(s, axis->x - 4, middle + SHEET_SMALL * 0.36, SHEET_SMALL, CANVAS_RIGHT, sheet_black,
				   axis->x - 4 - a->x, lane->name);
			named_until = middle + SHEET_SMALL / 2 + 1;
		}
		y += height + gap;
	}
}

static double names_width(const struct gantt *g, const struct sheet *s)
{
	double most = 0;

	for (size_t i = 0; i < g->lane_count; i++)
		most = fmax(most, sheet_text_width(s, SHEET_SMALL, g->lanes[i].name));
	return fmin(most, NAME_ROOM) + 6;
}

static int draw(const void *data, const struct plot_input *in, const struct canvas_plugin *on, struct canvas *c,
		double width, double height, struct error *err)
{
	const struct gantt *g = data;
	const struct sheet s = {on, c, width, height};
	struct sheet_unit unit = sheet_unit((double)(g->to - g->from));
	struct sheet_area a;
	struct sheet_axis axis;
	struct sheet_ticks ticks;
	char title[64], note[128];
	size_t count;
	CLEANUP(free_cleanup) struct sheet_legend_item *items = plot_legend_items(&g->chosen, g->totals, &count);
	double names = names_width(g, &s), legend_width = width - 2 * SHEET_MARGIN, legend_height;

	if (!items)
		return error_set(err, "out of memory for %zu regions", g->chosen.pool.name_count);
	legend_height = sheet_legend(&s, SHEET_MARGIN, 0, legend_width, LEGEND_ROWS, items, count, false);
	snprintf(note, sizeof note, "Paler boxes: calls narrower than %.3g %s, merged.",
		 (double)g->boxes.cell / sheet_unit((double)g->boxes.cell).ns, sheet_unit((double)g->boxes.cell).name);
	a = sheet_begin(&s, in->title, has_merged(g) ? note : NULL);
	a.height -= SHEET_AXIS_HEIGHT + legend_height + 4;
	axis = (struct sheet_axis){.x = a.x + names,
				   .width = a.width - names - 4,
				   .from = (double)g->from / unit.ns,
				   .to = (double)g->to / unit.ns};
	if (axis.width < 20 || a.height < ROW_LOW)
		return error_set(err, "the figure is too small: --width and --height");
	sheet_ticks_linear(&ticks, axis.from, axis.to, (size_t)fmax(2, axis.width / 50));
	snprintf(title, sizeof title, "time since the first region began (%s)", unit.name);
	sheet_axis_bottom(&s, &axis, &ticks, a.y + a.height, a.y, title);
	draw_lanes(g, &s, &a, &axis, unit.ns);
	sheet_legend(&s, SHEET_MARGIN, a.y + a.height + SHEET_AXIS_HEIGHT + 4, legend_width, LEGEND_ROWS, items, count,
		     true);
	return 0;
}

static int write_data(const void *data, enum plot_data_format format, FILE *out, struct error *err)
{
	static const char *const columns[] = {"file",   "rank",    "thread", "depth",       "region",
					      "start_ns", "end_ns", "calls",  "busy_ns", "other_calls", NULL};
	const struct gantt *g = data;
	struct plot_table t;

	plot_table_begin(&t, out, format, "gantt", columns);
	for (size_t i = 0; i < g->lane_count; i++) {
		for (size_t depth = 0; depth < g->lanes[i].row_count; depth++) {
			const struct box_row *row = &g->boxes.rows[g->lanes[i].rows[depth]];

			for (size_t j = 0; j < row->count; j++) {
				const struct box *b = &row->boxes[j];

				plot_table_text(&t, g->chosen.files[g->lanes[i].file].label);
				plot_table_integer(&t, g->lanes[i].rank);
				plot_table_integer(&t, g->lanes[i].thread);
				plot_table_integer(&t, (int64_t)depth);
				plot_table_text(&t, g->chosen.pool.names[b->region]);
				plot_table_integer(&t, g->from + b->start);
				plot_table_integer(&t, g->from + b->end);
				plot_table_integer(&t, (int64_t)b->calls);
				plot_table_integer(&t, b->busy);
				plot_table_integer(&t, (int64_t)b->others);
			}
		}
	}
	return plot_table_end(&t, err);
}

const struct plot_kind plot_gantt = {
	.name = "gantt",
	.summary = "what each thread of each rank did when",
	.least_files = 1,
	.windowed = true,
	.prepare = prepare,
	.size = gantt_size,
	.draw = draw,
	.write_data = write_data,
	.release = gantt_release,
};
