/* Each place of the call tree that exporters make of a profile is a way of the graph. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "record/graph_of_run.h"
#include "record/profiling.h"
#include "report/export_tree.h"
#include "store/finished.h"

#define READER "samples"

/* The node of the graph for each frame of the tree; owned, NULL with *err. */
static uint32_t *add_functions(const struct export_tree *t, struct graph *g, struct error *err)
{
	uint32_t *nodes = calloc(t->frame_count + 1, sizeof *nodes);
	CLEANUP(buf_release) struct buf scratch;
	int got = 0;

	buf_init(&scratch);
	if (!nodes) {
		error_set(err, "out of memory for %zu functions", t->frame_count);
		return NULL;
	}
	for (size_t i = 0; i < t->frame_count && got == 0; i++) {
		uint32_t function = t->frames[i].function;
		const char *name = export_function_name(t->profile, function, &scratch);
		const char *file = export_function_file(t->profile, function);
		uint32_t module = export_function_module(t->profile, function);

		got = graph_node(g, file ? file : "", SIZE_MAX, export_function_line(t->profile, function), name,
				 SIZE_MAX, module == PROFILE_NONE ? NULL : t->profile->modules[module].name, &nodes[i],
				 err);
	}
	if (got == 0 && !scratch.failed)
		return nodes;
	if (scratch.failed)
		error_set(err, "out of memory for the name of a function");
	free(nodes);
	return NULL;
}

static int add_stacks(const struct export_tree *t, const struct profile *p, const struct export_samples *s,
		      struct graph *g, struct error *err)
{
	CLEANUP(free_cleanup) uint32_t *ways = calloc(t->node_count + 1, sizeof *ways);
	CLEANUP(free_cleanup) uint32_t *nodes = add_functions(t, g, err);

	if (!nodes)
		return -1;
	if (!ways)
		return error_set(err, "out of memory for %zu stacks", t->node_count);
	for (size_t i = 1; i < t->node_count; i++) {
		if (graph_way(g, ways[t->nodes[i].parent], nodes[t->nodes[i].frame], &ways[i], err) < 0)
			return -1;
		g->ways[ways[i]].calls = -1;
	}
	for (size_t i = 0; i < s->count; i++) {
		const struct profile_sample *sample = &p->samples[s->items[i]];

		g->ways[ways[t->node_of[sample->node]]].self += sample->weight;
	}
	/* Periods are whole: their sums are exact, and only the products are rounded. */
	for (size_t i = 0; i < g->way_count; i++)
		g->ways[i].self *= p->period_s;
	return 0;
}

static int make_graph(const struct finished_run *run, const struct profile *p, struct graph *g, struct error *err)
{
	CLEANUP(export_samples_release) struct export_samples samples;
	CLEANUP(export_tree_release) struct export_tree tree;
	const struct export_input in = {.profile = p, .phases = &run->phases, .start = run->start, .end = run->end};

	export_samples_init(&samples);
	export_tree_init(&tree);
	g->source = READER;
	if (export_samples_choose(&samples, &in, err) != EXPORT_OK ||
	    export_tree_build(&tree, p, &samples, false, err) != EXPORT_OK ||
	    add_stacks(&tree, p, &samples, g, err) < 0 || graph_set_unit(g, "s", 1, err) < 0)
		return -1;
	return graph_finish(g, err);
}

int graph_of_samples(const struct rundir *dir, struct graph *ret, struct warnings *warnings, struct error *err)
{
	CLEANUP(finished_release) struct finished_run run;
	CLEANUP(profile_release) struct profile profile;

	finished_init(&run);
	profile_init(&profile);
	if (finished_read(dir, &run, err) < 0 || profiling_open(dir, &profile, warnings, err) < 0)
		return -1;
	if (make_graph(&run, &profile, ret, err) < 0)
		return error_prefix(err, "%s", dir->path);
	return 0;
}
