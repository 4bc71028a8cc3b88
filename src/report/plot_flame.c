/* Figure flame: time by path of regions, the calls of all ranks and threads added up. */
#include "report/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "model/region_tree.h"
#include "report/plot_selection.h"
#include "report/plot_sheet.h"
#include "report/plot_table.h"
#include "report/region_nest.h"

#define NODES_MAX 65536u
#define DEPTH_MAX 512 /* drawn; the data has all */
#define ROW_USUAL 12.0
#define ROW_HIGH 16.0
#define NARROWEST 0.25 /* points */
#define FILE_GAP 8.0
#define LEGEND_ROWS 2
#define LEGEND_GAP 4.0 /* above it */
#define NAMED_LEAST 14.0 /* points: narrower cells have no text */
#define SEEN_LEAST 1.5   /* and in narrower ones no colour is told */

struct flame_tree {
	struct region_tree paths; /* regions are numbers over all files */
	uint32_t deepest;         /* 1: at the bottom */
	double total;
	uint64_t lost; /* calls whose path found no room */
	size_t lanes;
};

struct flame {
	struct plot_selection chosen;
	struct flame_tree *trees; /* by file */
};

static void flame_release(void *data)
{
	struct flame *f = data;

	if (!f)
		return;
	for (size_t i = 0; f->trees && i < f->chosen.file_count; i++)
		region_tree_release(&f->trees[i].paths);
	free(f->trees);
	plot_selection_release(&f->chosen);
	free(f);
}

struct flame_reading {
	struct flame_tree *tree;
	const struct plot_chosen *c;
	struct nest nest;
	bool by_number;
};

/* The node of a path, made where it is new; the root where there is no room for it. */
static int find_node(struct flame_tree *t, uint32_t parent, uint32_t region, uint32_t *ret, struct error *err)
{
	*ret = region_tree_find(&t->paths, parent, region);
	if (*ret || t->paths.count > NODES_MAX)
		return 0;
	*ret = region_tree_node(&t->paths, parent, region, err);
	if (!*ret)
		return -1;
	if (t->paths.nodes[*ret].depth > t->deepest)
		t->deepest = t->paths.nodes[*ret].depth;
	return 0;
}

static int take_call(void *context, const struct region_call *c, struct error *err)
{
	struct flame_reading *f = context;
	struct flame_tree *t = f->tree;
	const struct region_part *part = &f->c->regions->parts[c->part];
	struct nest_entry *entry;
	uint32_t parent, node;
	size_t lane;

	if (nest_enter(&f->nest, part->rank, c, f->by_number, &lane, &entry, &parent, err) < 0)
		return -1;
	parent = parent == UINT32_MAX ? REGION_TREE_ROOT : parent;
	if (find_node(t, parent, f->c->pooled[part->region], &node, err) < 0)
		return -1;
	/* Without room a call is part of the one around it, as are those within. */
	entry->node = node == REGION_TREE_ROOT ? parent : node;
	if (node == REGION_TREE_ROOT) {
		t->lost++;
		return 0;
	}
	region_tree_add(&t->paths, node, c->end - c->start);
	if (parent == REGION_TREE_ROOT)
		t->total += (double)(c->end - c->start);
	return 0;
}

static int read_file(struct flame *f, const struct plot_input *in, size_t file, struct error *err)
{
	const struct plot_chosen *c = &f->chosen.files[file];
	struct flame_reading reading = {.tree = &f->trees[file], .c = c};
	struct region_visit visit = {.from = INT64_MIN, .to = INT64_MAX, .call = take_call, .context = &reading};
	CLEANUP(region_order_release) struct region_order order;
	int got;

	reading.by_number = c->regions->columns & 1u << REGION_PARENT;
	visit.columns = reading.by_number ? 1u << REGION_CALL | 1u << REGION_PARENT : 0;
	region_order_init(&order);
	nest_init(&reading.nest);
	got = region_order_by_time(&order, in->files[file], c->wanted, &c->span, err);
	if (got == 0)
		got = region_order_visit(&order, &visit, err);
	if (got == 0)
		got = region_tree_finish(&reading.tree->paths, REGION_TREE_AS_MADE, err);
	reading.tree->lanes = reading.nest.threads.count;
	if (got == 0 && reading.tree->lost)
		warnings_add(in->notes,
			     "%s: there are more than %s paths; calls on others, which count as part of the calls"
			     " around them: %s",
			     c->regions->path, units_count(NODES_MAX).text,
			     units_count((double)reading.tree->lost).text);
	if (got == 0 && !reading.by_number && reading.nest.overlaps)
		warnings_add(in->notes,
			     "%s: calls that ended after the call that they began in, where the file does not say what"
			     " called them: %s. They count where their time lies within",
			     c->regions->path, units_count((double)reading.nest.overlaps).text);
	nest_release(&reading.nest);
	return got;
}

static int prepare(const struct plot_input *in, void **ret, struct error *err)
{
	struct flame *f = calloc(1, sizeof *f);
	int got;

	if (!f)
		return error_set(err, "out of memory for a figure");
	f->trees = calloc(in->file_count, sizeof *f->trees);
	got = f->trees ? 0 : error_set(err, "out of memory for %zu files", in->file_count);
	if (got == 0)
		got = plot_selection_make(&f->chosen, in, err);
	for (size_t i = 0; got == 0 && i < in->file_count; i++)
		got = read_file(f, in, i, err);
	if (got < 0) {
		flame_release(f);
		return -1;
	}
	*ret = f;
	return 0;
}

/* Of a tree, its line of the whole included. */
static size_t tree_rows(const struct flame_tree *t)
{
	return (t->deepest < DEPTH_MAX ? t->deepest : DEPTH_MAX) + 1;
}

static size_t all_rows(const struct flame *f)
{
	size_t rows = 0;

	for (size_t i = 0; i < f->chosen.file_count; i++)
		rows += tree_rows(&f->trees[i]);
	return rows;
}

static uint32_t first_of(const struct flame_tree *t)
{
	return t->paths.count ? t->paths.nodes[REGION_TREE_ROOT].first_child : 0;
}

static double widest(const struct flame *f)
{
	double most = 0;

	for (size_t i = 0; i < f->chosen.file_count; i++)
		most = fmax(most, f->trees[i].total);
	return most > 0 ? most : 1;
}

/* Regions that have cells wide enough to be seen, but none with room for the whole name: what a legend is for. */
struct nameless {
	const struct flame *f;
	const struct flame_tree *tree;
	double per_ns;
	double *seen; /* ns by region */
	bool *named;
};

static void look_at_children(const struct nameless *l, uint32_t first, double x, double end, uint32_t depth)
{
	for (uint32_t i = first; i && depth < DEPTH_MAX; i = l->tree->paths.nodes[i].next) {
		const struct region_tree_node *n = &l->tree->paths.nodes[i];
		double width = fmin((double)n->total * l->per_ns, end - x);

		if (width < SEEN_LEAST) {
			x += width < NARROWEST ? 0 : width;
			continue;
		}
		l->seen[n->region] += (double)n->total;
		l->named[n->region] |=
			width >= NAMED_LEAST &&
			sheet_text_about(SHEET_SMALL, l->f->chosen.pool.names[n->region]) <= width - 4;
		look_at_children(l, n->first_child, x, x + width, depth + 1);
		x += width;
	}
}

/* For a figure whose axis is so wide; owned. NULL: out of memory. */
static struct sheet_legend_item *legend_items(const struct flame *f, double width, size_t *ret_count)
{
	size_t count = f->chosen.pool.name_count;
	CLEANUP(free_cleanup) double *seen = calloc(count + 1, sizeof *seen);
	CLEANUP(free_cleanup) bool *named = calloc(count + 1, sizeof *named);
	struct nameless look = {.f = f, .per_ns = width / widest(f), .seen = seen, .named = named};

	*ret_count = 0;
	if (!seen || !named)
		return NULL;
	for (size_t i = 0; i < f->chosen.file_count; i++) {
		look.tree = &f->trees[i];
		look_at_children(&look, first_of(look.tree), 0, look.tree->total * look.per_ns, 0);
	}
	for (size_t i = 0; i < count; i++)
		seen[i] = named[i] ? 0 : seen[i];
	return plot_legend_items(&f->chosen, seen, ret_count);
}

static void flame_size(const void *data, const struct plot_input *in, double *width, double *height)
{
	const struct flame *f = data;
	double others = (double)f->chosen.file_count * FILE_GAP + SHEET_AXIS_HEIGHT + 2 * SHEET_MARGIN +
			(in->title ? SHEET_TITLE_HEIGHT : 0);
	double high, usual;
	CLEANUP(free_cleanup) struct sheet_legend_item *items = NULL;
	size_t count;

	*width = *width > 0 ? *width : SHEET_WIDTH;
	items = legend_items(f, *width - 2 * SHEET_MARGIN - 4, &count);
	others += count ? LEGEND_GAP + sheet_legend_about(*width - 2 * SHEET_MARGIN, LEGEND_ROWS, items, count) : 0;
	high = (double)all_rows(f) * ROW_HIGH + others;
	usual = (double)all_rows(f) * ROW_USUAL + others;
	if (!(*height > 0))
		*height = fmin(fmax(usual, fmin(high, SHEET_HEIGHT)), SHEET_TALLEST);
}

struct flame_drawing {
	const struct flame *f;
	const struct sheet *s;
	const struct flame_tree *tree;
	double per_ns, bottom, row; /* bottom: lower edge of depth 0 */
	double all;                 /* ns that are 100% */
};

static void draw_cell(const struct flame_drawing *d, double x, double width, double y, struct canvas_colour colour,
		      const char *name, double share)
{
	char text[280];

	d->s->on->rect(d->s->c, x, y, width > 2 ? width - 0.4 : width, d->row > 3 ? d->row - 0.5 : d->row, colour);
	if (d->row < SHEET_SMALL + 0.5 || width < NAMED_LEAST)
		return;
	snprintf(text, sizeof text, "%.240s  %.1f%%", name, share * 100);
	if (sheet_text_width(d->s, SHEET_SMALL, text) > width - 4)
		snprintf(text, sizeof text, "%.240s", name);
	sheet_text(d->s, x + 2, y + d->row / 2 + SHEET_SMALL * 0.36, SHEET_SMALL, CANVAS_LEFT, sheet_contrast(colour),
		   width - 4, text);
}

/* The cells of one parent's children from x on, never past `end`: what overlaps in time may add up to more. Children
 * that are too narrow to be seen are one grey cell together, at the right. */
static void draw_children(const struct flame_drawing *d, uint32_t first, double x, double end, uint32_t depth)
{
	double y = d->bottom - (double)(depth + 1) * d->row, narrow = 0;

	if (depth >= DEPTH_MAX)
		return;
	for (uint32_t i = first; i; i = d->tree->paths.nodes[i].next) {
		const struct region_tree_node *n = &d->tree->paths.nodes[i];
		double width = fmin((double)n->total * d->per_ns, end - x);
		const char *name = d->f->chosen.pool.names[n->region];

		if (width < NARROWEST) {
			narrow += fmax(width, 0);
			continue;
		}
		draw_cell(d, x, width, y, plot_colour(name), name, (double)n->total / d->all);
		draw_children(d, n->first_child, x, x + width, depth + 1);
		x += width;
	}
	narrow = fmin(narrow, end - x);
	if (narrow >= NARROWEST)
		d->s->on->rect(d->s->c, x, y, narrow, d->row > 3 ? d->row - 0.5 : d->row, sheet_grey);
}

static void describe(const struct flame *f, size_t file, char *text, size_t size)
{
	const struct flame_tree *t = &f->trees[file];
	struct sheet_unit unit = sheet_unit(t->total);

	snprintf(text, size, "%.160s: %.4g %s in %zu %s", f->chosen.files[file].label, t->total / unit.ns, unit.name,
		 t->lanes, t->lanes == 1 ? "thread" : "threads or ranks");
}

static int draw(const void *data, const struct plot_input *in, const struct canvas_plugin *on, struct canvas *c,
		double width, double height, struct error *err)
{
	static const struct canvas_colour ground = {236, 236, 236, 255};
	const struct flame *f = data;
	const struct sheet s = {on, c, width, height};
	struct sheet_unit unit = sheet_unit(widest(f));
	struct sheet_area a = sheet_begin(&s, in->title, NULL);
	struct flame_drawing d = {.f = f, .s = &s};
	struct sheet_axis axis = {.x = a.x, .width = a.width - 4, .to = widest(f) / unit.ns};
	struct sheet_ticks ticks;
	char title[96];
	double y = a.y;
	size_t count;
	CLEANUP(free_cleanup) struct sheet_legend_item *items = legend_items(f, axis.width, &count);

	if (!items)
		return error_set(err, "out of memory for %zu regions", f->chosen.pool.name_count);
	a.height -= SHEET_AXIS_HEIGHT;
	if (count)
		a.height -= LEGEND_GAP + sheet_legend(&s, SHEET_MARGIN, 0, a.width, LEGEND_ROWS, items, count, false);
	d.row = fmin((a.height - FILE_GAP * (double)f->chosen.file_count) / (double)all_rows(f), ROW_HIGH);
	if (d.row < 0.25 || axis.width < 20)
		return error_set(err, "the figure is too small for %zu rows: --width and --height", all_rows(f));
	d.per_ns = axis.width / widest(f);
	for (size_t i = 0; i < f->chosen.file_count; i++) {
		char text[256];

		d.tree = &f->trees[i];
		d.all = d.tree->total > 0 ? d.tree->total : 1;
		d.bottom = y + (double)(tree_rows(d.tree) - 1) * d.row;
		describe(f, i, text, sizeof text);
		on->rect(c, axis.x, d.bottom, d.tree->total * d.per_ns, d.row > 3 ? d.row - 0.5 : d.row, ground);
		if (d.row >= SHEET_SMALL + 0.5)
			sheet_text(&s, axis.x + 2, d.bottom + d.row / 2 + SHEET_SMALL * 0.36, SHEET_SMALL, CANVAS_LEFT,
				   sheet_black, axis.width - 4, text);
		draw_children(&d, first_of(d.tree), axis.x, axis.x + d.tree->total * d.per_ns, 0);
		y = d.bottom + d.row + FILE_GAP;
	}
	sheet_ticks_linear(&ticks, axis.from, axis.to, (size_t)fmax(2, axis.width / 50));
	snprintf(title, sizeof title, "time, all ranks and threads added up (%s)", unit.name);
	sheet_axis_bottom(&s, &axis, &ticks, y - FILE_GAP / 2, y - FILE_GAP / 2, title);
	y += SHEET_AXIS_HEIGHT + LEGEND_GAP - FILE_GAP / 2;
	sheet_legend(&s, SHEET_MARGIN, y, a.width, LEGEND_ROWS, items, count, true);
	return 0;
}

static int write_data(const void *data, enum plot_data_format format, FILE *out, struct error *err)
{
	static const char *const columns[] = {"file",  "node",	   "parent",	   "depth", "region",
					      "calls", "total_ns", "exclusive_ns", NULL};
	const struct flame *f = data;
	struct plot_table t;

	plot_table_begin(&t, out, format, "flame", columns);
	for (size_t i = 0; i < f->chosen.file_count; i++) {
		for (uint32_t j = 1; j < f->trees[i].paths.count; j++) {
			const struct region_tree_node *n = &f->trees[i].paths.nodes[j];

			plot_table_text(&t, f->chosen.files[i].label);
			plot_table_integer(&t, j - 1);
			if (n->parent == REGION_TREE_ROOT)
				plot_table_unknown(&t);
			else
				plot_table_integer(&t, n->parent - 1);
			plot_table_integer(&t, n->depth - 1);
			plot_table_text(&t, f->chosen.pool.names[n->region]);
			plot_table_integer(&t, (int64_t)n->calls);
			plot_table_integer(&t, n->total);
			plot_table_integer(&t, n->exclusive);
		}
	}
	return plot_table_end(&t, err);
}

const struct plot_kind plot_flame = {
	.name = "flame",
	.summary = "time by path of regions, all ranks and threads added up",
	.least_files = 1,
	.prepare = prepare,
	.size = flame_size,
	.draw = draw,
	.write_data = write_data,
	.release = flame_release,
};
