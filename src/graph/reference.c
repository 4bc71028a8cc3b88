/* The reference's rows: as data, as text, and flat. */
#include "graph/reference.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "graph/quote.h"
#include "graph/reference_walk.h"

#define INDENT         4
#define INDENTS_MAX    ((uint64_t)1 << 30) /* bytes of text that are nothing but indentation */
#define SMALL_CALLS    10
#define SMALL_SECONDS  1e-4

bool graph_filter_reference(void *context, const struct graph *g, uint32_t node, const struct graph_edge *edge)
{
	/* One name begins with a blank, there as here. */
	static const char *const modules[] = {
		"~", "subprocess.py", "posixpath.py", "os.py", "<frozen importlib._bootstrap>", "inspect.py",
		"version.py", "typing.py", "warnings.py", "errors.py", "numbers.py", "ast.py", "threading.py",
		"_collections_abc.py", "datetime.py", "abc.py", "argparse.py", "__future__.py", "functools.py",
		"six.py", "sre_parse.py", "contextlib.py", " _globals.py", "_ios.py", "types.py",
	};
	const struct graph_node *n = &g->nodes[node];
	int64_t nc1 = edge ? edge->nc1 : n->nc1, nc2 = edge ? edge->nc2 : n->nc2;
	double tall = edge ? edge->tall : n->tall;

	(void)context;
	if (nc1 > SMALL_CALLS || nc2 > SMALL_CALLS || tall > SMALL_SECONDS)
		return true;
	for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
		if (strcmp(n->file, modules[i]) == 0)
			return false;
	return true;
}

/* --- One row after the other. --- */

typedef int visit_row(void *context, const struct graph_row *row, struct error *err);

/* What is still to be shown, the last first: an edge (GRAPH_NONE: a root) and how deep it stands. */
struct pending {
	uint32_t node, edge, indent;
};

struct pending_stack {
	struct pending *items;
	size_t count, room;
};

static void pending_release(struct pending_stack *s)
{
	free(s->items);
}

static int push(struct pending_stack *s, struct pending item, struct error *err)
{
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 256;
		struct pending *items = reallocarray(s->items, room, sizeof *items);

		if (!items)
			return error_set(err, "out of memory for the rows of a call graph");
		s->items = items;
		s->room = room;
	}
	s->items[s->count++] = item;
	return 0;
}

static struct graph_row row_of_node(const struct graph *g, struct pending at)
{
	const struct graph_node *n = &g->nodes[at.node];

	return (struct graph_row){at.node, n->nc1, n->nc2, n->tin, n->tall, at.indent, n->calls_to_count, false, "A"};
}

/* The reference has all calls before the primitive ones here, as a .prof file has them. */
static struct graph_row row_of_edge(const struct graph *g, struct pending at)
{
	const struct graph_edge *e = &g->edges[at.edge];

	return (struct graph_row){at.node, e->nc2, e->nc1, e->tin, e->tall, at.indent, g->nodes[at.node].calls_to_count,
				  true,	   "B"};
}

static int show(struct reference_walk *w, struct pending_stack *stack, visit_row *visit, void *context,
		struct error *err)
{
	struct pending at = stack->items[--stack->count];
	bool elsewhere = at.edge != GRAPH_NONE && reference_is_root(w->g, at.node);
	struct graph_row row;

	if (elsewhere && reference_check_edge(w->g, &w->g->edges[at.edge], err) < 0)
		return -1;
	row = elsewhere ? row_of_edge(w->g, at) : row_of_node(w->g, at);
	if (visit(context, &row, err) < 0)
		return -1;
	if (elsewhere)
		return 0;
	if (reference_calls(w, at.node, err) < 0)
		return -1;
	for (size_t i = w->call_count; i-- > 0;) {
		__builtin_prefetch(w->g->nodes[w->g->edges[w->calls[i]].callee].name);
		if (push(stack, (struct pending){w->g->edges[w->calls[i]].callee, w->calls[i], at.indent + 1}, err) < 0)
			return -1;
	}
	return 0;
}

/* A function that is no root has one caller and is shown once, below it: this ends. */
static int each_row(struct reference_walk *w, visit_row *visit, void *context, struct error *err)
{
	CLEANUP(pending_release) struct pending_stack stack = {0};

	for (size_t i = 0; i < w->root_count; i++) {
		if (push(&stack, (struct pending){w->roots[i], GRAPH_NONE, 0}, err) < 0)
			return -1;
		while (stack.count)
			if (show(w, &stack, visit, context, err) < 0)
				return -1;
	}
	return 0;
}

void graph_rows_release(struct graph_rows *r)
{
	free(r->items);
	*r = (struct graph_rows){0};
}

static int keep_row(void *context, const struct graph_row *row, struct error *err)
{
	struct graph_rows *r = context;

	if (r->count == r->room) {
		size_t room = r->room ? 2 * r->room : 64;
		struct graph_row *items = reallocarray(r->items, room, sizeof *items);

		if (!items)
			return error_set(err, "out of memory for %zu rows of a call graph", room);
		r->items = items;
		r->room = room;
	}
	r->items[r->count++] = *row;
	return 0;
}

int graph_rows(const struct graph *g, const struct graph_rows_options *o, struct graph_rows *ret, struct error *err)
{
	CLEANUP(reference_end) struct reference_walk w = {0};
	CLEANUP(graph_rows_release) struct graph_rows rows = {0};

	if (reference_begin(&w, g, o, err) < 0 || each_row(&w, keep_row, &rows, err) < 0)
		return -1;
	*ret = rows;
	rows = (struct graph_rows){0};
	return 0;
}

/* --- Text. --- */

struct text {
	const struct graph *g;
	FILE *stream;
	struct buf *out, line;
	int width;
	unsigned digits;
	int64_t most_calls;
	uint64_t indents;
	size_t count, printed;
};

static void text_release(struct text *t)
{
	buf_release(&t->line);
}

static int measure_row(void *context, const struct graph_row *row, struct error *err)
{
	struct text *t = context;

	(void)err;
	if (!t->count || row->nc1 > t->most_calls)
		t->most_calls = row->nc1;
	if (row->nc2 > t->most_calls)
		t->most_calls = row->nc2;
	t->indents += (uint64_t)INDENT * row->indent;
	t->count++;
	return 0;
}

/* Where character `index` begins, in characters as Python counts them; behind the end: the end. */
static const char *character_at(const char *text, int64_t index)
{
	size_t left = strlen(text);

	for (; index > 0 && left; index--) {
		size_t step = utf8_character(text, left);

		text += step ? step : 1;
		left -= step ? step : 1;
	}
	return text;
}

static int64_t count_characters(const char *text)
{
	size_t left = strlen(text);
	int64_t count = 0;

	for (; left; count++) {
		size_t step = utf8_character(text, left);

		text += step ? step : 1;
		left -= step ? step : 1;
	}
	return count;
}

/* A place of a slice: from the end where it is negative, and within the text. */
static int64_t slice_place(int64_t place, int64_t length)
{
	if (place < 0)
		place += length;
	return place < 0 ? 0 : place > length ? length : place;
}

/* The name in `size` columns (as it is where there are none): what is too long loses its middle. The sums are the
 * reference's, also where a narrow column makes the text longer. */
static void align_name(struct buf *out, const char *name, int64_t size)
{
	int64_t length = count_characters(name), half = size / 2 - 1;

	if (size <= 0) {
		buf_puts(out, name);
	} else if (length <= size) {
		buf_puts(out, name);
		for (; length < size; length++)
			buf_putc(out, ' ');
	} else {
		buf_append(out, name, (size_t)(character_at(name, slice_place(half, length)) - name));
		buf_puts(out, "...");
		buf_puts(out, character_at(name, slice_place(1 - half, length)));
	}
}

/* Python's and C's "% *d": a blank stands where the sign would. */
static void put_calls(struct buf *out, const char *before, int64_t calls, unsigned width)
{
	buf_puts(out, before);
	if (calls >= 0)
		buf_putc(out, ' ');
	graph_quote_whole(out, calls, calls >= 0 && width ? width - 1 : width);
}

static int print_row(void *context, const struct graph_row *row, struct error *err)
{
	struct text *t = context;
	const struct graph_node *n = &t->g->nodes[row->node];
	int64_t indent = (int64_t)INDENT * row->indent;

	buf_clear(&t->line);
	align_name(&t->line, n->name, t->width - indent);
	put_calls(&t->line, " -- ", row->nc1, t->digits);
	put_calls(&t->line, " ", row->nc2, t->digits);
	buf_puts(&t->line, " -- ");
	graph_quote_places(&t->line, row->tin);
	buf_putc(&t->line, ' ');
	graph_quote_places(&t->line, row->tall);
	buf_puts(&t->line, " -- ");
	buf_puts(&t->line, n->file);
	buf_putc(&t->line, ':');
	graph_quote_whole(&t->line, n->line, 0);
	for (int i = 0; i < 2; i++) {
		buf_puts(&t->line, i ? " (" : ":");
		buf_puts(&t->line, n->name);
	}
	buf_puts(&t->line, row->more ? ") +++" : ")");
	buf_puts(t->out, t->printed++ ? "\n" : "");
	for (; indent > 0; indent--)
		buf_putc(t->out, ' ');
	graph_quote_line(t->out, t->line.text);
	t->out->failed |= t->line.failed;
	return reference_pass_on(t->stream, t->out, err);
}

int graph_reference_text(const struct graph *g, const struct graph_rows_options *o, int width, struct buf *out,
			 struct error *err)
{
	CLEANUP(reference_end) struct reference_walk w = {0};
	CLEANUP(text_release) struct text t = {.g = g, .out = out, .width = width};

	t.stream = reference_may_fail(g) ? NULL : o->stream;

	buf_init(&t.line);
	if (reference_begin(&w, g, o, err) < 0 || each_row(&w, measure_row, &t, err) < 0)
		return -1;
	if (!t.count)
		return error_set(err,
				 "no function is left to show (is all filtered out, or does nothing begin the calls?)");
	if (t.indents > INDENTS_MAX)
		return error_set(err,
				 "as text the calls would be indented by %" PRIu64 " MiB in all, so deep are they: "
				 "use --format json or rows",
				 t.indents >> 20);
	if (reference_digits(t.most_calls, &t.digits, err) < 0)
		return -1;
	return each_row(&w, print_row, &t, err);
}

/* --- Rows as JSON. --- */

struct json_rows {
	const struct graph *g;
	FILE *stream;
	struct buf *out;
	bool any;
};

static int json_row(void *context, const struct graph_row *row, struct error *err)
{
	struct json_rows *j = context;

	buf_puts(j->out, j->any ? ", {" : "{");
	reference_details(j->g, row, j->out);
	buf_puts(j->out, row->more ? ", \"more\": \"+\"" : "");
	buf_puts(j->out, ", \"debug\": \"");
	buf_puts(j->out, row->debug);
	buf_puts(j->out, "\"}");
	j->any = true;
	return reference_pass_on(j->stream, j->out, err);
}

int graph_reference_rows(const struct graph *g, const struct graph_rows_options *o, struct buf *out, struct error *err)
{
	CLEANUP(reference_end) struct reference_walk w = {0};
	struct json_rows j = {g, reference_may_fail(g) ? NULL : o->stream, out, false};

	buf_putc(out, '[');
	if (reference_begin(&w, g, o, err) < 0 || each_row(&w, json_row, &j, err) < 0)
		return -1;
	buf_putc(out, ']');
	return reference_pass_on(NULL, out, err);
}

/* --- Flat rows. --- */

static void flat_row(struct buf *out, struct buf *place, const struct graph_node *n, bool first)
{
	buf_clear(place);
	buf_puts(place, n->file);
	buf_putc(place, ':');
	graph_quote_whole(place, n->line, 0);
	buf_puts(out, first ? "{\"file\": " : ", {\"file\": ");
	graph_quote_json(out, place->text);
	buf_puts(out, ", \"fct\": ");
	graph_quote_json(out, n->name);
	buf_puts(out, ", \"ncalls1\": ");
	graph_quote_whole(out, n->nc1, 0);
	buf_puts(out, ", \"ncalls2\": ");
	graph_quote_whole(out, n->nc2, 0);
	/* The reference adds up what callers have of their own, and they have nothing. */
	reference_number(out, "tin", n->tin);
	reference_number(out, "tall", n->tall);
	reference_number(out, "cum_tin", n->tin);
	reference_number(out, "cum_tall", n->tall);
	buf_putc(out, '}');
	out->failed |= place->failed;
}

int graph_reference_flat(const struct graph *g, FILE *stream, struct buf *out, struct error *err)
{
	CLEANUP(buf_release) struct buf place;
	size_t aside = 0;
	bool first = true;

	buf_init(&place);
	buf_putc(out, '[');
	for (size_t i = 0; i <= g->node_count; i++) {
		for (; aside < g->aside_count && g->asides[aside].before == i; aside++, first = false)
			flat_row(out, &place, &g->asides[aside].node, first);
		if (i < g->node_count) {
			flat_row(out, &place, &g->nodes[i], first);
			first = false;
		}
		if (reference_pass_on(stream, out, err) < 0)
			return -1;
	}
	buf_putc(out, ']');
	return reference_pass_on(NULL, out, err);
}
