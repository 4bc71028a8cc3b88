/* callgrind.out files, version 1: costs by position, calls with the cost of what was called, names and positions in
 * short, several parts and several events. Jumps are passed over. Positions only tell where a function begins. */
#include "ingest/graph_reader.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "ingest/graph_callgrind_line.h"
#include "ingest/graph_callgrind_names.h"
#include "ingest/graph_callgrind_sums.h"

#define UNKNOWN "???"
#define SHOWN_COLUMNS 60
#define HEADER_MAX ((size_t)64 << 10) /* in which a file must have said that it is one */
#define COST_MAX 1e290		      /* of which as many as a file can hold are still finite */
#define EXACT 9007199254740992.0      /* 2^53: larger sums of doubles are rounded */

/* Events that are times, as some writers of this format name them. */
static const struct {
	const char *event, *unit;
	double per_second;
} times[] = {
	{"ns", "ns", 1e-9}, {"CPU_ns", "ns", 1e-9},	  {"Nanoseconds", "ns", 1e-9},
	{"us", "us", 1e-6}, {"Microseconds", "us", 1e-6}, {"ms", "ms", 1e-3},
	{"s", "s", 1},	    {"Time_(ns)", "ns", 1e-9},	  {"Time_(10ns)", "10ns", 1e-8},
};

struct place {
	uint32_t node; /* GRAPH_NONE: none yet */
	bool first;    /* no deeper one of a recursion */
};

struct callgrind {
	const struct graph_reading *how;
	struct graph *graph;
	const char *at, *end;		   /* what is left of the text */
	size_t line;			   /* the number of the one that was read last, from 1 */
	bool instructions, lines;	   /* what a position has */
	uint64_t instruction, source_line; /* of the last cost */
	struct buf event;		   /* which is read; empty: not known yet */
	size_t event_at, event_count;	   /* in this part; event_count 0: not told yet */
	struct callgrind_names objects, files, functions;
	struct callgrind_name object, file, called_object, called_file, called;
	const char *own_file; /* of the function: what was inlined into it stands in others */
	struct place caller;
	bool call_open; /* the next cost is that of a call */
	int64_t calls;
	uint64_t callee_line;
	struct callgrind_function *notes; /* by node */
	size_t note_room;
	struct buf module, name; /* scratch */
	double sum, told;	 /* of this part's costs; NaN: not told */
	size_t told_line;
	bool separated, rounded;
};

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

static int wrong_line(const struct callgrind *c, const char *what, struct error *err)
{
	return error_set(err, "%s: line %zu: %s", c->how->source, c->line, what);
}

static int no_memory(const struct callgrind *c, struct error *err)
{
	return error_set(err, "%s: out of memory for %zu functions", c->how->source, c->graph->node_count);
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

/* The one cost of a line that is asked for; 0 where the line ends before it. */
static int read_costs(struct callgrind *c, const char *at, const char *end, double *ret, struct error *err)
{
	*ret = 0;
	for (size_t i = 0; at < end; i++) {
		double cost;

		if (!callgrind_read_cost(&at, end, &cost))
			return wrong_line(c, "a cost is no number", err);
		if (i == c->event_at)
			*ret = cost;
		callgrind_skip_blanks(&at, end);
	}
	if (*ret < 0)
		return wrong_line(c, "a cost is below 0", err);
	if (*ret > COST_MAX)
		return wrong_line(c, "a cost is too large", err);
	c->rounded |= *ret > EXACT;
	return 0;
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
		return no_memory(c, err);
	if (graph_node(c->graph, is_unknown(file) ? "" : file->text, is_unknown(file) ? 0 : file->length, 0,
		       function.text, function.length, c->module.length ? c->module.text : NULL, &ret->node, err) < 0)
		return error_prefix(err, "%s", c->how->source);
	if (ret->node < c->note_room)
		return 0;
	notes = reallocarray(c->notes, room, sizeof *notes);
	if (!notes)
		return no_memory(c, err);
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
		return wrong_line(c, "a cost before \"events:\" has said what it is", err);
	if (!read_positions(c, &at, end, &c->instruction, &c->source_line))
		return wrong_line(c, "a position is no number", err);
	if (read_costs(c, at, end, &cost, err) < 0)
		return -1;
	if (c->caller.node == GRAPH_NONE)
		return wrong_line(c, "a cost before any function (\"fn=\")", err);
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
		return wrong_line(c, "\"calls=\" has no number of calls", err);
	callgrind_skip_blanks(&at, end);
	if (at < end && !read_positions(c, &at, end, &instruction, &c->callee_line))
		return wrong_line(c, "\"calls=\" has a position that is no number", err);
	if (!c->called.text)
		return wrong_line(c, "\"calls=\" without the function that was called (\"cfn=\") before it", err);
	if (c->caller.node == GRAPH_NONE)
		return wrong_line(c, "a call before any function (\"fn=\")", err);
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

/* The word at *at: up to a blank or the end. */
static size_t word_length(const char *at, const char *end)
{
	size_t length = 0;

	while (at + length < end && at[length] != ' ' && at[length] != '\t')
		length++;
	return length;
}

static int no_event(const struct callgrind *c, const char *at, const char *end, struct error *err)
{
	CLEANUP(buf_release) struct buf typed, names, shown;

	buf_init(&typed);
	buf_init(&names);
	buf_init(&shown);
	utf8_append_line(&typed, c->event.text, SHOWN_COLUMNS);
	while (at < end) {
		size_t length = word_length(at, end);

		buf_append(&names, at, length);
		at += length;
		callgrind_skip_blanks(&at, end);
		buf_puts(&names, at < end ? ", " : "");
	}
	utf8_append_line(&shown, names.text, 4 * SHOWN_COLUMNS);
	return error_set(err, "%s: line %zu: there is no event '%s'; it has: %s", c->how->source, c->line, typed.text,
			 shown.text);
}

static int set_unit(struct callgrind *c, struct error *err)
{
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		if (strcmp(times[i].event, c->event.text) == 0)
			return graph_set_unit(c->graph, times[i].unit, times[i].per_second, err);
	return graph_set_unit(c->graph, c->event.text, 0, err);
}

/* What the file says of a part beside what was read of it. */
static int check_part(struct callgrind *c, struct error *err)
{
	double slack = c->told > EXACT ? c->told * 1e-9 : 0;

	if (isnan(c->told) || fabs(c->told - c->sum) <= slack)
		return 0;
	if (graph_note(
		    c->graph,
		    "%s: line %zu: the file says that %s is %.0f in all, and what its functions cost adds up to %.0f: "
		    "it may have been cut.",
		    c->how->source, c->told_line, c->event.text, c->told, c->sum) < 0)
		return no_memory(c, err);
	return 0;
}

/* "events: Ir Dr Dw": begins the costs of a part. */
static int read_events(struct callgrind *c, const char *at, const char *end, struct error *err)
{
	const char *first;
	size_t found = SIZE_MAX, length;

	callgrind_skip_blanks(&at, end);
	first = at;
	if (check_part(c, err) < 0)
		return -1;
	c->sum = 0;
	c->told = NAN;
	if (!c->event.length)
		buf_append(&c->event, at, word_length(at, end));
	for (c->event_count = 0; at < end; c->event_count++) {
		length = word_length(at, end);
		if (length == c->event.length && memcmp(at, c->event.text, length) == 0 && found == SIZE_MAX)
			found = c->event_count;
		at += length;
		callgrind_skip_blanks(&at, end);
	}
	if (!c->event_count)
		return wrong_line(c, "\"events:\" names none", err);
	if (found == SIZE_MAX)
		return no_event(c, first, end, err);
	c->event_at = found;
	return c->event.failed ? no_memory(c, err) : set_unit(c, err);
}

static int read_positions_told(struct callgrind *c, const char *at, const char *end, struct error *err)
{
	c->instructions = c->lines = false;
	for (callgrind_skip_blanks(&at, end); at < end; callgrind_skip_blanks(&at, end)) {
		size_t length = word_length(at, end);

		if (length == 5 && memcmp(at, "instr", 5) == 0 && !c->lines)
			c->instructions = true;
		else if (length == 4 && memcmp(at, "line", 4) == 0)
			c->lines = true;
		else
			return wrong_line(c, "\"positions:\" is neither \"line\", \"instr\" nor \"instr line\"", err);
		at += length;
	}
	return 0;
}

static int read_total(struct callgrind *c, const char *at, const char *end, struct error *err)
{
	double told;

	if (!c->event_count)
		return 0;
	callgrind_skip_blanks(&at, end);
	if (read_costs(c, at, end, &told, err) < 0)
		return -1;
	c->told = told;
	c->told_line = c->line;
	return 0;
}

/* "KEY: ..."; most tell of the program that was measured. */
static int read_header(struct callgrind *c, const char *at, const char *end, struct error *err)
{
	const char *colon = at;

	if (callgrind_starts(at, end, "events:"))
		return read_events(c, at + 7, end, err);
	if (callgrind_starts(at, end, "positions:"))
		return read_positions_told(c, at + 10, end, err);
	if (callgrind_starts(at, end, "summary:"))
		return read_total(c, at + 8, end, err);
	if (callgrind_starts(at, end, "totals:"))
		return read_total(c, at + 7, end, err);
	while (colon < end && ((*colon >= 'a' && *colon <= 'z') || (*colon >= 'A' && *colon <= 'Z')))
		colon++;
	if (colon > at && colon < end && *colon == ':')
		return 0;
	return wrong_line(c, "this is no line of a callgrind file", err);
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
		return wrong_line(c, "the cost of a call should stand here, after \"calls=\"", err);
	got = read_spec(c, at, end, err);
	return got > 0 ? read_header(c, at, end, err) : got;
}

static int finish(struct callgrind *c, struct error *err)
{
	struct graph *g = c->graph;

	if (c->call_open)
		return wrong_line(c, "the file ends before the cost of a call: it was cut", err);
	if (!g->node_count)
		return error_set(err, "%s: it names no function", c->how->source);
	if (!c->event_count)
		return error_set(err, "%s: it does not say what its costs are (\"events:\")", c->how->source);
	if (check_part(c, err) < 0)
		return -1;
	if (c->rounded && graph_note(g, "%s: costs above 2^53 are rounded.", c->how->source) < 0)
		return no_memory(c, err);
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
