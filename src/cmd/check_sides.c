#include "cmd/check_sides.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/spell.h"
#include "cmd/region_side.h"
#include "cmd/results.h"
#include "judge/stats.h"
#include "store/armfile.h"
#include "store/region_file.h"

#define NS_PER_S 1e9
#define NAMES_MAX 4096 /* metric names that a misspelt one is compared with */
#define REGIONS_NAME "regions.h5"

int check_sides_init(struct check_sides *s, struct error *err)
{
	*s = (struct check_sides){0};
	return metric_set_init(&s->metrics, err);
}

void check_sides_release(struct check_sides *s)
{
	free(s->items);
	region_diff_release(&s->regions);
	metric_set_release(&s->metrics);
	arms_release(&s->a);
	arms_release(&s->b);
	warnings_release(&s->notes);
	*s = (struct check_sides){0};
}

static bool holds(const char *dir, const char *name)
{
	CLEANUP(free_cleanup) char *path = fs_join(dir, name);

	return path && fs_exists(path);
}

bool check_sides_has_regions(const char *path)
{
	if (fs_is_dir(path))
		return holds(path, REGIONS_NAME) && !holds(path, "run.json") && !holds(path, "begin.json");
	return region_file_is_one(path);
}

/* Fails for a run of which nothing can be compared. */
static int refuse(const struct arm *arm, const char *path, struct error *err)
{
	switch (arm->state) {
	case ARM_PERTURBED:
		return error_set(err, "%s: the run was traced, so its figures are not compared", path);
	case ARM_REFUSED:
		return error_set(err, "%s: the run was refused, so there is nothing to compare", path);
	default:
		return error_set(err, "%s: the run did not end well (status '%.40s'), so it is not compared", path,
				 arm->status ? arm->status : "unknown");
	}
}

static void note_dirty(struct check_sides *s, const struct arms *arms, const char *path)
{
	size_t dirty = 0;

	for (size_t i = 0; i < arms->count; i++)
		dirty += arms->items[i].state == ARM_OK && arms->items[i].dirty;
	if (dirty)
		warnings_add(&s->notes, "%s: the machine was not clean before the run", path);
}

/* The place of the regions of a path that may be a run directory or its run.json. Owned; NULL with *err. */
static char *regions_place(const char *path, struct check_sides *s, struct error *err)
{
	CLEANUP(arms_release) struct arms arms;
	const char *name = strrchr(path, '/');
	char *place = strdup(path);
	bool is_run = fs_is_dir(path);

	arms_init(&arms);
	if (place && strcmp(name ? name + 1 : path, "run.json") == 0) {
		if (name)
			place[name > path ? name - path : 1] = '\0';
		else
			strcpy(place, "."); /* shorter than "run.json" */
		is_run = true;
	}
	if (!place) {
		error_set(err, "out of memory");
		return NULL;
	}
	/* A folder of ranks that were merged has no run.json; one that was begun and never finished neither. */
	if (is_run && (holds(place, "run.json") || holds(place, "begin.json")) &&
	    (armfile_read(place, &s->metrics, &arms, err) < 0 ||
	     (arms.count && arms.items[0].state != ARM_OK && refuse(&arms.items[0], path, err) < 0))) {
		free(place);
		return NULL;
	}
	note_dirty(s, &arms, path);
	return place;
}

static int read_regions(struct check_sides *s, struct region_side *side, const char *path, const struct region_query *q,
			struct error *err)
{
	CLEANUP(free_cleanup) char *place = regions_place(path, s, err);

	return place ? region_side_add(side, place, q, &s->notes, err) : -1;
}

static int make_items(struct check_sides *s, size_t room, struct error *err)
{
	s->items = calloc(room + 1, sizeof *s->items);
	return s->items ? 0 : error_set(err, "out of memory for %zu figures", room);
}

int check_sides_regions(struct check_sides *s, const char *a, const char *b, const struct region_query *q,
			enum region_metric metric, struct error *err)
{
	CLEANUP(region_side_release) struct region_side side_a;
	CLEANUP(region_side_release) struct region_side side_b;
	const struct region_diff_options o = {.metric = metric, .sort = REGION_SORT_NAME, .threshold = NAN};

	region_side_init(&side_a);
	region_side_init(&side_b);
	if (read_regions(s, &side_a, a, q, err) < 0 || read_regions(s, &side_b, b, q, err) < 0 ||
	    region_diff(side_a.tables, side_a.count, side_b.tables, side_b.count, &o, &s->regions, err) < 0 ||
	    make_items(s, s->regions.count, err) < 0)
		return -1;
	region_sides_note(&side_a, &side_b, &s->regions, &s->notes);
	for (size_t i = 0; i < s->regions.count; i++) {
		const struct region_diff_row *row = &s->regions.rows[i];

		s->items[s->count++] = (struct check_item){
			.name = row->name,
			.unit = region_metric_unit(metric),
			/* What one side has no figure of did not come or go for that: it is unknown. */
			.in_a = row->in_a || (row->ran_a && row->in_b),
			.in_b = row->in_b || (row->ran_b && row->in_a),
			.a = row->in_a ? row->a : NAN,
			.b = row->in_b ? row->b : NAN,
			.weight = row->most_total,
		};
	}
	return 0;
}

/* Run directory, run.json or another tool's results. */
static int read_runs(struct check_sides *s, const char *path, struct arms *arms, struct error *err)
{
	return fs_is_dir(path) ? armfile_read(path, &s->metrics, arms, err)
			       : results_read(path, "file of regions, no ", &s->metrics, arms, NULL, err);
}

/* What of a side does not count, and -1 where nothing does. */
static int note_arms(struct check_sides *s, const struct arms *arms, const char *path, struct error *err)
{
	size_t usable = 0;

	for (size_t i = 0; i < arms->count; i++)
		usable += arms->items[i].state == ARM_OK;
	if (!arms->count)
		return error_set(err, "%s: it holds no result", path);
	if (!usable)
		return refuse(&arms->items[0], path, err);
	if (usable < arms->count)
		warnings_add(&s->notes, "%s: %zu of %zu repetitions failed and do not count", path,
			     arms->count - usable, arms->count);
	note_dirty(s, arms, path);
	return 0;
}

/* The median of the repetitions that ended well; false where none has the metric. */
static bool median_of(const struct arms *arms, size_t metric, double *values, double *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < arms->count; i++) {
		double value = arm_value(&arms->items[i], metric);

		if (arms->items[i].state == ARM_OK && !isnan(value))
			values[count++] = value;
	}
	*ret = stats_middle(values, count);
	return count > 0;
}

static int select_metrics(const struct metric_set *set, const struct option_list *names, bool *selected,
			  struct error *err)
{
	const char *known[NAMES_MAX], *nearest;
	size_t count = 0;

	for (size_t i = 0; i < set->count; i++)
		selected[i] = !names->count && set->items[i].gated;
	for (size_t i = 0; i < names->count; i++) {
		size_t metric = metric_find(set, names->items[i]);
		struct typed typed = typed_show(names->items[i], strlen(names->items[i]));
		enum region_metric of_region;

		if (metric != SIZE_MAX) {
			selected[metric] = true;
			continue;
		}
		if (region_metric_find(names->items[i], &of_region))
			return error_set(err, "option '--metric': '%s' is of regions, and these are runs; --regions "
					      "compares the regions of run directories",
					 typed.text);
		for (; count < set->count && count < NAMES_MAX; count++)
			known[count] = set->items[count].name;
		nearest = spell_nearest(names->items[i], known, count);
		return error_set(err, "option '--metric': there is no metric '%s' in these runs%s%s%s", typed.text,
				 nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
	}
	return 0;
}

static void add_item(struct check_sides *s, size_t metric, double *values)
{
	const struct metric_desc *desc = &s->metrics.items[metric];
	struct check_item item = {
		.name = desc->name, .unit = desc->unit, .higher_is_better = desc->direction > 0, .weight = NAN};

	item.in_a = median_of(&s->a, metric, values, &item.a);
	item.in_b = median_of(&s->b, metric, values, &item.b);
	if (strcmp(desc->unit, "s") == 0)
		item.weight = fmax(item.in_a ? item.a : 0, item.in_b ? item.b : 0) * NS_PER_S;
	s->items[s->count++] = item;
}

int check_sides_runs(struct check_sides *s, const char *a, const char *b, const struct region_query *q,
		     const struct option_list *metrics, struct error *err)
{
	CLEANUP(free_cleanup) bool *selected = NULL;
	CLEANUP(free_cleanup) double *values = NULL;

	if (read_runs(s, a, &s->a, err) < 0 || read_runs(s, b, &s->b, err) < 0 || note_arms(s, &s->a, a, err) < 0 ||
	    note_arms(s, &s->b, b, err) < 0)
		return -1;
	selected = calloc(s->metrics.count + 1, sizeof *selected);
	values = calloc(s->a.count + s->b.count + 1, sizeof *values);
	if (!selected || !values)
		return error_set(err, "out of memory for %zu metrics", s->metrics.count);
	if (make_items(s, s->metrics.count, err) < 0 || select_metrics(&s->metrics, metrics, selected, err) < 0)
		return -1;
	for (size_t i = 0; i < s->metrics.count; i++) {
		const char *name = s->metrics.items[i].name;

		if (selected[i] && region_query_names(q, &name, 1, &selected[i], err) < 0)
			return -1;
		if (selected[i])
			add_item(s, i, values);
	}
	return 0;
}
