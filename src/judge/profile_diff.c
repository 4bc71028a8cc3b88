#include "judge/profile_diff.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "judge/shares.h"

#define TESTS_PER_ROW 2 /* its share, and its CPU time */

void profile_changes_init(struct profile_changes *c)
{
	*c = (struct profile_changes){0};
}

void profile_changes_release(struct profile_changes *c)
{
	for (size_t i = 0; i < c->count; i++) {
		free(c->items[i].name);
		free(c->items[i].module);
		free(c->items[i].group);
	}
	free(c->items);
	free(c->only[0]);
	free(c->only[1]);
	profile_changes_init(c);
}

static const struct hotspot_group *group_of(const struct hotspots *h, const char *name)
{
	for (size_t i = 0; i < h->group_count; i++)
		if (strcmp(h->groups[i].name, name) == 0)
			return &h->groups[i];
	return NULL;
}

static const struct hotspot_rows *rows_of(const struct hotspot_group *g, bool inclusive)
{
	return inclusive ? &g->inclusive : &g->self;
}

/* A row and the side that it is of, so that both sides' rows can be sorted into one list. */
struct side_row {
	const struct hotspot_row *row;
	int side;
};

static int by_name(const void *a, const void *b)
{
	const struct side_row *x = a, *y = b;
	const char *first = x->row->module ? x->row->module : "", *second = y->row->module ? y->row->module : "";
	int order = strcmp(x->row->name, y->row->name);

	order = order ? order : strcmp(first, second);
	return order ? order : x->side - y->side;
}

static bool same_row(const struct side_row *a, const struct side_row *b)
{
	const char *first = a->row->module ? a->row->module : "", *second = b->row->module ? b->row->module : "";

	return strcmp(a->row->name, b->row->name) == 0 && strcmp(first, second) == 0;
}

static void fill_side(struct profile_change *c, int side, const struct hotspot_row *row, const struct hotspot_group *g)
{
	c->share[side] = row->share;
	c->cpu_s[side] = row->cpu_s;
	c->deliveries[side] = row->share * g->effective;
}

/* One change per row of a group that both sides have. `changes` has room. */
static int pair_rows(struct profile_changes *changes, const struct hotspot_group *const g[2], bool inclusive,
		     struct error *err)
{
	size_t counts[2] = {rows_of(g[0], inclusive)->count, rows_of(g[1], inclusive)->count};
	size_t count = counts[0] + counts[1];
	CLEANUP(free_cleanup) struct side_row *rows = calloc(count + 1, sizeof *rows);
	size_t filled = 0;

	if (!rows)
		return error_set(err, "out of memory for %zu rows of a comparison", count);
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < counts[side]; i++)
			rows[filled++] = (struct side_row){&rows_of(g[side], inclusive)->items[i], side};
	qsort(rows, count, sizeof *rows, by_name);
	for (size_t i = 0; i < count; i++) {
		struct profile_change *c = &changes->items[changes->count++];

		*c = (struct profile_change){.low = NAN, .high = NAN, .cpu_low = NAN, .cpu_high = NAN};
		c->name = strdup(rows[i].row->name);
		c->module = rows[i].row->module ? strdup(rows[i].row->module) : NULL;
		c->group = strdup(g[0]->name);
		if (!c->name || !c->group || (rows[i].row->module && !c->module))
			return error_set(err, "out of memory for %zu rows of a comparison", count);
		fill_side(c, rows[i].side, rows[i].row, g[rows[i].side]);
		if (i + 1 < count && same_row(&rows[i], &rows[i + 1])) {
			i++;
			fill_side(c, rows[i].side, rows[i].row, g[rows[i].side]);
		}
		c->compared = g[0]->effective >= SHARES_LEAST && g[1]->effective >= SHARES_LEAST &&
			      c->deliveries[0] + c->deliveries[1] >= PROFILE_DIFF_LEAST;
		changes->compared += c->compared;
	}
	return 0;
}

/* CPU seconds of a row: its share's interval times the group's time, and what the group's time itself is uncertain by,
 * as if its samples were a Poisson count. Both are independent, so their half-widths add as squares do. */
static struct share_interval cpu_interval(const struct profile_change *c, int side, const struct hotspot_group *g,
					  struct share_interval share, double z)
{
	double of_total = c->cpu_s[side] * z / sqrt(g->effective);
	double down = hypot((c->share[side] - share.low) * g->cpu_s, of_total);
	double up = hypot((share.high - c->share[side]) * g->cpu_s, of_total);

	return (struct share_interval){fmax(0, c->cpu_s[side] - down), c->cpu_s[side] + up};
}

static void judge(struct profile_change *c, const struct hotspot_group *const g[2], double z)
{
	struct share_interval share[2], cpu[2], difference;

	for (int side = 0; side < 2; side++) {
		share[side] = shares_interval(c->share[side], g[side]->effective, z);
		cpu[side] = cpu_interval(c, side, g[side], share[side], z);
	}
	difference = shares_difference(c->share[0], share[0], c->share[1], share[1]);
	c->low = difference.low;
	c->high = difference.high;
	c->share_changed = c->low > 0 || c->high < 0;
	difference = shares_difference(c->cpu_s[0], cpu[0], c->cpu_s[1], cpu[1]);
	c->cpu_low = difference.low;
	c->cpu_high = difference.high;
	c->cpu_changed = c->cpu_low > 0 || c->cpu_high < 0;
}

static int by_change(const void *a, const void *b)
{
	const struct profile_change *x = a, *y = b;
	bool x_changed = x->share_changed || x->cpu_changed, y_changed = y->share_changed || y->cpu_changed;
	double by_x = fabs(x->cpu_s[1] - x->cpu_s[0]), by_y = fabs(y->cpu_s[1] - y->cpu_s[0]);
	int order;

	if (x_changed != y_changed)
		return x_changed ? -1 : 1;
	if (x->compared != y->compared)
		return x->compared ? -1 : 1;
	if (by_x != by_y)
		return by_x > by_y ? -1 : 1;
	order = strcmp(x->group, y->group);
	return order ? order : strcmp(x->name, y->name);
}

/* Names the groups of one side that the other has not. */
static int note_lone(struct profile_changes *changes, const struct hotspots *of, const struct hotspots *other, int side,
		     struct error *err)
{
	for (size_t i = 0; i < of->group_count; i++) {
		char *before = changes->only[side], *text;

		if (group_of(other, of->groups[i].name))
			continue;
		if (asprintf(&text, "%s%s%s", before ? before : "", before ? " " : "", of->groups[i].name) < 0)
			return error_set(err, "out of memory for the groups of a comparison");
		free(before);
		changes->only[side] = text;
	}
	return 0;
}

static void add_totals(struct profile_changes *c, const struct hotspots *of, int side)
{
	for (size_t i = 0; i < of->group_count; i++) {
		c->deliveries[side] += of->groups[i].deliveries;
		c->all_cpu_s[side] += of->groups[i].cpu_s;
	}
}

int profile_diff(struct profile_changes *ret, const struct hotspots *a, const struct hotspots *b, bool inclusive,
		 double confidence, struct error *err)
{
	size_t room = 0;
	double z;

	ret->confidence = confidence;
	add_totals(ret, a, 0);
	add_totals(ret, b, 1);
	for (size_t i = 0; i < a->group_count; i++)
		room += rows_of(&a->groups[i], inclusive)->count;
	for (size_t i = 0; i < b->group_count; i++)
		room += rows_of(&b->groups[i], inclusive)->count;
	ret->items = calloc(room + 1, sizeof *ret->items);
	if (!ret->items)
		return error_set(err, "out of memory for %zu rows of a comparison", room);
	for (size_t i = 0; i < a->group_count; i++) {
		const struct hotspot_group *g[2] = {&a->groups[i], group_of(b, a->groups[i].name)};

		if (!g[1])
			continue;
		for (int side = 0; side < 2; side++) {
			ret->n[side] += g[side]->effective;
			ret->cpu_s[side] += g[side]->cpu_s;
		}
		if (pair_rows(ret, g, inclusive, err) < 0)
			return -1;
	}
	ret->too_few = ret->n[0] < SHARES_LEAST || ret->n[1] < SHARES_LEAST;
	z = shares_z((1 - confidence) / (double)(TESTS_PER_ROW * (ret->compared ? ret->compared : 1)));
	for (size_t i = 0; i < ret->count; i++) {
		struct profile_change *c = &ret->items[i];
		const struct hotspot_group *g[2] = {group_of(a, c->group), group_of(b, c->group)};

		if (c->compared)
			judge(c, g, z);
		ret->changed += c->share_changed || c->cpu_changed;
	}
	qsort(ret->items, ret->count, sizeof *ret->items, by_change);
	return note_lone(ret, a, b, 0, err) < 0 || note_lone(ret, b, a, 1, err) < 0 ? -1 : 0;
}
