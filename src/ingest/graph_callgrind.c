/* callgrind.out files, version 1: costs by position, calls with the cost of what was called, names and positions in
 * short, several parts and several events. Jumps are passed over. Positions only tell where a function begins. */
#include "ingest/graph_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "ingest/graph_callgrind_header.h"
#include "ingest/graph_callgrind_line.h"
#include "ingest/graph_callgrind_names.h"
#include "ingest/graph_callgrind_sums.h"

#define UNKNOWN "???"
#define HEADER_MAX ((size_t)64 << 10) /* in which a file must have said that it is one */

static void callgrind_release(struct callgrind *c)
{
	callgrind_names_release(&c->objects);
	callgrind_names_release(&c->files);
	callgrind_names_release(&c->functions);
	buf_release(&c->event);
	buf_release(&c->module);
	buf_release(&c->name);
	free(c->notes);
}

static bool next_line(struct callgrind *c, const char **ret, const char **ret_end)
{
	const char *feed;

	if (c->at == c->end)
		return false;
	feed = memchr(c->at, '\n', (size_t)(c->end - c->at));
	*ret = c->at;
	*ret_end = feed ? feed : c->end;
	c->at = feed ? feed + 1 : c->end;
	if (*ret_end > *ret && (*ret_end)[-1] == '\r')
		(*ret_end)--;
	c->line++;
	return true;
}

static bool read_positions(const struct callgrind *c, const char **at, const char *end, uint64_t *instruction,
			   uint64_t *line)
{
	bool good = !c->instructions || callgrind_read_position(at, end, instruction);

	callgrind_skip_blanks(at, end);
	if (good && c->lines && (*at < end || !c->instructions))
		good = callgrind_read_position(at, end, line);
	callgrind_skip_blanks(at, end);
	return good;
}

static bool is_unknown(const struct callgrind_name *n)
{
	return !n->text || !n->length || (n->length == strlen(UNKNOWN) && memcmp(n->text, UNKNOWN, n->length) == 0);
}

/* The name without what says how deep in a recursion it is. */
static void fold_name(struct callgrind *c, struct callgrind_name *function, bool *again)
{
	size_t from, to;

	*again = callgrind_recursion(function->text, function->length, &from, &to);
	c->separated |= *again;
	if (!*again || !c->how->fold_recursion)
		return;
	buf_clear(&c->name);
	buf_append(&c->name, function->text, from);
	buf_append(&c->name, function->text + to, function->length - to);
	function->text = c->name.text;
	function->length = c->name.length;
}

/* A node for each function; its note stands beside it. */
static int make_node(struct callgrind *c, struct callgrind_name function, const struct callgrind_name *file,
		     const struct callgrind_name *object, struct place *ret, struct error *err)
{
	size_t room = c->note_room ? 2 * c->note_room : 256;
	struct callgrind_function *notes;
	bool again;

	fold_name(c, &function, &again);
	ret->first = !again;
	buf_clear(&c->module);
	if (!is_unknown(object))
		buf_append(&c->module, object->text, object->length);
	if (c->module.failed || c->name.failed)
		return callgrind_no_memory(c, err);
	if (graph_node(c->graph, is_unknown(file) ? "" : file->text, is_unknown(file) ? 0 : file->length, 0,
		       function.text, function.length, c->module.length ? c->module.text : NULL, &ret->node, err) < 0)
		return error_prefix(err, "%s", c->how->source);
	if (ret->node < c->note_room)
		return 0;
	notes = reallocarray(c->notes, room, sizeof *notes);
	if (!notes)
		return callgrind_no_memory(c, err);
	memset(notes + c->note_room, 0, (room - c->note_room) * sizeof *notes);
	c->notes = notes;
	c->note_room = room;
	return 0;
}

/* The node of a name in a file and an object; a name with an id remembers it. */
static int find_place(struct callgrind *c, const struct callgrind_name *function, const struct callgrind_name *file,
		      const struct callgrind_name *object, struct place *ret, struct error *err)
{
	struct callgrind_entry *entry =
		function->entry == CALLGRIND_NO_ENTRY ? NULL : &c->functions.entries[function->entry];

	if (entry && entry->node != GRAPH_NONE && entry->file == file->text && entry->object == object->text) {
		*ret = (struct place){entry->node, !entry->again};
		return 0;
	}
	if (make_node(c, *function, file, object, ret, err) < 0)
		return -1;
	if (entry) {
		entry->file = file->text;
		entry->object = object->text;
		entry->node = ret->node;
		entry->again = !ret->first;
	}
	return 0;
}

static int64_t sum_of(int64_t a, int64_t b)
{
	return __builtin_add_overflow(a, b, &a) ? INT64_MAX : a;
}

/* What is known of a graph that tells depths apart; one that is not to be folded has each depth as a function. */
static bool counts_as_first(const struct callgrind *c, struct place p)
{
	return p.first || !c->how->fold_recursion;
}

static int add_call(struct callgrind *c, double cost, struct error *err)
{
	struct place callee;
	struct callgrind_function *from, *to;
	struct graph_edge *e;
	bool first;

	if (find_place(c, &c->called, c->called_file.text ? &c->called_file : &c->file,
		       c->called_object.text ? &c->called_object : &c->object, &callee, err) < 0)
		return -1;
	e = graph_edge(c->graph, c->caller.node, callee.node, err);
	if (!e)
		return error_prefix(err, "%s", c->how->source);
	from = &c->notes[c->caller.node];
	to = &c->notes[callee.node];
	first = counts_as_first(c, callee);
	if (first || counts_as_first(c, c->caller))
		e->tall += cost;
	else
		e->tin += cost;
	e->nc1 = first ? sum_of(e->nc1, c->calls) : e->nc1;
	e->nc2 = sum_of(e->nc2, c->calls);
	from->calls_of_first += counts_as_first(c, c->caller) ? cost : 0;
	to->calls_to_first += first ? cost : 0;
	to->called |= first;
	to->has_first |= callee.first;
	if (c->lines && c->callee_line && c->callee_line <= INT32_MAX && !to->entry && callee.first) {
		to->line = (int64_t)c->callee_line;
		to->entry = true;
	}
	c->called = c->called_file = c->called_object = (struct callgrind_name){0};
	c->call_open = false;
	return 0;
}

static void add_own(struct callgrind *c, double cost)
{
	struct callgrind_function *f = &c->notes[c->caller.node];

	c->graph->nodes[c->caller.node].tin += cost;
	f->own_first += counts_as_first(c, c->caller) ? cost : 0;
	f->has_first |= c->caller.first;
	if (c->lines && !f->line && c->own_file == c->file.text && c->source_line <= INT32_MAX)
		f->line = (int64_t)c->source_line;
	c->sum += cost;
}

static int read_cost_line(struct callgrind *c, const char *at, const char *end, struct error *err)
{
	double cost;

	if (!c->event_count)
		return callgrind_wrong_line(c, "a cost before \"events:\" has said what it is", err);
	if (!read_positions(c, &at, end, &c->instruction, &c->source_line))
		return callgrind_wrong_line(c, "a position is no number", err);
	if (callgrind_read_costs(c, at, end, &cost, err) < 0)
		return -1;
	if (c->caller.node == GRAPH_NONE)
		return callgrind_wrong_line(c, "a cost before any function (\"fn=\")", err);
	if (c->call_open)
		return add_call(c, cost, err);
	add_own(c, cost);
	return 0;
}

/* "calls=COUNT POSITION", and the cost on the line after it. */
static int read_calls(struct callgrind *c, const char *at, const char *end, struct error *err)
{
	uint64_t count, instruction = c->instruction;

	callgrind_skip_blanks(&at, end);
	c->callee_line = c->source_line;
	if (!callgrind_read_whole(&at, end, &count))
		return callgrind_wrong_line(c, "\"calls=\" has no number of calls", err);
	callgrind_skip_blanks(&at, end);
	if (at < end && !read_positions(c, &at, end, &instruction, &c->callee_line))
		return callgrind_wrong_line(c, "\"calls=\" has a position that is no number", err);
	if (!c->called.text)
		return callgrind_wrong_line(
			c, "\"calls=\" without the function that was called (\"cfn=\") before it", err);
	if (c->caller.node == GRAPH_NONE)
		return callgrind_wrong_line(c, "a call before any function (\"fn=\")", err);
	c->calls = count > INT64_MAX ? INT64_MAX : (int64_t)count;
	c->call_open = true;
	return 0;
}

static int read_name(struct callgrind *c, struct callgrind_names *names, const char *at, const char *end,
		     struct callgrind_name *ret, struct error *err)
{
	if (callgrind_names_read(names, at, end, ret, err) < 0)
		return error_prefix(err, "%s: line %zu", c->how->source, c->line);
	return 0;
}

static int read_function(struct callgrind *c, const char *at, const char *end, struct error *err)
{
	struct callgrind_name function;

	if (read_name(c, &c->functions, at, end, &function, err) < 0)
		return -1;
	c->own_file = c->file.text;
	return find_place(c, &function, &c->file, &c->object, &c->caller, err);
}

/* "fn=...": what stands before the "=" says of what this is the name. */
static int read_spec(struct callgrind *c, const char *at, const char *end, struct error *err)
{
	struct callgrind_name passed;

	if (callgrind_starts(at, end, "fn="))
		return read_function(c, at + 3, end, err);
	if (callgrind_starts(at, end, "fl=") || callgrind_starts(at, end, "fi=") || callgrind_starts(at, end, "fe="))
		return read_name(c, &c->files, at + 3, end, &c->file, err);
	if (callgrind_starts(at, end, "ob="))
		return read_name(c, &c->objects, at + 3, end, &c->object, err);
	if (callgrind_starts(at, end, "cfn="))
		return read_name(c, &c->functions, at + 4, end, &c->called, err);
	if (callgrind_starts(at, end, "cfi=") || callgrind_starts(at, end, "cfl="))
		return read_name(c, &c->files, at + 4, end, &c->called_file, err);
	if (callgrind_starts(at, end, "cob="))
		return read_name(c, &c->objects, at + 4, end, &c->called_object, err);
	if (callgrind_starts(at, end, "calls="))
		return read_calls(c, at + 6, end, err);
	if (callgrind_starts(at, end, "jfi="))
		return read_name(c, &c->files, at + 4, end, &passed, err);
	if (callgrind_starts(at, end, "jfn="))
		return read_name(c, &c->functions, at + 4, end, &passed, err);
	if (callgrind_starts(at, end, "jump=") || callgrind_starts(at, end, "jcnd="))
		return 0;
	return 1;
}

static int read_line(struct callgrind *c, const char *at, const char *end, struct error *err)
{
	int got;

	callgrind_skip_blanks(&at, end);
	if (at == end || *at == '#')
		return 0;
	if ((*at >= '0' && *at <= '9') || *at == '+' || *at == '-' || *at == '*')
		return read_cost_line(c, at, end, err);
	if (c->call_open)
		return callgrind_wrong_line(c, "the cost of a call should stand here, after \"calls=\"", err);
	got = read_spec(c, at, end, err);
	return got > 0 ? callgrind_read_header(c, at, end, err) : got;
}

static int finish(struct callgrind *c, struct error *err)
{
	struct graph *g = c->graph;

	if (c->call_open)
		return callgrind_wrong_line(c, "the file ends before the cost of a call: it was cut", err);
	if (!g->node_count)
		return error_set(err, "%s: it names no function", c->how->source);
	if (!c->event_count)
		return error_set(err, "%s: it does not say what its costs are (\"events:\")", c->how->source);
	if (callgrind_check_part(c, err) < 0)
		return -1;
	if (c->rounded && graph_note(g, "%s: costs above 2^53 are rounded.", c->how->source) < 0)
		return callgrind_no_memory(c, err);
	callgrind_names_release(&c->functions);
	graph_text_done(c->how);
	if (graph_finish(g, err) < 0 || callgrind_sums(g, c->notes, c->separated, err) < 0)
		return error_prefix(err, "%s", c->how->source);
	return 0;
}

static int read_callgrind(const char *text, size_t length, const struct graph_reading *how, struct graph *ret,
			  struct error *err)
{
	CLEANUP(callgrind_release)
	struct callgrind c = {
		.how = how,
		.graph = ret,
		.at = text,
		.end = text + length,
		.lines = true,
		.caller = {.node = GRAPH_NONE},
		.told = NAN,
	};
	const char *line, *end;

	buf_init(&c.event);
	buf_init(&c.module);
	buf_init(&c.name);
	buf_puts(&c.event, how->event ? how->event : "");
	ret->source = graph_reader_callgrind.name;
	while (next_line(&c, &line, &end))
		if (read_line(&c, line, end, err) < 0)
			return -1;
	return finish(&c, err);
}

/* Up to the line that names the events there are only lines "KEY: ...". */
static bool is_callgrind(const char *text, size_t length)
{
	struct callgrind c = {.at = text, .end = text + (length < HEADER_MAX ? length : HEADER_MAX)};
	const char *at, *end;

	while (next_line(&c, &at, &end)) {
		const char *key = at;

		if (callgrind_starts(at, end, "events:") || callgrind_starts(at, end, "# callgrind format"))
			return true;
		if (at == end || *at == '#')
			continue;
		while (key < end && ((*key >= 'a' && *key <= 'z') || (*key >= 'A' && *key <= 'Z')))
			key++;
		if (key == at || key == end || *key != ':')
			return false;
	}
	return false;
}

const struct graph_reader graph_reader_callgrind = {
	.name = "callgrind",
	.summary = "callgrind.out files of Valgrind, and of others that write its format",
	.is = is_callgrind,
	.read = read_callgrind,
};
