/* Reads and writes *.graph files: text, a record to a line, fields between tabs. See docs/formats.md. */
#include "graph/graph_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"

#define FIRST_WORD "assay-graph "
#define VERSION    1
#define FIELDS_MAX 9
#define NUMBER_MAX 64
#define SURE_DIGITS 15 /* of these, a whole number is exact as a double */
#define NO_MODULE  "-"

/* One line, cut at its tabs. */
struct reading {
	const char *source, *at, *end;
	size_t line; /* from 1 */
	const char *fields[FIELDS_MAX];
	size_t lengths[FIELDS_MAX];
	size_t count;
	struct buf texts[3]; /* names without their escapes */
	struct graph *graph;
	struct error *err;
};

bool graph_file_is(const char *text, size_t length)
{
	return length > strlen(FIRST_WORD) && memcmp(text, FIRST_WORD, strlen(FIRST_WORD)) == 0;
}

static int fail(const struct reading *r, const char *what)
{
	return error_set(r->err, "%s: line %zu: %s", r->source, r->line, what);
}

/* The next line, which must begin with that word and have so many fields behind it. */
static int next(struct reading *r, const char *word, size_t count)
{
	const char *stop = r->at < r->end ? memchr(r->at, '\n', (size_t)(r->end - r->at)) : NULL;
	const char *at = r->at;

	r->line++;
	if (!stop)
		return fail(r, "the file ends within or before this line: it was cut off");
	r->count = 0;
	for (const char *field = at; field <= stop; field = at + 1) {
		at = memchr(field, '\t', (size_t)(stop - field));
		at = at ? at : stop;
		if (r->count == FIELDS_MAX)
			return fail(r, "it has too many fields");
		r->fields[r->count] = field;
		r->lengths[r->count++] = (size_t)(at - field);
	}
	r->at = stop + 1;
	if (r->lengths[0] != strlen(word) || memcmp(r->fields[0], word, strlen(word)) != 0 || r->count != count + 1)
		return error_set(r->err, "%s: line %zu: expected '%s' and %zu fields between tabs", r->source, r->line,
				 word, count);
	return 0;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A name, its escapes undone, in texts[`which`]. */
static int take_text(struct reading *r, size_t field, size_t which)
{
	const char *text = r->fields[field];
	struct buf *out = &r->texts[which];

	buf_clear(out);
	for (size_t i = 0; i < r->lengths[field]; i++) {
		int high, low;

		if (text[i] != '\\') {
			if ((unsigned char)text[i] < 0x20)
				return fail(r, "a name has a control character that is not written as \\xHH");
			buf_putc(out, text[i]);
			continue;
		}
		if (i + 3 >= r->lengths[field] || text[i + 1] != 'x')
			return fail(r, "a backslash in a name is not followed by xHH");
		high = hex_digit(text[i + 2]), low = hex_digit(text[i + 3]);
		if (high < 0 || low < 0 || high + low == 0)
			return fail(r, "a backslash in a name is not followed by xHH");
		buf_putc(out, (char)(high * 16 + low));
		i += 3;
	}
	return out->failed ? error_set(r->err, "%s: out of memory for a name", r->source) : 0;
}

static int take_number(struct reading *r, size_t field, char text[NUMBER_MAX])
{
	if (r->lengths[field] == 0 || r->lengths[field] >= NUMBER_MAX)
		return fail(r, "a number is expected where there is none");
	memcpy(text, r->fields[field], r->lengths[field]);
	text[r->lengths[field]] = '\0';
	return 0;
}

/* The digits of a field as a whole number, and how many stand behind a point. False where it is anything else, or has
 * more than 15 digits: what is longer, or written otherwise, is for base/parse. */
static bool take_digits(const struct reading *r, size_t field, uint64_t *ret, unsigned *ret_places)
{
	const char *text = r->fields[field];
	const size_t length = r->lengths[field];
	size_t point = length;

	if (length == 0 || length > SURE_DIGITS || text[0] == '.' || text[length - 1] == '.')
		return false;
	*ret = 0;
	for (size_t i = 0; i < length; i++) {
		if (text[i] >= '0' && text[i] <= '9')
			*ret = *ret * 10 + (uint64_t)(text[i] - '0');
		else if (text[i] == '.' && point == length)
			point = i;
		else
			return false;
	}
	*ret_places = point < length ? (unsigned)(length - 1 - point) : 0;
	return true;
}

static int take_count(struct reading *r, size_t field, int64_t least, int64_t most, int64_t *ret)
{
	char text[NUMBER_MAX];
	uint64_t digits;
	unsigned places;
	int64_t value;

	if (take_digits(r, field, &digits, &places) && places == 0 && (int64_t)digits >= least &&
	    (int64_t)digits <= most) {
		*ret = (int64_t)digits;
		return 0;
	}
	if (take_number(r, field, text) < 0)
		return -1;
	if (!parse_i64(text, &value) || value < least || value > most)
		return error_set(r->err, "%s: line %zu: '%.40s' is not a whole number from %" PRId64 " to %" PRId64,
				 r->source, r->line, text, least, most);
	*ret = value;
	return 0;
}

static int take_cost(struct reading *r, size_t field, double *ret)
{
	/* Exact, as so short a whole number is: their quotient is the double that is nearest to the text. */
	static const double powers[] = {1,   1e1, 1e2, 1e3,  1e4,  1e5,	 1e6,  1e7,
					1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
	char text[NUMBER_MAX];
	uint64_t digits;
	unsigned places;
	double value;

	if (take_digits(r, field, &digits, &places)) {
		*ret = (double)digits / powers[places];
		return 0;
	}
	if (take_number(r, field, text) < 0)
		return -1;
	if (!parse_double(text, &value) || !isfinite(value) || value < 0)
		return error_set(r->err, "%s: line %zu: '%.40s' is not a cost: a number from 0 on", r->source, r->line,
				 text);
	*ret = value;
	return 0;
}

/* "WORD N": how many lines follow. */
static int take_section(struct reading *r, const char *word, int64_t *ret)
{
	return next(r, word, 1) < 0 ? -1 : take_count(r, 1, 0, INT32_MAX, ret);
}

static int read_node(struct reading *r)
{
	struct graph *g = r->graph;
	const size_t before = g->node_count;
	int64_t line, nc1, nc2;
	double tin, tall;
	uint32_t node;
	bool no_module;

	if (next(r, "n", 8) < 0 || take_text(r, 1, 0) < 0 || take_count(r, 2, 0, INT64_MAX, &line) < 0 ||
	    take_text(r, 3, 1) < 0 || take_text(r, 4, 2) < 0 || take_count(r, 5, -1, INT64_MAX, &nc1) < 0 ||
	    take_count(r, 6, -1, INT64_MAX, &nc2) < 0 || take_cost(r, 7, &tin) < 0 || take_cost(r, 8, &tall) < 0)
		return -1;
	no_module = r->lengths[4] == strlen(NO_MODULE) && memcmp(r->fields[4], NO_MODULE, strlen(NO_MODULE)) == 0;
	if (graph_node(g, r->texts[0].text, r->texts[0].length, line, r->texts[1].text, r->texts[1].length,
		       no_module ? NULL : r->texts[2].text, &node, r->err) < 0)
		return -1;
	if (g->node_count == before)
		return fail(r, "this function stands here for the second time");
	g->nodes[node].nc1 = nc1;
	g->nodes[node].nc2 = nc2;
	g->nodes[node].tin = tin;
	g->nodes[node].tall = tall;
	return 0;
}

static int read_edge(struct reading *r)
{
	struct graph *g = r->graph;
	const int64_t last = (int64_t)g->node_count - 1;
	const size_t before = g->edge_count;
	struct graph_edge read = {0}, *e;
	int64_t caller, callee;

	if (next(r, "e", 6) < 0 || take_count(r, 1, 0, last, &caller) < 0 || take_count(r, 2, 0, last, &callee) < 0 ||
	    take_count(r, 3, -1, INT64_MAX, &read.nc1) < 0 || take_count(r, 4, -1, INT64_MAX, &read.nc2) < 0 ||
	    take_cost(r, 5, &read.tin) < 0 || take_cost(r, 6, &read.tall) < 0)
		return -1;
	read.caller = (uint32_t)caller;
	read.callee = (uint32_t)callee;
	e = graph_edge(g, read.caller, read.callee, r->err);
	if (!e)
		return -1;
	if (g->edge_count == before)
		return fail(r, "these calls stand here for the second time");
	*e = read;
	return 0;
}

static int read_way(struct reading *r)
{
	struct graph *g = r->graph;
	const int64_t last = g->way_count ? (int64_t)g->way_count - 1 : 0;
	int64_t parent, node, calls;
	uint32_t way;
	double self;

	if (next(r, "w", 4) < 0 || take_count(r, 1, 0, last, &parent) < 0 ||
	    take_count(r, 2, 0, (int64_t)g->node_count - 1, &node) < 0 || take_cost(r, 3, &self) < 0 ||
	    take_count(r, 4, -1, INT64_MAX, &calls) < 0)
		return -1;
	if (graph_way(g, (uint32_t)parent, (uint32_t)node, &way, r->err) < 0)
		return -1;
	if (way <= (uint32_t)last)
		return fail(r, "this way stands here for the second time");
	g->ways[way].self = self;
	g->ways[way].calls = calls;
	return 0;
}

static int read_section(struct reading *r, const char *word, int (*read)(struct reading *))
{
	int64_t count;

	if (take_section(r, word, &count) < 0)
		return -1;
	for (int64_t i = 0; i < count; i++)
		if (read(r) < 0)
			return -1;
	return 0;
}

static int read_note(struct reading *r)
{
	if (next(r, "note", 1) < 0 || take_text(r, 1, 0) < 0)
		return -1;
	return graph_note(r->graph, "%s", r->texts[0].text) < 0 ? error_set(r->err, "%s: out of memory", r->source) : 0;
}

static int read_heading(struct reading *r)
{
	double per_second;
	int64_t estimated;

	r->line = 1;
	r->at = memchr(r->at, '\n', (size_t)(r->end - r->at));
	if (!r->at)
		return fail(r, "the file ends within or before this line: it was cut off");
	r->at++;
	if (next(r, "unit", 2) < 0 || take_text(r, 1, 0) < 0 || take_cost(r, 2, &per_second) < 0 ||
	    graph_set_unit(r->graph, r->texts[0].text, per_second, r->err) < 0 || next(r, "estimated", 1) < 0 ||
	    take_count(r, 1, 0, 1, &estimated) < 0)
		return -1;
	r->graph->edge_costs_estimated = estimated;
	return 0;
}

static int read_all(struct reading *r)
{
	if (read_heading(r) < 0 || read_section(r, "notes", read_note) < 0 ||
	    read_section(r, "nodes", read_node) < 0 || read_section(r, "edges", read_edge) < 0 ||
	    read_section(r, "ways", read_way) < 0 || next(r, "end", 0) < 0)
		return -1;
	if (r->at != r->end) {
		r->line++;
		return fail(r, "nothing may follow the line 'end'");
	}
	return 0;
}

int graph_file_read(const char *text, size_t length, const char *source, struct graph *ret, struct error *err)
{
	return graph_file_build(text, length, source, ret, err) < 0 ? -1 : graph_finish(ret, err);
}

int graph_file_build(const char *text, size_t length, const char *source, struct graph *ret, struct error *err)
{
	struct reading r = {.source = source, .at = text, .end = text + length, .graph = ret, .err = err};
	char version[NUMBER_MAX];
	int64_t number = 0;
	int result;

	if (!graph_file_is(text, length))
		return error_set(err, "%s: it is no graph file: its first line does not begin with '%s'", source,
				 FIRST_WORD);
	snprintf(version, sizeof version, "%.*s", (int)(length < 40 ? length : 40) - (int)strlen(FIRST_WORD),
		 text + strlen(FIRST_WORD));
	version[strcspn(version, "\n")] = '\0';
	if (!parse_i64(version, &number) || number != VERSION)
		return error_set(err, "%s: line 1: this program reads graph files of version %d, and not '%s'", source,
				 VERSION, version);
	for (size_t i = 0; i < sizeof r.texts / sizeof *r.texts; i++)
		buf_init(&r.texts[i]);
	ret->source = "graph";
	result = read_all(&r);
	for (size_t i = 0; i < sizeof r.texts / sizeof *r.texts; i++)
		buf_release(&r.texts[i]);
	return result;
}

static void put_text(struct buf *out, const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f || *text == '\\')
			buf_printf(out, "\\x%02x", (unsigned)*text);
		else
			buf_putc(out, *text);
}

static void put_module(struct buf *out, const char *module)
{
	if (!module)
		buf_puts(out, NO_MODULE);
	else if (strcmp(module, NO_MODULE) == 0)
		buf_puts(out, "\\x2d");
	else
		put_text(out, module);
}

/* The shorter text where it reads back as the same: most costs are whole nanoseconds. */
static void put_cost(struct buf *out, double value)
{
	char text[NUMBER_MAX];
	double back;

	snprintf(text, sizeof text, "%.15g", value);
	if (!parse_double(text, &back) || back < value || back > value)
		snprintf(text, sizeof text, "%.17g", value);
	buf_putc(out, '\t');
	buf_puts(out, text);
}

void graph_file_write(const struct graph *g, struct buf *out)
{
	buf_printf(out, FIRST_WORD "%d\nunit\t", VERSION);
	put_text(out, g->unit ? g->unit : "");
	put_cost(out, g->per_second);
	buf_printf(out, "\nestimated\t%d\nnotes\t%zu\n", g->edge_costs_estimated, g->note_count);
	for (size_t i = 0; i < g->note_count; i++) {
		buf_puts(out, "note\t");
		put_text(out, g->notes[i]);
		buf_putc(out, '\n');
	}
	buf_printf(out, "nodes\t%zu\n", g->node_count);
	for (size_t i = 0; i < g->node_count; i++) {
		const struct graph_node *n = &g->nodes[i];

		buf_puts(out, "n\t");
		put_text(out, n->file);
		buf_printf(out, "\t%" PRId64 "\t", n->line);
		put_text(out, n->name);
		buf_putc(out, '\t');
		put_module(out, n->module);
		buf_printf(out, "\t%" PRId64 "\t%" PRId64, n->nc1, n->nc2);
		put_cost(out, n->tin);
		put_cost(out, n->tall);
		buf_putc(out, '\n');
	}
	buf_printf(out, "edges\t%zu\n", g->edge_count);
	for (size_t i = 0; i < g->edge_count; i++) {
		const struct graph_edge *e = &g->edges[i];

		buf_printf(out, "e\t%" PRIu32 "\t%" PRIu32 "\t%" PRId64 "\t%" PRId64, e->caller, e->callee, e->nc1,
			   e->nc2);
		put_cost(out, e->tin);
		put_cost(out, e->tall);
		buf_putc(out, '\n');
	}
	buf_printf(out, "ways\t%zu\n", g->way_count ? g->way_count - 1 : 0);
	for (size_t i = 1; i < g->way_count; i++) {
		buf_printf(out, "w\t%" PRIu32 "\t%" PRIu32, g->ways[i].parent, g->ways[i].node);
		put_cost(out, g->ways[i].self);
		buf_printf(out, "\t%" PRId64 "\n", g->ways[i].calls);
	}
	buf_puts(out, "end\n");
}
