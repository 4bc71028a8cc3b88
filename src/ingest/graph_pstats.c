/* Profiles of Python's cProfile and profile, as pstats keeps them: a dictionary from (file, line, function) to
 * (primitive calls, calls, own time, cumulative time, callers), where callers is one from the same keys to
 * (calls, primitive calls, own time, cumulative time): the other way round. The older profiler, profile, has only
 * the number of calls there. What this accepts is what pstats would. */
#include "ingest/graph_reader.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ingest/graph_pstats_marshal.h"

#define FIGURES      4
#define NOT_LOOKED   (GRAPH_NONE - 1)
#define PROFILER_END "method 'disable' of '_lsprof.Profiler'"

struct reader {
	struct marshal m;
	struct graph *g;
	struct error *err;
	struct buf file, name;
	uint32_t *by_number; /* the function that an object is the key of; NOT_LOOKED, GRAPH_NONE: left out */
	uint32_t *nodes;     /* of each member of the outermost dictionary; GRAPH_NONE: left out */
	uint32_t *first;     /* of each node: the member that has its key */
	uint32_t *edges;     /* of each node: the latest edge from it */
	size_t known;        /* functions that the profile has figures of */
	size_t callers;      /* read so far */
};

static void reader_release(struct reader *r)
{
	marshal_release(&r->m);
	buf_release(&r->file);
	buf_release(&r->name);
	free(r->by_number);
	free(r->nodes);
	free(r->first);
	free(r->edges);
	*r = (struct reader){0};
}

static int wrong(const struct reader *r, size_t at, const char *what)
{
	return error_set(r->err, "%s: byte %zu: %s", r->m.source, at, what);
}

static int no_memory(const struct reader *r)
{
	return error_set(r->err, "%s: out of memory for its functions", r->m.source);
}

/* The key at *at, into r->file and r->name (as they stand: with backslashes), and *ret_line. */
static int read_key(struct reader *r, size_t *at, int64_t *ret_line)
{
	const size_t begin = *at;
	struct marshal_value key = marshal_read(&r->m, at), file, line, name;
	size_t inside = key.contents;
	bool here = key.contents == *at;

	if (key.kind != MARSHAL_SEQUENCE || key.count != 3)
		return wrong(r, begin, "expected a function as (file, line, name)");
	file = marshal_read(&r->m, &inside);
	if (file.kind != MARSHAL_TEXT)
		return wrong(r, begin, "expected a function as (file, line, name), and its file is no text");
	line = marshal_read(&r->m, &inside);
	if (line.kind != MARSHAL_INT)
		return wrong(r, begin,
			     "expected a function as (file, line, name), and its line is no number of 64 bits");
	name = marshal_read(&r->m, &inside);
	if (name.kind != MARSHAL_TEXT)
		return wrong(r, begin, "expected a function as (file, line, name), and its name is no text");
	buf_clear(&r->file);
	buf_clear(&r->name);
	marshal_append_text(&r->file, &file);
	marshal_append_text(&r->name, &name);
	if (r->file.failed || r->name.failed)
		return no_memory(r);
	*ret_line = line.integer;
	if (here)
		*at = inside;
	return 0;
}

static bool is_left_out(const struct reader *r)
{
	return memmem(r->name.text, r->name.length, PROFILER_END, strlen(PROFILER_END)) != NULL;
}

/* The function of the key that was read, made where there is none. */
static int node_of_key(struct reader *r, int64_t line, uint32_t *ret)
{
	for (size_t i = 0; i < r->file.length; i++)
		if (r->file.text[i] == '\\')
			r->file.text[i] = '/';
	return graph_node(r->g, r->file.text, r->file.length, line, r->name.text, r->name.length, NULL, ret, r->err);
}

static int count_value(struct reader *r, size_t begin, const struct marshal_value *v, int64_t *ret)
{
	if (v->kind != MARSHAL_INT)
		return wrong(r, begin, v->kind == MARSHAL_HUGE ? "a number of calls is beyond 64 bits"
							       : "a number of calls is no whole number");
	if (v->integer < 0)
		return wrong(r, begin, "a number of calls is negative");
	*ret = v->integer;
	return 0;
}

static int time_value(struct reader *r, size_t begin, const struct marshal_value *v, double *ret)
{
	if (v->kind != MARSHAL_INT && v->kind != MARSHAL_REAL)
		return wrong(r, begin, "a time is no number, or beyond all times");
	*ret = v->kind == MARSHAL_INT ? (double)v->integer : v->real;
	return isfinite(*ret) ? 0 : wrong(r, begin, "a time is not finite");
}

/* Two numbers of calls and two times. */
static int read_figures(struct reader *r, size_t begin, size_t *at, int64_t calls[2], double times[2])
{
	for (int i = 0; i < FIGURES; i++) {
		struct marshal_value v = marshal_read(&r->m, at);

		if ((i < 2 ? count_value(r, begin, &v, &calls[i]) : time_value(r, begin, &v, &times[i - 2])) < 0)
			return -1;
	}
	return 0;
}

/* --- First the functions, in the order of the file. --- */

/* Python's dictionaries have a key once: with its first place, and its last value. */
static int same_key_again(struct reader *r, size_t member, uint32_t node)
{
	CLEANUP(buf_release) struct buf file;
	size_t at = r->m.members.items[2 * (size_t)r->first[node]];
	size_t again = r->m.members.items[2 * member];
	int64_t line;

	buf_init(&file);
	if (read_key(r, &again, &line) < 0)
		return -1;
	buf_append(&file, r->file.text, r->file.length);
	if (read_key(r, &at, &line) < 0)
		return -1;
	if (file.failed)
		return no_memory(r);
	if (file.length != r->file.length || memcmp(file.text, r->file.text, file.length) != 0)
		return error_set(r->err, "%s: byte %u: the file '%.200s' is there with other slashes too, and '%.100s' "
				 "in both", r->m.source, r->m.members.items[2 * member], file.text, r->name.text);
	r->m.members.items[2 * (size_t)r->first[node] + 1] = r->m.members.items[2 * member + 1];
	return 0;
}

/* The figures at the head of a member's value; *ret_callers is where its callers stand. */
static int read_value(struct reader *r, size_t at, int64_t calls[2], double times[2], size_t *ret_callers)
{
	const size_t begin = at;
	struct marshal_value value = marshal_read(&r->m, &at);
	size_t inside = value.contents;

	if (value.kind != MARSHAL_SEQUENCE || value.count != FIGURES + 1)
		return wrong(r, begin, "expected a function's figures as (calls, calls, time, time, callers)");
	if (read_figures(r, begin, &inside, calls, times) < 0)
		return -1;
	*ret_callers = inside;
	return 0;
}

static int read_aside(struct reader *r, size_t member, int64_t line)
{
	struct graph_node *n = graph_aside(r->g, r->file.text, r->file.length, line, r->name.text, r->name.length,
					   r->err);
	int64_t calls[2];
	double times[2];
	size_t callers;

	if (!n || read_value(r, r->m.members.items[2 * member + 1], calls, times, &callers) < 0)
		return -1;
	n->nc1 = calls[0];
	n->nc2 = calls[1];
	n->tin = times[0];
	n->tall = times[1];
	return 0;
}

static int read_function(struct reader *r, size_t member)
{
	size_t at = r->m.members.items[2 * member];
	int64_t line;
	uint32_t node;

	r->nodes[member] = GRAPH_NONE;
	if (read_key(r, &at, &line) < 0)
		return -1;
	if (is_left_out(r))
		return read_aside(r, member, line);
	if (node_of_key(r, line, &node) < 0)
		return -1;
	if (node < r->known)
		return same_key_again(r, member, node);
	r->first[r->known++] = (uint32_t)member;
	r->nodes[member] = node;
	return 0;
}

/* --- Then who called them. --- */

static int find_caller(struct reader *r, size_t *at, uint32_t *ret)
{
	const size_t begin = *at;
	uint32_t number = marshal_reference(&r->m, begin);
	int64_t line;

	if (number != UINT32_MAX && r->by_number[number] != NOT_LOOKED) {
		*at += MARSHAL_REFERENCE_BYTES;
		*ret = r->by_number[number];
		return 0;
	}
	if (read_key(r, at, &line) < 0)
		return -1;
	if (is_left_out(r))
		*ret = GRAPH_NONE;
	else if (node_of_key(r, line, ret) < 0)
		return -1;
	else if (*ret >= r->known)
		return error_set(r->err,
				 "%s: byte %zu: '%.200s:%" PRId64 ":%.100s' calls, and is not among the functions",
				 r->m.source, begin, r->file.text, line, r->name.text);
	if (number != UINT32_MAX)
		r->by_number[number] = *ret;
	return 0;
}

/* The edge, made where there is none. All calls of a function stand in one place, from `first_edge` on, so that the
 * number of the caller's latest edge tells: the edge itself would have to be fetched from memory. */
static struct graph_edge *edge_from(struct reader *r, uint32_t caller, uint32_t callee, size_t first_edge)
{
	struct graph *g = r->g;

	if (r->edges[caller] < g->edge_count && r->edges[caller] >= first_edge)
		return &g->edges[r->edges[caller]];
	r->edges[caller] = (uint32_t)g->edge_count;
	return graph_edge_new(g, caller, callee, r->err);
}

/* One caller: its figures, or of the older profiler its calls alone, which *ret_counted takes up. */
static int read_caller(struct reader *r, size_t *at, uint32_t callee, size_t first_edge, bool *ret_counted)
{
	const size_t begin = *at;
	struct graph_edge *edge;
	struct marshal_value value;
	int64_t calls[2] = {0, 0};
	double times[2] = {0, 0};
	uint32_t caller;
	size_t inside;

	/* References can repeat a dictionary without end. */
	if (r->callers++ > r->m.length)
		return wrong(r, begin, "the profile repeats callers more often than its size allows");
	if (find_caller(r, at, &caller) < 0)
		return -1;
	value = marshal_read(&r->m, at);
	inside = value.contents;
	if (value.kind == MARSHAL_INT || value.kind == MARSHAL_HUGE) {
		if (count_value(r, begin, &value, &calls[0]) < 0)
			return -1;
		calls[1] = -1;
		*ret_counted = true;
	} else if (value.kind != MARSHAL_SEQUENCE || value.count != FIGURES) {
		return wrong(r, begin, "expected a caller's figures as (calls, calls, time, time)");
	} else {
		bool here = value.contents == *at;

		if (read_figures(r, begin, &inside, calls, times) < 0)
			return -1;
		if (here)
			*at = inside;
	}
	if (caller == GRAPH_NONE)
		return 0;
	edge = edge_from(r, caller, callee, first_edge);
	if (!edge)
		return -1;
	*edge = (struct graph_edge){caller, callee, calls[1], calls[0], times[0], times[1]};
	return 0;
}

/* Where only calls were counted the function's times are divided among its callers by them. */
static void estimate(struct graph *g, const struct graph_node *n, size_t first_edge)
{
	double all = 0;

	for (size_t i = first_edge; i < g->edge_count; i++)
		all += (double)g->edges[i].nc2;
	for (size_t i = first_edge; all > 0 && i < g->edge_count; i++) {
		double share = (double)g->edges[i].nc2 / all;

		g->edges[i].tin = n->tin * share;
		g->edges[i].tall = n->tall * share;
	}
}

static int read_callers(struct reader *r, size_t member)
{
	uint32_t node = r->nodes[member];
	size_t at = r->m.members.items[2 * member + 1], callers, first_edge = r->g->edge_count;
	struct marshal_value dict;
	bool counted = false;
	int64_t calls[2];
	double times[2];

	if (node == GRAPH_NONE)
		return 0;
	if (read_value(r, at, calls, times, &callers) < 0)
		return -1;
	r->g->nodes[node].nc1 = calls[0];
	r->g->nodes[node].nc2 = calls[1];
	r->g->nodes[node].tin = times[0];
	r->g->nodes[node].tall = times[1];
	dict = marshal_read(&r->m, &callers);
	if (dict.kind != MARSHAL_DICT)
		return wrong(r, at, "expected a function's callers as a dictionary");
	for (at = dict.contents; !marshal_dict_ends(&r->m, at);)
		if (read_caller(r, &at, node, first_edge, &counted) < 0)
			return -1;
	if (counted) {
		estimate(r->g, &r->g->nodes[node], first_edge);
		r->g->edge_costs_estimated = true;
	}
	return 0;
}

static int read_notes(const struct reader *r)
{
	if (r->m.end < r->m.length &&
	    graph_note(r->g, "%zu bytes behind the profile are not looked at", r->m.length - r->m.end) < 0)
		return no_memory(r);
	if (r->g->edge_costs_estimated &&
	    graph_note(r->g, "Python's 'profile' counts the calls between functions and takes no times of them: a "
			     "function's time is divided among its callers by their calls") < 0)
		return no_memory(r);
	return 0;
}

static int read_all(struct reader *r)
{
	size_t members = r->m.members.count / 2;

	if ((r->m.bytes[0] & 0x7f) != '{' || !members)
		return error_set(r->err, "%s: the profile has no functions", r->m.source);
	r->by_number = reallocarray(NULL, r->m.refs.count + 1, sizeof *r->by_number);
	r->nodes = reallocarray(NULL, members, sizeof *r->nodes);
	r->first = reallocarray(NULL, members, sizeof *r->first);
	r->edges = reallocarray(NULL, members, sizeof *r->edges);
	if (!r->by_number || !r->nodes || !r->first || !r->edges)
		return no_memory(r);
	for (size_t i = 0; i < r->m.refs.count; i++)
		r->by_number[i] = NOT_LOOKED;
	for (size_t i = 0; i < members; i++) {
		r->edges[i] = UINT32_MAX;
		if (read_function(r, i) < 0)
			return -1;
	}
	if (!r->known)
		return error_set(r->err, "%s: the profile has no functions but the profiler's own end", r->m.source);
	for (size_t i = 0; i < members; i++)
		if (read_callers(r, i) < 0)
			return -1;
	return read_notes(r);
}

/* The byte of a dictionary, and of a key of three: no text begins so. A profile that Python wrote has the first one
 * with a flag, which alone tells it. */
static bool is(const char *text, size_t length)
{
	unsigned char dict = length > 0 ? (unsigned char)text[0] : 0,
		      key = length > 1 ? (unsigned char)text[1] & 0x7f : 0;

	return dict == ('{' | 0x80) || (dict == '{' && (key == '(' || key == ')' || (key == '0' && length == 2)));
}

static int read(const char *text, size_t length, const struct graph_reading *how, struct graph *ret, struct error *err)
{
	CLEANUP(reader_release) struct reader r = {.g = ret, .err = err};

	buf_init(&r.file);
	buf_init(&r.name);
	r.m = (struct marshal){.bytes = (const unsigned char *)text, .length = length, .source = how->source};
	ret->source = "pstats";
	if (how->event)
		return error_set(err, "%s: profiles of Python have no events to choose from", how->source);
	if (marshal_scan(&r.m, err) < 0 || graph_set_unit(ret, "s", 1, err) < 0 || read_all(&r) < 0)
		return -1;
	reader_release(&r);
	graph_text_done(how);
	return graph_finish(ret, err) < 0 ? error_prefix(err, "%s", how->source) : 0;
}

const struct graph_reader graph_reader_pstats = {
	.name = "pstats",
	.summary = "profiles of Python's cProfile and profile (.prof)",
	.is = is,
	.read = read,
};
