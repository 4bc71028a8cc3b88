/* Figure flame: time by path of regions, the calls of all ranks and threads added up. */
#include "report/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "report/plot_selection.h"
#include "report/plot_sheet.h"
#include "report/plot_table.h"

#define NODES_MAX 65536u
#define NO_NODE UINT32_MAX
#define DEPTH_MAX 512 /* drawn; the data has all */
#define ROW_USUAL 12.0
#define ROW_HIGH 16.0
#define NARROWEST 0.25 /* points */
#define FILE_GAP 8.0

struct flame_node {
	uint32_t parent, region; /* parent: NO_NODE at the bottom */
	uint32_t first_child, last_child, next; /* in the order of their first calls */
	uint32_t depth;
	uint64_t calls;
	double total, children; /* ns */
};

struct flame_tree {
	struct flame_node *nodes;
	uint32_t count, room;
	uint32_t *slots; /* hash of parent and region; index + 1 */
	size_t slot_count;
	uint32_t first, last; /* at the bottom */
	uint32_t deepest;
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
	for (size_t i = 0; f->trees && i < f->chosen.file_count; i++) {
		free(f->trees[i].nodes);
		free(f->trees[i].slots);
	}
	free(f->trees);
	plot_selection_release(&f->chosen);
	free(f);
}

static size_t slot_of(const struct flame_tree *t, uint32_t parent, uint32_t region)
{
	uint64_t h = ((uint64_t)parent << 32 | region) * 0x9e3779b97f4a7c15u;
	size_t at = (size_t)(h >> 32) & (t->slot_count - 1);

	while (t->slots[at] &&
	       (t->nodes[t->slots[at] - 1].parent != parent || t->nodes[t->slots[at] - 1].region != region))
		at = (at + 1) & (t->slot_count - 1);
	return at;
}

static int grow(struct flame_tree *t, struct error *err)
{
	uint32_t room = t->room ? 2 * t->room : 256;
	struct flame_node *nodes = reallocarray(t->nodes, room, sizeof *nodes);

	if (!nodes)
		return error_set(err, "out of memory for %" PRIu32 " paths", room);
	t->nodes = nodes;
	free(t->slots);
	t->slots = calloc(4 * (size_t)room, sizeof *t->slots);
	if (!t->slots)
		return error_set(err, "out of memory for %" PRIu32 " paths", room);
	t->slot_count = 4 * (size_t)room;
	t->room = room;
	for (uint32_t i = 0; i < t->count; i++)
		t->slots[slot_of(t, nodes[i].parent, nodes[i].region)] = i + 1;
	return 0;
}

static uint32_t add_node(struct flame_tree *t, uint32_t parent, uint32_t region)
{
	uint32_t index = t->count++;
	uint32_t *first = parent == NO_NODE ? &t->first : &t->nodes[parent].first_child;
	uint32_t *last = parent == NO_NODE ? &t->last : &t->nodes[parent].last_child;

	t->nodes[index] = (struct flame_node){.parent = parent,
					      .region = region,
					      .first_child = NO_NODE,
					      .last_child = NO_NODE,
					      .next = NO_NODE,
					      .depth = parent == NO_NODE ? 0 : t->nodes[parent].depth + 1};
	if (*first == NO_NODE)
		*first = index;
	else
		t->nodes[*last].next = index;
	*last = index;
	if (t->nodes[index].depth > t->deepest)
		t->deepest = t->nodes[index].depth;
	return index;
}

/* The node of a path, made where it is new; NO_NODE where there is no room for it. */
static int find_node(struct flame_tree *t, uint32_t parent, uint32_t region, uint32_t *ret, struct error *err)
{
	size_t slot;

	if (t->count == t->room && grow(t, err) < 0)
		return -1;
	slot = slot_of(t, parent, region);
	if (!t->slots[slot]) {
		if (t->count >= NODES_MAX) {
			*ret = NO_NODE;
			return 0;
		}
		t->slots[slot] = add_node(t, parent, region) + 1;
	}
	*ret = t->slots[slot] - 1;
	return 0;
}

struct flame_reading {
	struct flame_tree *tree;
	const struct plot_chosen *c;
	struct nest nest;
	bool by_number;
};

static int take_call(void *context, const struct plot_call *c, struct error *err)
{
	struct flame_reading *f = context;
	struct flame_tree *t = f->tree;
	const struct region_part *part = &f->c->regions->parts[c->part];
	double took = (double)(c->end - c->start);
	struct nest_entry *entry;
	uint32_t parent, node;
	size_t lane;

	if (nest_enter(&f->nest, part->rank, c, f->by_number, &lane, &entry, &parent, err) < 0 ||
	    find_node(t, parent, f->c->pooled[part->region], &node, err) < 0)
		return -1;
	/* Without room a call is part of the one around it, as are those within. */
	entry->node = node == NO_NODE ? parent : node;
	if (node == NO_NODE) {
		t->lost++;
		return 0;
	}
	t->nodes[node].calls++;
	t->nodes[node].total += took;
	if (parent == NO_NODE)
		t->total += took;
	else
		t->nodes[parent].children += took;
	return 0;
}

static int read_file(struct flame *f, const struct plot_input *in, size_t file, struct error *err)
{
	const struct plot_chosen *c = &f->chosen.files[file];
	struct flame_reading reading = {.tree = &f->trees[file], .c = c};
	struct plot_visit visit = {.wanted = c->wanted, .from = INT64_MIN, .to = INT64_MAX, .call = take_call};
	int got;

	reading.by_number = c->regions->columns & 1u << REGION_PARENT;
	reading.tree->first = reading.tree->last = NO_NODE;
	visit.parents = reading.by_number;
	visit.context = &reading;
	nest_init(&reading.nest);
	got = plot_calls_visit(in->files[file], &c->span, &visit, err);
	reading.tree->lanes = reading.nest.count;
	if (got == 0 && reading.tree->lost)
		warnings_add(in->notes,
			     "%s: there are more than %u paths; %" PRIu64 " calls on others count as part of the"
			     " calls around them",
			     c->regions->path, NODES_MAX, reading.tree->lost);
	if (got == 0 && !reading.by_number && reading.nest.overlaps)
		warnings_add(in->notes,
			     "%s: %" PRIu64 " calls ended after the call that they began in, and the file does"
			     " not say what called them: they count where their time lies within",
			     c->regions->path, reading.nest.overlaps);
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
	return (t->deepest < DEPTH_MAX ? t->deepest + 1 : DEPTH_MAX) + 1;
}

static size_t all_rows(const struct flame *f)
{
	size_t rows = 0;

	for (size_t i = 0; i < f->chosen.file_count; i++)
		rows += tree_rows(&f->trees[i]);
	return rows;
}

static void flame_size(const void *data, const struct plot_input *in, double *width, double *height)
{
	const struct flame *f = data;
	double others = (double)f->chosen.file_count * FILE_GAP + SHEET_AXIS_HEIGHT + 2 * SHEET_MARGIN +
			(in->title ? SHEET_TITLE_HEIGHT : 0);
	double high = (double)all_rows(f) * ROW_HIGH + others, usual = (double)all_rows(f) * ROW_USUAL + others;

	*width = *width > 0 ? *width : SHEET_WIDTH;
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
	if (d->row < SHEET_SMALL + 0.5 || width < 14)
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
	for (uint32_t i = first; i != NO_NODE; i = d->tree->nodes[i].next) {
		const struct flame_node *n = &d->tree->nodes[i];
		double width = fmin(n->total * d->per_ns, end - x);
		const char *name = d->f->chosen.pool.names[n->region];

		if (width < NARROWEST) {
			narrow += fmax(width, 0);
			continue;
		}
		draw_cell(d, x, width, y, plot_colour(name), name, n->total / d->all);
		draw_children(d, n->first_child, x, x + width, depth + 1);
		x += width;
	}
	narrow = fmin(narrow, end - x);
	if (narrow >= NARROWEST)
		d->s->on->rect(d->s->c, x, y, narrow, d->row > 3 ? d->row - 0.5 : d->row, sheet_grey);
}

static double widest(const struct flame *f)
{
	double most = 0;

	for (size_t i = 0; i < f->chosen.file_count; i++)
		most = fmax(most, f->trees[i].total);
	return most > 0 ? most : 1;
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

	a.height -= SHEET_AXIS_HEIGHT;
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
		draw_children(&d, d.tree->first, axis.x, axis.x + d.tree->total * d.per_ns, 0);
		y = d.bottom + d.row + FILE_GAP;
	}
	sheet_ticks_linear(&ticks, axis.from, axis.to, (size_t)fmax(2, axis.width / 50));
	snprintf(title, sizeof title, "time, all ranks and threads added up (%s)", unit.name);
	sheet_axis_bottom(&s, &axis, &ticks, y - FILE_GAP / 2, y - FILE_GAP / 2, title);
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
		for (uint32_t j = 0; j < f->trees[i].count; j++) {
			const struct flame_node *n = &f->trees[i].nodes[j];

			plot_table_text(&t, f->chosen.files[i].label);
			plot_table_integer(&t, j);
			if (n->parent == NO_NODE)
				plot_table_unknown(&t);
			else
				plot_table_integer(&t, n->parent);
			plot_table_integer(&t, n->depth);
			plot_table_text(&t, f->chosen.pool.names[n->region]);
			plot_table_integer(&t, (int64_t)n->calls);
			plot_table_integer(&t, llround(n->total));
			plot_table_integer(&t, llround(n->total - n->children));
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
