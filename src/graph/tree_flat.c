/* One line for each function, without a tree: what cost most by itself. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/wrap.h"
#include "graph/tree.h"
#include "graph/words.h"

#define GAP "  "
#define GAP_COLUMNS 2

enum figure { SELF_SHARE, SELF, TOTAL_SHARE, TOTAL, CALLS, FIGURES };

static const char *const headings[FIGURES] = {"self %", "self", "total %", "total", "calls"};

struct flat {
	const struct graph *g;
	const struct graph_tree_options *o;
	uint32_t *order;
	size_t count;
	double whole;
	size_t widths[FIGURES];
};

static void flat_release(struct flat *f)
{
	free(f->order);
}

static double key_of(const struct graph_node *n, enum graph_sort sort)
{
	return sort == GRAPH_BY_CUMULATIVE ? n->tall : sort == GRAPH_BY_CALLS ? (double)n->nc2 : n->tin;
}

static int compare(const void *left, const void *right, void *context)
{
	const struct flat *f = context;
	uint32_t i = *(const uint32_t *)left, j = *(const uint32_t *)right;
	const struct graph_node *x = &f->g->nodes[i], *y = &f->g->nodes[j];
	double p = key_of(x, f->o->sort), q = key_of(y, f->o->sort);
	int files = f->o->sort == GRAPH_BY_LINE ? strcmp(x->file, y->file) : 0;

	if (files)
		return files;
	if (f->o->sort == GRAPH_BY_LINE && x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (f->o->sort != GRAPH_BY_LINE && p != q)
		return p > q ? -1 : 1;
	return (i > j) - (i < j);
}

static double share_of(const struct flat *f, double cost)
{
	double share = f->whole > 0 ? cost / f->whole : 0;

	return share > 1 ? 1 : share > 0 ? share : 0;
}

static struct units_text figure_of(const struct flat *f, const struct graph_node *n, enum figure which)
{
	switch (which) {
	case SELF_SHARE:
		return graph_words_share(share_of(f, n->tin), false);
	case SELF:
		return graph_words_cost(f->g, n->tin);
	case TOTAL_SHARE:
		return graph_words_share(share_of(f, n->tall), false);
	case TOTAL:
		return graph_words_cost(f->g, n->tall);
	case CALLS:
		return n->nc2 < 0 ? (struct units_text){""} : units_count((double)n->nc2);
	case FIGURES:
		break;
	}
	return (struct units_text){""};
}

/* Which functions have a row: all that can be reached from a root would be more than people ask for here. */
static bool choose(struct flat *f, size_t *ret_hidden, double *ret_hidden_self)
{
	f->order = malloc((f->g->node_count + 1) * sizeof *f->order);
	for (size_t i = 0; f->order && i < f->g->node_count; i++) {
		const struct graph_node *n = &f->g->nodes[i];

		if ((f->o->min_share > 0 && n->tin < f->o->min_share * f->whole) ||
		    (f->o->keep && !f->o->keep(f->o->context, f->g, (uint32_t)i, NULL))) {
			++*ret_hidden;
			*ret_hidden_self += n->tin;
		} else {
			f->order[f->count++] = (uint32_t)i;
		}
	}
	if (f->order)
		qsort_r(f->order, f->count, sizeof *f->order, compare, f);
	return f->order != NULL;
}

static size_t measure(struct flat *f)
{
	size_t used = 0;

	for (enum figure k = SELF_SHARE; k < FIGURES; k++) {
		for (size_t i = 0; i < f->count; i++) {
			size_t width = wrap_width(figure_of(f, &f->g->nodes[f->order[i]], k).text);

			f->widths[k] = width > f->widths[k] ? width : f->widths[k];
		}
		if (f->widths[k] && f->widths[k] < strlen(headings[k]))
			f->widths[k] = strlen(headings[k]);
		used += f->widths[k] ? f->widths[k] + GAP_COLUMNS : 0;
	}
	return used;
}

int graph_flat_text(const struct graph *g, const struct graph_tree_options *o, struct buf *out)
{
	CLEANUP(flat_release) struct flat f = {.g = g, .o = o, .whole = g->total};
	size_t hidden = 0, used, columns;
	double hidden_self = 0;

	if (!choose(&f, &hidden, &hidden_self))
		return -1;
	used = measure(&f);
	columns = o->columns > used ? o->columns - used : o->columns ? 1 : SIZE_MAX;
	if (o->name_width && o->name_width < columns)
		columns = o->name_width;
	buf_puts(out, o->colour ? "\033[1m" : "");
	for (enum figure k = SELF_SHARE; k < FIGURES; k++)
		if (f.widths[k])
			buf_printf(out, "%*s" GAP, (int)f.widths[k], headings[k]);
	buf_printf(out, "function%s\n", o->colour ? "\033[0m" : "");
	for (size_t i = 0; i < f.count; i++) {
		const struct graph_node *n = &g->nodes[f.order[i]];
		const char *colour = graph_words_colour(share_of(&f, n->tin), o->colour);

		buf_puts(out, colour);
		for (enum figure k = SELF_SHARE; k < FIGURES; k++)
			if (f.widths[k])
				buf_printf(out, "%*s" GAP, (int)f.widths[k], figure_of(&f, n, k).text);
		buf_puts(out, *colour ? "\033[0m" : "");
		graph_words_function(out, n, columns, o->colour);
		buf_putc(out, '\n');
	}
	if (hidden)
		buf_printf(out, "(%s more: %s by themselves, %s)\n", units_count((double)hidden).text,
			   graph_words_share(share_of(&f, hidden_self), false).text,
			   graph_words_cost(g, hidden_self).text);
	return out->failed ? -1 : 0;
}
