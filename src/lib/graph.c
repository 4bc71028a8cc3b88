/* The public call graphs: profiling a call, files, nodes and edges, rendering. */
#include <assay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "graph/graph_file.h"
#include "graph/tree.h"
#include "lib/export.h"
#include "lib/instrument.h"
#include "lib/last_error.h"
#include "wire/program.h"

#define FILE_MAX    ((size_t)1 << 34)
#define NAMES_WIDTH 60

struct assay_graph {
	struct graph graph;
	char **keys;   /* of the nodes */
	double scale;  /* makes seconds of costs; 1 where they are no time */
};

static void graph_free(struct assay_graph *g)
{
	if (!g)
		return;
	for (size_t i = 0; g->keys && i < g->graph.node_count; i++)
		free(g->keys[i]);
	free(g->keys);
	graph_release(&g->graph);
	free(g);
}

ASSAY_EXPORT void assay_graph_free(struct assay_graph *graph)
{
	graph_free(graph);
}

static int make_keys(struct assay_graph *g)
{
	g->keys = calloc(g->graph.node_count + 1, sizeof *g->keys);
	for (size_t i = 0; g->keys && i < g->graph.node_count; i++) {
		g->keys[i] = graph_key(&g->graph.nodes[i]);
		if (!g->keys[i])
			return -1;
	}
	return g->keys ? 0 : -1;
}

ASSAY_EXPORT int assay_graph_read(const char *path, struct assay_graph **graph)
{
	CLEANUP(buf_release) struct buf text;
	struct assay_graph *g;
	struct error err;

	buf_init(&text);
	if (!path || !graph)
		return last_error_set("assay_graph_read needs a path and a place for the graph");
	if (fs_read_file(path, FILE_MAX, &text, &err) < 0)
		return last_error_set("%s", err.text);
	g = calloc(1, sizeof *g);
	if (!g)
		return last_error_set("%s: out of memory", path);
	graph_init(&g->graph);
	if (graph_file_read(text.text, text.length, path, &g->graph, &err) < 0) {
		graph_free(g);
		return last_error_set("%s", err.text);
	}
	buf_release(&text); /* as large as the graph */
	g->scale = g->graph.per_second > 0 ? g->graph.per_second : 1;
	if (make_keys(g) < 0) {
		graph_free(g);
		return last_error_set("%s: out of memory", path);
	}
	*graph = g;
	return 0;
}

ASSAY_EXPORT int assay_graph_write(const struct assay_graph *graph, const char *path)
{
	CLEANUP(buf_release) struct buf text;
	struct error err;

	buf_init(&text);
	if (!graph || !path)
		return last_error_set("assay_graph_write needs a graph and a path");
	graph_file_write(&graph->graph, &text);
	if (text.failed)
		return last_error_set("%s: out of memory for a call graph", path);
	return fs_write_file(path, text.text, text.length, &err) < 0 ? last_error_set("%s", err.text) : 0;
}

ASSAY_EXPORT size_t assay_graph_nodes(const struct assay_graph *graph)
{
	return graph ? graph->graph.node_count : 0;
}

ASSAY_EXPORT size_t assay_graph_root(const struct assay_graph *graph)
{
	uint32_t root = graph ? graph_root(&graph->graph) : GRAPH_NONE;

	return root == GRAPH_NONE ? (size_t)-1 : root;
}

ASSAY_EXPORT const char *assay_graph_note(const struct assay_graph *graph, size_t index)
{
	return graph && index < graph->graph.note_count ? graph->graph.notes[index] : NULL;
}

static struct assay_graph_node public_node(const struct assay_graph *g, uint32_t node)
{
	const struct graph_node *n = &g->graph.nodes[node];

	return (struct assay_graph_node){
		.file = n->file,
		.function = n->name,
		.key = g->keys[node],
		.module = n->module,
		.line = n->line,
		.nc1 = n->nc1,
		.nc2 = n->nc2,
		.tin = n->tin * g->scale,
		.tall = n->tall * g->scale,
		.called_by = n->called_by_count,
		.calls_to = n->calls_to_count,
	};
}

static struct assay_graph_edge public_edge(const struct assay_graph *g, const struct graph_edge *e)
{
	return (struct assay_graph_edge){e->caller, e->callee, e->nc1, e->nc2, e->tin * g->scale, e->tall * g->scale};
}

ASSAY_EXPORT int assay_graph_node_at(const struct assay_graph *graph, size_t node, struct assay_graph_node *ret)
{
	if (!graph || !ret || node >= graph->graph.node_count)
		return last_error_set("a graph of %zu functions has none with the number %zu",
				      assay_graph_nodes(graph), node);
	*ret = public_node(graph, (uint32_t)node);
	return 0;
}

ASSAY_EXPORT int assay_graph_edge_at(const struct assay_graph *graph, size_t node, int down, size_t index,
				  struct assay_graph_edge *ret)
{
	const struct graph_node *n;

	if (!graph || !ret || node >= graph->graph.node_count)
		return last_error_set("a graph of %zu functions has none with the number %zu",
				      assay_graph_nodes(graph), node);
	n = &graph->graph.nodes[node];
	if (index >= (down ? n->calls_to_count : n->called_by_count))
		return last_error_set("function %zu has no such call as number %zu", node, index);
	*ret = public_edge(graph, &graph->graph.edges[down ? n->calls_to[index] : n->called_by[index]]);
	return 0;
}

/* --- Profiling. --- */

/* The program finds the names and leaves the graph in the folder. */
static int make_graph(const char *folder, struct assay_graph **graph)
{
	CLEANUP(free_cleanup) char *path = fs_join(folder, CALLS_GRAPH_FILE);
	char *const argv[] = {(char *)"assay", (char *)"profile", (char *)"-q", (char *)"--instrument",
			      (char *)folder, NULL};
	int status;

	if (!path)
		return last_error_set("out of memory for a call graph");
	status = program_run(argv);
	if (!fs_exists(path))
		return last_error_set(status < 0
					      ? "the program assay, which finds the names of functions, could not be "
						"run: install it, or set ASSAY_PROGRAM to its path"
					      : "the program assay made no graph of the calls: its message is on "
						"standard error");
	return assay_graph_read(path, graph);
}

ASSAY_EXPORT int assay_profile(void (*function)(void *), void *context, struct assay_graph **graph)
{
	const char *temporary = secure_getenv("TMPDIR");
	CLEANUP(free_cleanup) char *folder = NULL;
	int result;

	if (!function || !graph)
		return last_error_set("assay_profile needs a function and a place for the graph");
	if (asprintf(&folder, "%s/assay-calls-XXXXXX", temporary && *temporary == '/' ? temporary : "/tmp") < 0) {
		folder = NULL;
		return last_error_set("out of memory for a path");
	}
	if (!mkdtemp(folder))
		return last_error_set("%s: the folder cannot be made: %m", folder);
	result = instrument_begin(folder);
	if (result == 0) {
		function(context);
		instrument_end();
		result = make_graph(folder, graph);
	}
	instrument_remove(folder);
	return result;
}

/* --- Rendering. --- */

struct filtering {
	const struct assay_graph *graph;
	const struct assay_graph_view *view;
};

static bool keep(void *context, const struct graph *g, uint32_t node, const struct graph_edge *edge)
{
	const struct filtering *f = context;
	const struct assay_graph_node shown = public_node(f->graph, node);
	struct assay_graph_edge call;

	(void)g;
	if (edge)
		call = public_edge(f->graph, edge);
	return f->view->keep(f->view->context, &shown, edge ? &call : NULL) != 0;
}

static enum graph_sort sort_of(enum assay_graph_sort sort)
{
	return sort == ASSAY_GRAPH_BY_TIME	   ? GRAPH_BY_TIME
	       : sort == ASSAY_GRAPH_BY_CUMULATIVE ? GRAPH_BY_CUMULATIVE
						   : GRAPH_BY_LINE;
}

static int render_tree(const struct graph *g, const struct graph_tree_options *o, enum assay_graph_format format,
		       struct buf *out, struct error *err)
{
	struct graph_tree tree = {0};
	int result;

	if (format == ASSAY_GRAPH_DOT)
		return graph_dot(g, o, out);
	result = graph_tree_build(g, o, &tree, err);
	if (result == 0)
		result = format == ASSAY_GRAPH_CSV ? graph_tree_csv(g, &tree, out) : graph_tree_text(g, &tree, o, out);
	graph_tree_release(&tree);
	return result;
}

static int render_reference(const struct graph *g, const struct graph_rows_options *o, enum assay_graph_format format,
			    int width, struct buf *out, struct error *err)
{
	switch (format) {
	case ASSAY_GRAPH_JSON:
		return graph_reference_json(g, o, out, err);
	case ASSAY_GRAPH_ROWS:
		return graph_reference_rows(g, o, out, err);
	case ASSAY_GRAPH_FLAT:
		return graph_reference_flat(g, NULL, out, err);
	default:
		return graph_reference_text(g, o, width, out, err);
	}
}

ASSAY_EXPORT char *assay_graph_render(const struct assay_graph *graph, const struct assay_graph_view *view)
{
	static const struct assay_graph_view whole = {.format = ASSAY_GRAPH_TREE, .sort = ASSAY_GRAPH_BY_CUMULATIVE};
	struct filtering f = {graph, view ? view : &whole};
	CLEANUP(buf_release) struct buf out;
	struct error err = {"out of memory for the text of a graph"};
	const enum graph_sort sort = sort_of(f.view->sort);
	graph_filter *filter = f.view->keep ? keep : NULL;
	const int width = f.view->width > 0 ? f.view->width : NAMES_WIDTH;
	enum assay_graph_format format = f.view->format;
	int result;

	buf_init(&out);
	if (!graph) {
		last_error_set("assay_graph_render needs a graph");
		return NULL;
	}
	if (format == ASSAY_GRAPH_TREE || format == ASSAY_GRAPH_CSV || format == ASSAY_GRAPH_DOT) {
		const struct graph_tree_options o = {.root = GRAPH_NONE, .sort = sort, .keep = filter, .context = &f,
						     .name_width = (unsigned)(f.view->width > 0 ? width : 0)};

		result = render_tree(&graph->graph, &o, format, &out, &err);
	} else {
		const struct graph_rows_options o = {.start = GRAPH_NONE, .sort = sort, .keep = filter, .context = &f};

		result = render_reference(&graph->graph, &o, format, width, &out, &err);
	}
	if (result < 0 || out.failed) {
		last_error_set("%s", err.text);
		return NULL;
	}
	return buf_detach(&out);
}
