#include "report/plot_selection.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"

static void note_what_is_left_out(const struct plot_chosen *c, struct warnings *notes)
{
	if (c->span.untimed)
		warnings_add(notes,
			     "%s: calls that were only counted or added up, without a time of their own, which the"
			     " figure leaves out: %s",
			     c->regions->path, units_count((double)c->span.untimed).text);
	if (c->span.senseless)
		warnings_add(notes,
			     "%s: calls that end before they begin, or at no possible time, which the figure leaves"
			     " out: %s",
			     c->regions->path, units_count((double)c->span.senseless).text);
}

static int choose(struct plot_selection *s, struct plot_chosen *c, const struct plot_input *in, size_t file,
		  struct error *err)
{
	const struct regions *r = region_file_regions(in->files[file]);

	c->regions = r;
	c->label = strdup(in->labels[file]);
	c->wanted = region_wanted_parts(r, in->query, err);
	if (!c->wanted)
		return -1;
	c->pooled = calloc(r->name_count ? r->name_count : 1, sizeof *c->pooled);
	if (!c->label || !c->pooled)
		return error_set(err, "out of memory for %zu regions", r->name_count);
	for (size_t i = 0; i < r->name_count; i++) {
		int64_t index = regions_name(&s->pool, r->names[i], err);

		if (index < 0)
			return -1;
		c->pooled[i] = (uint32_t)index;
	}
	if (region_span_read(in->files[file], c->wanted, &c->span, err) < 0)
		return -1;
	note_what_is_left_out(c, in->notes);
	return 0;
}

int plot_selection_make(struct plot_selection *s, const struct plot_input *in, struct error *err)
{
	uint64_t calls = 0;

	*s = (struct plot_selection){.files = calloc(in->file_count, sizeof *s->files)};
	regions_init(&s->pool);
	if (!s->files)
		return error_set(err, "out of memory for %zu files", in->file_count);
	for (size_t i = 0; i < in->file_count; i++) {
		s->file_count = i + 1;
		if (choose(s, &s->files[i], in, i, err) < 0)
			return -1;
		calls += s->files[i].span.calls;
		if (s->files[i].span.calls == 0)
			warnings_add(in->notes, "%s has no calls with times among the regions asked for",
				     s->files[i].regions->path);
	}
	if (calls == 0)
		return error_set(err, "%s%s: there are no calls with times among the regions asked for",
				 s->files[0].regions->path, in->file_count > 1 ? " and the others" : "");
	return 0;
}

void plot_selection_release(struct plot_selection *s)
{
	for (size_t i = 0; i < s->file_count; i++) {
		free(s->files[i].label);
		free(s->files[i].wanted);
		free(s->files[i].pooled);
	}
	free(s->files);
	regions_release(&s->pool);
	*s = (struct plot_selection){0};
	regions_init(&s->pool);
}

struct ranked {
	double figure;
	uint32_t index;
};

static int larger_first(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	if (a->figure != b->figure)
		return a->figure > b->figure ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

size_t plot_order(const double *figures, size_t count, uint32_t *ret_order)
{
	struct ranked *ranked = reallocarray(NULL, count ? count : 1, sizeof *ranked);
	size_t above = 0;

	for (size_t i = 0; ranked && i < count; i++)
		ranked[i] = (struct ranked){figures[i], (uint32_t)i};
	if (ranked)
		qsort(ranked, count, sizeof *ranked, larger_first);
	/* Without memory the order is that of the file. */
	for (size_t i = 0; i < count; i++) {
		ret_order[i] = ranked ? ranked[i].index : (uint32_t)i;
		above += figures[i] > 0;
	}
	free(ranked);
	return above;
}

struct sheet_legend_item *plot_legend_items(const struct plot_selection *s, const double *figures, size_t *ret_count)
{
	char *const *names = s->pool.names;
	CLEANUP(free_cleanup) uint32_t *order = calloc(s->pool.name_count + 1, sizeof *order);
	struct sheet_legend_item *items = calloc(s->pool.name_count + 1, sizeof *items);

	*ret_count = 0;
	if (!order || !items) {
		free(items);
		return NULL;
	}
	*ret_count = plot_order(figures, s->pool.name_count, order);
	for (size_t i = 0; i < *ret_count; i++)
		items[i] = (struct sheet_legend_item){names[order[i]], plot_colour(names[order[i]])};
	return items;
}
