/* The reference's JSON: an object per function, with an object of its calls inside, as deep as they go. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "graph/graph_index.h"
#include "graph/quote.h"
#include "graph/reference_walk.h"

void reference_number(struct buf *out, const char *key, double value)
{
	buf_puts(out, ", \"");
	buf_puts(out, key);
	buf_puts(out, "\": ");
	graph_quote_number(out, value, "null");
}

static void put_whole(struct buf *out, const char *key, int64_t value)
{
	buf_puts(out, key);
	graph_quote_whole(out, value, 0);
}

void reference_details(const struct graph *g, const struct graph_row *row, struct buf *out)
{
	const struct graph_node *n = &g->nodes[row->node];
	CLEANUP(buf_release) struct buf key;

	buf_init(&key);
	buf_puts(&key, n->file);
	buf_putc(&key, ':');
	graph_quote_whole(&key, n->line, 0);
	buf_putc(&key, ':');
	buf_puts(&key, n->name);
	out->failed |= key.failed;
	buf_puts(out, "\"fct\": ");
	graph_quote_json(out, n->name);
	buf_puts(out, ", \"where\": ");
	graph_quote_json(out, key.text);
	put_whole(out, ", \"nc1\": ", row->nc1);
	put_whole(out, ", \"nc2\": ", row->nc2);
	reference_number(out, "tin", row->tin);
	reference_number(out, "tall", row->tall);
	put_whole(out, ", \"indent\": ", row->indent);
	put_whole(out, ", \"ncalls\": ", row->ncalls);
}

/* What is still to be written, the last first. `digits` are the columns of the number in its key. */
struct member {
	uint32_t node, edge; /* edge GRAPH_NONE: a root */
	uint32_t indent, parent;
	uint8_t digits;
	bool first, end; /* the first of its object; not a member but the end of one */
};

struct writer {
	struct reference_walk walk;
	const struct graph *g;
	struct buf *out;
	struct member *stack;
	size_t count, room;
};

static void writer_release(struct writer *w)
{
	reference_end(&w->walk);
	free(w->stack);
}

static int push(struct writer *w, struct member m, struct error *err)
{
	if (w->count == w->room) {
		size_t room = w->room ? 2 * w->room : 256;
		struct member *stack = reallocarray(w->stack, room, sizeof *stack);

		if (!stack)
			return error_set(err, "out of memory for the JSON of a call graph");
		w->stack = stack;
		w->room = room;
	}
	w->stack[w->count++] = m;
	return 0;
}

/* What a member's key is made of: the calls, the time to five places, and the function's name. */
struct key {
	int64_t calls;
	const char *name;
	char time[GRAPH_PLACES_ROOM];
};

static int64_t calls_of(const struct graph *g, const struct member *m)
{
	return m->edge == GRAPH_NONE ? g->nodes[m->node].nc1 : g->edges[m->edge].nc2;
}

static struct key key_of(const struct graph *g, const struct member *m)
{
	const struct graph_node *n = &g->nodes[m->node];
	bool root = m->edge == GRAPH_NONE;
	struct key key;

	key.calls = calls_of(g, m);
	key.name = n->name;
	graph_places(root ? n->tall : g->edges[m->edge].tall, key.time);
	return key;
}

/* The members of one object: `owner` of the index that finds equal keys. */
struct members {
	const struct graph *g;
	struct member *items;
	size_t count;
};

static uint32_t hash_of(const struct key *key)
{
	return graph_hash_bytes(graph_hash_bytes((uint32_t)key->calls, key->name, strlen(key->name)), key->time,
				strlen(key->time));
}

static uint32_t hash_member(const void *owner, uint32_t item)
{
	const struct members *all = owner;
	struct key key = key_of(all->g, &all->items[item]);

	return hash_of(&key);
}

static bool same_member(const void *owner, uint32_t item, const void *key)
{
	const struct members *all = owner;
	const struct key *wanted = key;
	const struct member *m = &all->items[item];

	if (calls_of(all->g, m) != wanted->calls || strcmp(all->g->nodes[m->node].name, wanted->name) != 0)
		return false;
	return strcmp(key_of(all->g, m).time, wanted->time) == 0;
}

/* As a Python dict: of members with one key the last stands at the place of the first. */
static int drop_repeated(struct members *all, struct error *err)
{
	CLEANUP(graph_index_release) struct graph_index x = {.hash = hash_member, .same = same_member};
	size_t count = all->count;

	all->count = 0;
	for (size_t i = 0; count > 1 && i < count; i++) {
		struct key key = key_of(all->g, &all->items[i]);
		uint32_t found = graph_index_find(&x, all, hash_of(&key), &key);

		if (found != GRAPH_INDEX_NONE) {
			all->items[found] = all->items[i];
			continue;
		}
		all->items[all->count] = all->items[i];
		if (!graph_index_add(&x, all, (uint32_t)all->count++))
			return error_set(err, "out of memory for the JSON of a call graph");
	}
	if (count == 1)
		all->count = 1;
	return 0;
}

/* Pushes the members of one object, which lie in walk.calls (roots: walk.roots), and what ends it. */
static int push_members(struct writer *w, const struct member *parent, struct error *err)
{
	size_t count = parent ? w->walk.call_count : w->walk.root_count;
	CLEANUP(free_cleanup) struct member *items = reallocarray(NULL, count + 1, sizeof *items);
	struct members all = {w->g, items, count};
	int64_t most = INT64_MIN;
	unsigned digits;

	if (!items)
		return error_set(err, "out of memory for the JSON of a call graph");
	for (size_t i = 0; i < count; i++)
		if (parent)
			items[i] = (struct member){w->g->edges[w->walk.calls[i]].callee, w->walk.calls[i],
						   parent->indent + 1, parent->node, 0, false, false};
		else
			items[i] = (struct member){w->walk.roots[i], GRAPH_NONE, 0, GRAPH_NONE, 0, false, false};
	if (drop_repeated(&all, err) < 0)
		return -1;
	for (size_t i = 0; i < all.count; i++) {
		int64_t calls = calls_of(w->g, &items[i]);

		most = calls > most ? calls : most;
	}
	if (reference_digits(most, &digits, err) < 0 || push(w, (struct member){.end = true}, err) < 0)
		return -1;
	for (size_t i = all.count; i-- > 0;) {
		items[i].digits = (uint8_t)digits;
		items[i].first = i == 0;
		if (push(w, items[i], err) < 0)
			return -1;
	}
	return 0;
}

static void write_key(struct writer *w, const struct member *m)
{
	CLEANUP(buf_release) struct buf text;
	struct key key = key_of(w->g, m);

	buf_init(&text);
	graph_quote_whole(&text, key.calls, 0);
	while (text.length < m->digits)
		buf_putc(&text, ' ');
	buf_putc(&text, '-');
	buf_puts(&text, key.time);
	buf_puts(&text, m->edge == GRAPH_NONE ? ":::" : ":");
	buf_puts(&text, key.name);
	w->out->failed |= text.failed;
	buf_puts(w->out, m->first ? "" : ", ");
	graph_quote_json(w->out, text.text);
	buf_puts(w->out, ": {\"details\": {");
}

/* A call of a function that is shown elsewhere has its caller's depth and number of calls: so has the reference. */
static void write_call(struct writer *w, const struct member *m)
{
	const struct graph_edge *e = &w->g->edges[m->edge];
	struct graph_row row = {m->node, e->nc2, e->nc1, e->tin, e->tall, m->indent - 1,
				w->g->nodes[m->parent].calls_to_count, true, ""};

	reference_details(w->g, &row, w->out);
	buf_puts(w->out, "}}");
}

static int write_member(struct writer *w, struct error *err)
{
	const struct member m = w->stack[--w->count];
	const struct graph_node *n = &w->g->nodes[m.node];

	if (m.end) {
		buf_puts(w->out, "}}");
		return 0;
	}
	if (m.edge != GRAPH_NONE && reference_check_edge(w->g, &w->g->edges[m.edge], err) < 0)
		return -1;
	write_key(w, &m);
	if (m.edge != GRAPH_NONE && reference_is_root(w->g, m.node)) {
		write_call(w, &m);
		return 0;
	}
	struct graph_row row = {m.node, n->nc1, n->nc2, n->tin, n->tall, m.indent, n->calls_to_count, false, ""};

	reference_details(w->g, &row, w->out);
	if (reference_calls(&w->walk, m.node, err) < 0)
		return -1;
	if (!w->walk.call_count) {
		buf_puts(w->out, "}}");
		return 0;
	}
	buf_puts(w->out, "}, \"calls\": {");
	return push_members(w, &m, err);
}

int graph_reference_json(const struct graph *g, const struct graph_rows_options *o, struct buf *out, struct error *err)
{
	CLEANUP(writer_release) struct writer w = {.g = g, .out = out};
	FILE *stream = reference_may_fail(g) ? NULL : o->stream;

	if (reference_begin(&w.walk, g, o, err) < 0)
		return -1;
	if (!w.walk.root_count)
		return error_set(err,
				 "no function is left to show (is all filtered out, or does nothing begin the calls?)");
	buf_puts(out, "{\"profile\": {");
	if (push_members(&w, NULL, err) < 0)
		return -1;
	/* The end of the outermost object closes the whole. */
	while (w.count)
		if (write_member(&w, err) < 0 || reference_pass_on(stream, out, err) < 0)
			return -1;
	return reference_pass_on(NULL, out, err);
}
