/* The tree for programs: JSON, rows of JSON and CSV. All three have the same rows in the same order, which say
 * themselves what they belong to: trees as deep as a recursion are more than some readers can nest. */
#include <inttypes.h>

#include "graph/quote.h"
#include "graph/tree.h"

static void put_key(struct buf *out, const char *key)
{
	buf_printf(out, ", \"%s\": ", key);
}

static void put_real(struct buf *out, const char *key, double value)
{
	put_key(out, key);
	graph_quote_number(out, value, "null");
}

static void put_whole(struct buf *out, const char *key, int64_t value, bool known)
{
	put_key(out, key);
	buf_printf(out, known ? "%" PRId64 : "null", value);
}

static void put_flag(struct buf *out, const char *key, bool value)
{
	put_key(out, key);
	buf_puts(out, value ? "true" : "false");
}

static void put_row(const struct graph *g, const struct graph_tree_row *r, struct buf *out)
{
	const struct graph_node *n = r->node == GRAPH_NONE ? NULL : &g->nodes[r->node];

	buf_puts(out, "{\"function\": ");
	graph_quote_json(out, n ? n->name : NULL);
	put_key(out, "file");
	graph_quote_json(out, n && *n->file ? n->file : NULL);
	put_whole(out, "line", n ? n->line : 0, n && n->line > 0);
	put_key(out, "module");
	graph_quote_json(out, n ? n->module : NULL);
	put_whole(out, "calls", r->calls, r->calls >= 0);
	put_real(out, "self", r->self);
	put_real(out, "total", r->total);
	put_real(out, "share", r->share);
	put_real(out, "share_of_parent", r->share_of_parent);
	put_whole(out, "depth", r->depth, true);
	put_whole(out, "parent", r->parent, r->parent != GRAPH_NONE);
	put_flag(out, "estimated", r->estimated);
	put_flag(out, "self_estimated", r->self_estimated);
	put_flag(out, "calls_estimated", r->calls_estimated);
	put_flag(out, "recursive", r->recursive);
	put_flag(out, "cut", r->cut);
	put_whole(out, "hidden", r->hidden, true);
	buf_putc(out, '}');
}

static void put_rows(const struct graph *g, const struct graph_tree *t, const char *indent, struct buf *out)
{
	buf_putc(out, '[');
	for (size_t i = 0; i < t->count; i++) {
		buf_printf(out, "%s\n%s", i ? "," : "", indent);
		put_row(g, &t->rows[i], out);
	}
	buf_puts(out, "\n]");
}

int graph_tree_json(const struct graph *g, const struct graph_tree *t, struct buf *out)
{
	buf_puts(out, "{\"source\": ");
	graph_quote_json(out, g->source);
	put_key(out, "unit");
	graph_quote_json(out, g->unit);
	put_real(out, "per_second", g->per_second);
	put_real(out, "total", g->total);
	put_real(out, "whole", t->whole);
	put_whole(out, "functions", (int64_t)g->node_count, true);
	put_whole(out, "edges", (int64_t)g->edge_count, true);
	put_flag(out, "exact", !t->estimated);
	put_flag(out, "complete", !t->too_large);
	put_key(out, "notes");
	buf_putc(out, '[');
	for (size_t i = 0; i < g->note_count; i++) {
		buf_puts(out, i ? ", " : "");
		graph_quote_json(out, g->notes[i]);
	}
	buf_puts(out, "],\n \"tree\": ");
	put_rows(g, t, "  ", out);
	buf_puts(out, "}\n");
	return out->failed ? -1 : 0;
}

int graph_tree_rows(const struct graph *g, const struct graph_tree *t, struct buf *out)
{
	put_rows(g, t, " ", out);
	buf_putc(out, '\n');
	return out->failed ? -1 : 0;
}

int graph_tree_csv(const struct graph *g, const struct graph_tree *t, struct buf *out)
{
	buf_puts(out, "function,file,line,module,calls,self,total,share,share_of_parent,depth,parent,estimated,"
		      "self_estimated,calls_estimated,recursive,cut,hidden\n");
	for (size_t i = 0; i < t->count; i++) {
		const struct graph_tree_row *r = &t->rows[i];
		const struct graph_node *n = r->node == GRAPH_NONE ? NULL : &g->nodes[r->node];

		graph_quote_csv(out, n ? n->name : NULL);
		buf_putc(out, ',');
		graph_quote_csv(out, n ? n->file : NULL);
		buf_putc(out, ',');
		if (n && n->line > 0)
			buf_printf(out, "%" PRId64, n->line);
		buf_putc(out, ',');
		graph_quote_csv(out, n ? n->module : NULL);
		buf_putc(out, ',');
		if (r->calls >= 0)
			buf_printf(out, "%" PRId64, r->calls);
		for (size_t k = 0; k < 4; k++) {
			buf_putc(out, ',');
			graph_quote_number(out, (const double[]){r->self, r->total, r->share, r->share_of_parent}[k],
					   "");
		}
		buf_printf(out, ",%" PRIu32 ",", r->depth);
		if (r->parent != GRAPH_NONE)
			buf_printf(out, "%" PRIu32, r->parent);
		buf_printf(out, ",%d,%d,%d,%d,%d,%" PRIu32 "\n", r->estimated, r->self_estimated,
			   r->calls_estimated, r->recursive, r->cut,
			   r->hidden);
	}
	return out->failed ? -1 : 0;
}
