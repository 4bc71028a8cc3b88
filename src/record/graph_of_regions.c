/* Each path of regions is a way of the graph, with its calls and its exclusive time, over all ranks and threads. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "record/graph_of_run.h"
#include "store/region_file.h"
#include "store/region_tree.h"

#define READER "regions"
#define NS_PER_S 1e9
#define UNNAMED "(unnamed)"

static int read_tree(struct region_file *file, struct region_tree *t, struct warnings *warnings, struct error *err)
{
	CLEANUP(region_query_release) struct region_query all;
	const struct regions *r = region_file_regions(file);

	region_query_init(&all);
	if (region_tree_is_known(r))
		return region_tree_read(file, &all, t, err);
	warnings_add(warnings,
		     "%s does not say which call is inside which: each region stands alone, with the time of what is "
		     "inside it.",
		     r->path);
	return region_tree_read_flat(file, &all, t, err);
}

/* The node of each region; where it stands is told by its first part that knows. Owned, NULL with *err. */
static uint32_t *add_functions(const struct regions *r, struct graph *g, struct error *err)
{
	uint32_t *nodes = calloc(r->name_count + 1, sizeof *nodes);
	CLEANUP(free_cleanup) const struct region_part **parts = calloc(r->name_count + 1, sizeof *parts);
	int got = 0;

	if (!nodes || !parts) {
		free(nodes);
		error_set(err, "%s: out of memory for %zu names of regions", r->path, r->name_count);
		return NULL;
	}
	for (size_t i = r->part_count; i-- > 0;)
		if (*r->parts[i].file || !parts[r->parts[i].region])
			parts[r->parts[i].region] = &r->parts[i];
	for (size_t i = 0; i < r->name_count && got == 0; i++) {
		const char *file = parts[i] ? parts[i]->file : "";
		int64_t line = parts[i] && parts[i]->line > 0 ? parts[i]->line : 0;

		got = graph_node(g, file, SIZE_MAX, line, *r->names[i] ? r->names[i] : UNNAMED, SIZE_MAX, NULL,
				 &nodes[i], err);
	}
	if (got == 0)
		return nodes;
	free(nodes);
	return NULL;
}

static int add_ways(const struct region_tree *t, const uint32_t *nodes, struct graph *g, size_t *ret_negative,
		    struct error *err)
{
	CLEANUP(free_cleanup) uint32_t *ways = calloc(t->count + 1, sizeof *ways);

	if (!ways)
		return error_set(err, "%s: out of memory for %zu paths", t->path, t->count);
	for (uint32_t i = 1; i < t->count; i++) {
		const struct region_tree_node *n = &t->nodes[i];
		struct graph_way *way;

		if (graph_way(g, ways[n->parent], nodes[n->region], &ways[i], err) < 0)
			return -1;
		way = &g->ways[ways[i]];
		way->calls += n->calls > INT64_MAX - (uint64_t)way->calls ? INT64_MAX - way->calls : (int64_t)n->calls;
		way->self += n->exclusive > 0 ? (double)n->exclusive / NS_PER_S : 0;
		*ret_negative += n->exclusive < 0;
	}
	return 0;
}

/* Calls that the file has no times of, and what it says of itself. */
static void warn(const struct regions *r, size_t negative, struct warnings *warnings)
{
	uint64_t untimed = 0, dropped = 0;

	for (size_t i = 0; i < r->note_count; i++)
		warnings_add(warnings, "%s: %s", r->path, r->notes[i]);
	for (size_t i = 0; i < r->part_count; i++) {
		const struct region_part *p = &r->parts[i];

		untimed += p->calls > p->count ? p->calls - p->count : 0;
		dropped += p->dropped;
	}
	if (untimed)
		warnings_add(warnings, "%s: calls that were only added up, and are not in the tree: %s.", r->path,
			     units_count((double)untimed).text);
	if (dropped)
		warnings_add(warnings,
			     "%s: calls that found no room when they were recorded, and are not in the tree: %s.",
			     r->path, units_count((double)dropped).text);
	if (negative)
		warnings_add(
			warnings,
			"%s: paths whose own time counts as 0, since what is inside them took longer than they did: "
			"%s.",
			r->path, units_count((double)negative).text);
}

int graph_of_regions(const char *path, struct graph *ret, struct warnings *warnings, struct error *err)
{
	CLEANUP(region_file_cleanup) struct region_file *file = NULL;
	CLEANUP(region_tree_release) struct region_tree tree;
	CLEANUP(free_cleanup) uint32_t *nodes = NULL;
	const struct regions *r;
	size_t negative = 0;

	region_tree_init(&tree);
	if (region_file_open(path, &file, err) < 0)
		return -1;
	r = region_file_regions(file);
	if (read_tree(file, &tree, warnings, err) < 0 || region_tree_finish(&tree, REGION_TREE_AS_MADE, err) < 0)
		return -1;
	if (tree.count < 2)
		return error_set(err, "%s: no calls with times%s", r->path,
				 r->part_count ? " (they were only added up: assay inspect shows them)" : "");
	nodes = add_functions(r, ret, err);
	if (!nodes || add_ways(&tree, nodes, ret, &negative, err) < 0)
		return -1;
	warn(r, negative, warnings);
	ret->source = READER;
	if (graph_set_unit(ret, "s", 1, err) < 0 || graph_finish(ret, err) < 0)
		return error_prefix(err, "%s", r->path);
	return 0;
}
