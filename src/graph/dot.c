/* The graph itself for Graphviz: functions as boxes, calls as arrows, both coloured by their share of the whole. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "graph/quote.h"
#include "graph/tree.h"
#include "graph/words.h"

#define NAME_COLUMNS 60
#define EDGES_SHARE 5 /* calls are shown from this part of the least share of a function on */

static double share_of(const struct graph *g, double cost)
{
	double share = g->total > 0 ? cost / g->total : 0;

	return share > 1 ? 1 : share > 0 ? share : 0;
}

/* Hue from blue (cold) to red, in Graphviz's own form; readable with white text on it. */
static void put_colour(struct buf *out, double share)
{
	buf_printf(out, "\"%.3f %.3f %.3f\"", 0.66 * (1 - share), 0.6 + 0.3 * share, 0.45 + 0.3 * share);
}

static void put_node(const struct graph *g, uint32_t node, struct buf *out)
{
	CLEANUP(buf_release) struct buf label;
	const struct graph_node *n = &g->nodes[node];

	buf_init(&label);
	graph_words_function(&label, n, NAME_COLUMNS, false);
	buf_printf(&label, "\n%s, %s\nself %s", graph_words_cost(g, n->tall).text,
		   graph_words_share(share_of(g, n->tall), false).text, graph_words_cost(g, n->tin).text);
	if (n->nc2 >= 0)
		buf_printf(&label, "\n%s call%s", units_count((double)n->nc2).text, n->nc2 == 1 ? "" : "s");
	out->failed |= label.failed;
	buf_printf(out, "\tn%" PRIu32 " [label=", node);
	graph_quote_dot(out, label.text);
	buf_puts(out, ", color=");
	put_colour(out, share_of(g, n->tall));
	buf_puts(out, "];\n");
}

static void put_edge(const struct graph *g, const struct graph_edge *e, struct buf *out)
{
	CLEANUP(buf_release) struct buf label;
	double share = share_of(g, e->tall);

	buf_init(&label);
	buf_printf(&label, "%s", graph_words_share(share, g->edge_costs_estimated).text);
	if (e->nc2 >= 0)
		buf_printf(&label, "\n%s", units_count((double)e->nc2).text);
	out->failed |= label.failed;
	buf_printf(out, "\tn%" PRIu32 " -> n%" PRIu32 " [label=", e->caller, e->callee);
	graph_quote_dot(out, label.text);
	buf_puts(out, ", color=");
	put_colour(out, share);
	buf_printf(out, ", penwidth=%.2f];\n", 1 + 3 * share);
}

int graph_dot(const struct graph *g, const struct graph_tree_options *o, struct buf *out)
{
	CLEANUP(free_cleanup) bool *shown = calloc(g->node_count + 1, sizeof *shown);

	if (!shown)
		return -1;
	buf_puts(out, "digraph calls {\n"
		      "\tnode [shape=box, style=filled, fontname=\"sans-serif\", fontcolor=white];\n"
		      "\tedge [fontname=\"sans-serif\", fontsize=10];\n");
	for (size_t i = 0; i < g->node_count; i++) {
		shown[i] = share_of(g, g->nodes[i].tall) >= o->min_share &&
			   (!o->keep || o->keep(o->context, g, (uint32_t)i, NULL));
		if (shown[i])
			put_node(g, (uint32_t)i, out);
	}
	for (size_t i = 0; i < g->edge_count; i++)
		if (shown[g->edges[i].caller] && shown[g->edges[i].callee] &&
		    share_of(g, g->edges[i].tall) >= o->min_share / EDGES_SHARE)
			put_edge(g, &g->edges[i], out);
	buf_puts(out, "}\n");
	return out->failed ? -1 : 0;
}
