/* Functions under other names: files without their folders, or with another beginning. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "graph/graph_hidden.h"

/* Appends `text` with each OLD (of old_length bytes) replaced, as Python's str.replace does. */
static void replaced(struct buf *out, const char *text, const char *old, size_t old_length, const char *new)
{
	for (;;) {
		const char *found = memmem(text, strlen(text), old, old_length);

		if (!found)
			break;
		buf_append(out, text, (size_t)(found - text));
		buf_puts(out, new);
		text = found + old_length;
	}
	buf_puts(out, text);
}

static void clean(struct buf *out, const char *text, const char *const *rules, size_t count)
{
	CLEANUP(buf_release) struct buf before;

	buf_init(&before);
	buf_puts(out, text);
	for (size_t i = 0; i < count; i++) {
		const char *equals = strchr(rules[i], '='), *slash;

		buf_clear(&before);
		buf_append(&before, out->text, out->length);
		buf_clear(out);
		if (equals) {
			replaced(out, before.text, rules[i], (size_t)(equals - rules[i]), equals + 1);
			continue;
		}
		slash = strrchr(before.text, '/');
		buf_puts(out, slash ? slash + 1 : before.text);
	}
	out->failed |= before.failed;
}

static int check_rules(const char *const *rules, size_t count, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (rules[i][0] == '=')
			return error_set(err, "the rule '%s' has nothing before its '=': say OLD=NEW", rules[i]);
		else if (!strchr(rules[i], '=') && strcmp(rules[i], "basename") != 0)
			return error_set(err, "the rule '%s' is neither 'basename' nor OLD=NEW", rules[i]);
	return 0;
}

/* A file's name, or of a function without a file its own where that is a path (or names one, for OLD=NEW). */
static int rename_one(struct graph *g, struct graph_node *n, struct buf *text, const char *const *rules, size_t count,
		      struct error *err)
{
	char **where = n->file[0] ? &n->file : &n->name;

	if (!n->file[0] && n->name[0] != '/')
		return 0;
	buf_clear(text);
	clean(text, *where, rules, count);
	if (text->failed)
		return error_set(err, "out of memory for the names of functions");
	if (strcmp(*where, text->text) != 0 && !(*where = graph_text(g, text->text, text->length, err)))
		return -1;
	return 0;
}

int graph_rename(struct graph *g, const char *const *rules, size_t count, struct error *err)
{
	CLEANUP(buf_release) struct buf text;
	const char *old = "";
	char *new = NULL;

	buf_init(&text);
	if (check_rules(rules, count, err) < 0)
		return -1;
	for (size_t i = 0; i < g->node_count; i++) {
		struct graph_node *n = &g->nodes[i];

		if (new && n->file[0] && strcmp(n->file, old) == 0) {
			n->file = new;
			continue;
		}
		old = n->file;
		if (rename_one(g, n, &text, rules, count, err) < 0)
			return -1;
		new = n->file;
	}
	for (size_t i = 0; i < g->aside_count; i++)
		if (rename_one(g, &g->asides[i].node, &text, rules, count, err) < 0)
			return -1;
	return 0;
}

static int64_t calls_of_both(int64_t a, int64_t b)
{
	int64_t sum;

	if (a < 0 || b < 0)
		return -1;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int no_memory(struct error *err)
{
	return error_set(err, "out of memory for a call graph");
}

/* Each function once; map[old index] becomes the new one. The count that were added to an earlier one, or -1. */
static int64_t merge_nodes(struct graph *g, struct graph_hidden *h, uint32_t *map, bool strict, struct error *err)
{
	size_t kept = 0, aside = 0;

	graph_index_release(&h->nodes);
	for (size_t i = 0; i < g->node_count; i++) {
		const struct graph_node n = g->nodes[i];
		struct graph_node_key key = {n.file, n.name, n.module, n.line};
		uint32_t hash = graph_node_hash(&key);

		for (; aside < g->aside_count && g->asides[aside].before <= i; aside++)
			g->asides[aside].before = (uint32_t)kept;
		map[i] = graph_index_find(&h->nodes, g, hash, &key);
		if (map[i] == GRAPH_INDEX_NONE) {
			map[i] = (uint32_t)kept;
			g->nodes[kept] = n;
			h->hashes[kept] = hash;
			if (!graph_index_add(&h->nodes, g, (uint32_t)kept++))
				return no_memory(err);
			continue;
		}
		if (strict)
			return error_set(err, "two functions become '%.300s:%" PRId64 ":%.150s'", n.file, n.line,
					 n.name);
		struct graph_node *first = &g->nodes[map[i]];

		first->nc1 = calls_of_both(first->nc1, n.nc1);
		first->nc2 = calls_of_both(first->nc2, n.nc2);
		first->tin += n.tin;
		first->tall += n.tall;
	}
	for (; aside < g->aside_count; aside++)
		g->asides[aside].before = (uint32_t)kept;
	int64_t merged = (int64_t)(g->node_count - kept);

	g->node_count = kept;
	return merged;
}

static int merge_edges(struct graph *g, struct graph_hidden *h, const uint32_t *map, struct error *err)
{
	size_t count = g->edge_count;

	graph_edges_release(&h->edges);
	g->edge_count = 0; /* what is written stands at or before what is read */
	for (size_t i = 0; i < count; i++) {
		const struct graph_edge e = g->edges[i];
		size_t before = g->edge_count;
		struct graph_edge *to = graph_edge(g, map[e.caller], map[e.callee], err);

		if (!to)
			return -1;
		to->nc1 = g->edge_count > before ? e.nc1 : calls_of_both(to->nc1, e.nc1);
		to->nc2 = g->edge_count > before ? e.nc2 : calls_of_both(to->nc2, e.nc2);
		to->tin += e.tin;
		to->tall += e.tall;
	}
	return 0;
}

static int merge_ways(struct graph *g, struct graph_hidden *h, const uint32_t *map, struct error *err)
{
	size_t count = g->way_count;
	uint32_t *moved = reallocarray(NULL, count + 1, sizeof *moved);
	int status = moved ? 0 : no_memory(err);

	graph_index_release(&h->ways);
	g->way_count = count ? 1 : 0;
	if (moved)
		moved[0] = 0;
	for (size_t i = 1; status == 0 && i < count; i++) {
		const struct graph_way w = g->ways[i];
		size_t before = g->way_count;

		status = graph_way(g, moved[w.parent], map[w.node], &moved[i], err);
		if (status == 0) {
			struct graph_way *to = &g->ways[moved[i]];

			to->self += w.self;
			to->calls = g->way_count > before ? w.calls : calls_of_both(to->calls, w.calls);
		}
	}
	free(moved);
	return status;
}

int graph_clean(struct graph *g, const char *const *rules, size_t count, bool strict, struct error *err)
{
	struct graph_hidden *h = graph_hidden(g, err);
	uint32_t *map = reallocarray(NULL, g->node_count + 1, sizeof *map);
	bool finished = g->finished;
	int64_t merged = -1;
	int status = -1;

	if (h && !map)
		no_memory(err);
	else if (h && graph_rename(g, rules, count, err) == 0)
		merged = merge_nodes(g, h, map, strict, err);
	/* Where no two became one, lists and figures hold. */
	if (merged == 0)
		status = 0;
	else if (merged > 0 && merge_edges(g, h, map, err) == 0 && merge_ways(g, h, map, err) == 0)
		status = finished ? graph_finish(g, err) : 0;
	free(map);
	if (merged > 0 && status == 0 &&
	    graph_note(g, "%" PRId64 " function%s became the same as another by its new name and were added to it",
		       merged, merged == 1 ? "" : "s") < 0)
		return no_memory(err);
	return status;
}
