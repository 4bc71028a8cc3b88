/* The tree for a terminal: a line for each row, its figures in columns, its name behind the lines of the tree. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/wrap.h"
#include "graph/tree.h"
#include "graph/words.h"

#define GAP "  "
#define GAP_COLUMNS 2
#define PARENT_FROM 100 /* columns of a terminal that also has room for shares of the parent */
#define NAMES_LEAST 22  /* columns of names with their tree lines: for less, figures are left out */
#define NAME_BESIDE 8   /* columns of a name beside its mark: for less, the mark is a short one */
#define LEVEL_COLUMNS 2
#define LEVELS_MAX 60 /* of tree lines, however wide it may get: a file may be a million levels deep */
#define LEVELS_LEAST 3
#define PROSE_COLUMNS 100

enum figure { SHARE, OF_PARENT, TOTAL, SELF, CALLS, FIGURES };

static const char *const headings[FIGURES] = {"share", "of caller", "total", "self", "calls"};

struct printing {
	const struct graph *g;
	const struct graph_tree *t;
	const struct graph_tree_options *o;
	struct buf *out;
	size_t widths[FIGURES]; /* 0: the column is left out */
	size_t columns;         /* of names with their tree lines; SIZE_MAX: any */
	size_t levels;          /* of tree lines; deeper rows tell their depth instead */
	bool chained;           /* too deep for a level each: only calls stand below their callers without one */
	bool *last;             /* by row: nothing is shown beside it that comes later */
	uint32_t *level;        /* by row: of its tree lines */
	uint32_t *calls;        /* by row: how many are shown below it */
	bool *open;             /* by level: a tree line passes there */
};

static void printing_release(struct printing *p)
{
	free(p->last);
	free(p->level);
	free(p->calls);
	free(p->open);
}

/* What is small even when it is summed up says nothing. */
static bool is_shown(const struct printing *p, const struct graph_tree_row *r)
{
	return !r->hidden || r->share >= p->o->min_share;
}

static struct units_text figure_of(const struct printing *p, const struct graph_tree_row *r, enum figure which)
{
	static const struct units_text nothing = {""};

	switch (which) {
	case SHARE:
		return graph_words_share(r->share, r->estimated);
	case OF_PARENT:
		return r->parent == GRAPH_NONE ? nothing : graph_words_share(r->share_of_parent, r->estimated);
	case TOTAL:
		return graph_words_marked(graph_words_cost(p->g, r->total), r->estimated);
	case SELF:
		return r->hidden ? nothing : graph_words_marked(graph_words_cost(p->g, r->self), r->self_estimated);
	case CALLS:
		return r->calls < 0 ? nothing : graph_words_marked(units_count((double)r->calls), r->calls_estimated);
	case FIGURES:
		break;
	}
	return nothing;
}

/* A column is as wide as its widest figure, and left out where it has none, or where names would have too little room
 * on a terminal. Returns what all take. */
static size_t measure_figures(struct printing *p)
{
	static const enum figure dispensable[] = {CALLS, SELF};
	size_t used = 0;

	for (enum figure f = SHARE; f < FIGURES; f++)
		for (size_t i = 0; i < p->t->count; i++) {
			size_t width = wrap_width(figure_of(p, &p->t->rows[i], f).text);

			if (is_shown(p, &p->t->rows[i]) && width > p->widths[f])
				p->widths[f] = width;
		}
	if (p->o->columns && p->o->columns < PARENT_FROM)
		p->widths[OF_PARENT] = 0;
	for (enum figure f = SHARE; f < FIGURES; f++) {
		if (p->widths[f] && p->widths[f] < strlen(headings[f]))
			p->widths[f] = strlen(headings[f]);
		used += p->widths[f] ? p->widths[f] + GAP_COLUMNS : 0;
	}
	for (size_t i = 0; i < sizeof dispensable / sizeof *dispensable; i++) {
		size_t *width = &p->widths[dispensable[i]];

		if (p->o->columns && p->o->columns < used + NAMES_LEAST && *width) {
			used -= *width + GAP_COLUMNS;
			*width = 0;
		}
	}
	return used;
}

static void measure(struct printing *p)
{
	size_t used = measure_figures(p), deepest = 0;

	for (size_t i = 0; i < p->t->count; i++)
		deepest = p->t->rows[i].depth > deepest ? p->t->rows[i].depth : deepest;
	p->columns = p->o->columns > used ? p->o->columns - used : p->o->columns ? 1 : SIZE_MAX;
	if (p->o->name_width && p->o->name_width < p->columns)
		p->columns = p->o->name_width;
	p->levels = p->columns / 2 / LEVEL_COLUMNS;
	p->levels = p->levels > LEVELS_MAX ? LEVELS_MAX : p->levels < LEVELS_LEAST ? LEVELS_LEAST : p->levels;
	p->chained = deepest > p->levels;
	p->last = calloc(p->t->count + 1, sizeof *p->last);
	p->level = calloc(p->t->count + 1, sizeof *p->level);
	p->calls = calloc(p->t->count + 1, sizeof *p->calls);
	p->open = calloc(deepest + 2, sizeof *p->open);
	p->out->failed |= !p->last || !p->level || !p->calls || !p->open;
}

/* Whether it needs no tree line of its own, as it can only belong to the row above. Those below roots could be taken
 * for roots. */
static bool is_chained(const struct printing *p, const struct graph_tree_row *r)
{
	return p->chained && r->depth > 1 && p->calls[r->parent] == 1;
}

static void lay_out(struct printing *p)
{
	for (size_t i = p->t->count; i-- > 0;) {
		const struct graph_tree_row *r = &p->t->rows[i];

		if (!is_shown(p, r))
			continue;
		p->last[i] = !p->open[r->depth];
		p->open[r->depth] = true;
		p->open[r->depth + 1] = false;
		if (r->depth)
			p->calls[r->parent]++;
	}
	for (size_t i = 0; i < p->t->count; i++) {
		const struct graph_tree_row *r = &p->t->rows[i];

		if (r->depth)
			p->level[i] = p->level[r->parent] + !is_chained(p, r);
	}
}

/* Returns how many columns they take. */
static size_t put_tree_lines(struct printing *p, size_t i)
{
	const struct graph_tree_row *r = &p->t->rows[i];
	size_t start = p->out->length;
	uint32_t from = 1, own = p->level[i];
	bool chained = is_chained(p, r);

	if (own > p->levels) {
		from = own - (uint32_t)p->levels + LEVELS_LEAST;
		buf_printf(p->out, "[%" PRIu32 "] ", r->depth);
	}
	if (!chained)
		p->open[own] = !p->last[i];
	for (uint32_t level = from; level < own + chained; level++)
		buf_puts(p->out, p->open[level] ? "| " : "  ");
	if (r->depth && !chained)
		buf_puts(p->out, p->last[i] ? "`-" : "|-");
	return p->out->length - start;
}

static const char *mark_of(const struct graph_tree_row *r, size_t columns)
{
	if (!r->recursive)
		return r->cut ? " ..." : "";
	if (columns < strlen(" (recursive)") + NAME_BESIDE)
		return r->cut ? " ..." : " (rec.)";
	return r->cut ? " (recursive) ..." : " (recursive)";
}

static void put_name(struct printing *p, const struct graph_tree_row *r, size_t columns)
{
	const char *mark = mark_of(r, columns);
	size_t width = strlen(mark);

	if (r->hidden) {
		buf_printf(p->out, "(%s more)", units_count(r->hidden).text);
		return;
	}
	if (columns != SIZE_MAX)
		columns = columns > width ? columns - width : 1;
	graph_words_function(p->out, &p->g->nodes[r->node], columns, p->o->colour);
	buf_puts(p->out, mark);
}

static void put_row(struct printing *p, size_t i)
{
	const struct graph_tree_row *r = &p->t->rows[i];
	const char *colour = graph_words_colour(r->share, p->o->colour);
	size_t used;

	buf_puts(p->out, colour);
	for (enum figure f = SHARE; f < FIGURES; f++)
		if (p->widths[f])
			buf_printf(p->out, "%*s" GAP, (int)p->widths[f], figure_of(p, r, f).text);
	buf_puts(p->out, *colour ? "\033[0m" : "");
	used = put_tree_lines(p, i);
	put_name(p, r, p->columns == SIZE_MAX ? SIZE_MAX : p->columns > used ? p->columns - used : 1);
	buf_putc(p->out, '\n');
}

static void put_prose(struct printing *p, const char *text)
{
	size_t columns = p->o->columns && p->o->columns < PROSE_COLUMNS ? p->o->columns : PROSE_COLUMNS;

	wrap_append(p->out, text, 0, 2, columns);
}

/* "810.6 ms in 6 functions", or of one function: what the shares are of. */
static void put_whole(struct printing *p)
{
	CLEANUP(buf_release) struct buf line;
	const struct graph *g = p->g;
	const char *unit = g->per_second > 0 || !g->unit ? "" : g->unit;

	buf_init(&line);
	buf_printf(&line, "%s%s%s", graph_words_cost(g, p->t->whole).text, *unit ? " " : "", unit);
	if (p->o->root != GRAPH_NONE) {
		buf_puts(&line, " in ");
		graph_words_function(&line, &g->nodes[p->o->root], SIZE_MAX, false);
		if (g->total > 0)
			buf_printf(&line, ", %.1f%% of all", 100 * p->t->whole / g->total);
	} else {
		buf_printf(&line, " in %s function%s", units_count((double)g->node_count).text,
			   g->node_count == 1 ? "" : "s");
	}
	if (p->o->min_share > 0)
		buf_printf(&line, "; what is below %g%% is left out or summed up", 100 * p->o->min_share);
	p->out->failed |= line.failed;
	put_prose(p, line.text);
	buf_putc(p->out, '\n');
}

static void put_explanations(struct printing *p)
{
	bool cut = false;

	for (size_t i = 0; i < p->t->count; i++)
		cut |= p->t->rows[i].cut;
	if (p->t->estimated || cut || p->chained)
		buf_putc(p->out, '\n');
	if (p->t->estimated)
		put_prose(p, "~ is an estimate: the file says who called whom, but not on which way. What a function "
			     "with several callers calls is divided among them by what each spent in it.");
	if (p->chained)
		put_prose(p, "The tree is deep: a name without a line of the tree before it is called by the one above "
			     "it, of which nothing else is shown.");
	if (cut)
		put_prose(p, p->t->too_large ? "... has calls that are not shown: the tree is too large. --root "
					       "FUNCTION shows a part of it, a larger --min-share less of all."
					     : "... has calls that are not shown: they are deeper than --depth.");
}

int graph_tree_text(const struct graph *g, const struct graph_tree *t, const struct graph_tree_options *o,
		    struct buf *out)
{
	CLEANUP(printing_release) struct printing p = {.g = g, .t = t, .o = o, .out = out};

	measure(&p);
	if (out->failed)
		return -1;
	lay_out(&p);
	put_whole(&p);
	buf_puts(out, o->colour ? "\033[1m" : "");
	for (enum figure f = SHARE; f < FIGURES; f++)
		if (p.widths[f])
			buf_printf(out, "%*s" GAP, (int)p.widths[f], headings[f]);
	buf_printf(out, "function%s\n", o->colour ? "\033[0m" : "");
	for (size_t i = 0; i < t->count; i++)
		if (is_shown(&p, &t->rows[i]))
			put_row(&p, i);
	put_explanations(&p);
	return out->failed ? -1 : 0;
}
