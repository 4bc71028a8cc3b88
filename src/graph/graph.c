#include "graph/graph.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph_hidden.h"

#define BLOCK_BYTES ((size_t)256 << 10)
#define ITEMS_MAX   ((size_t)1 << 31)

struct graph_text_block {
	struct graph_text_block *next;
	size_t used, room;
	char text[];
};

void graph_init(struct graph *g)
{
	*g = (struct graph){0};
}

static void hidden_free(struct graph_hidden *h)
{
	if (!h)
		return;
	while (h->blocks) {
		struct graph_text_block *next = h->blocks->next;

		free(h->blocks);
		h->blocks = next;
	}
	graph_index_release(&h->nodes);
	graph_edges_release(&h->edges);
	graph_index_release(&h->ways);
	free(h->hashes);
	free(h->lists);
	free(h);
}

void graph_release(struct graph *g)
{
	for (size_t i = 0; i < g->note_count; i++)
		free(g->notes[i]);
	free(g->notes);
	free(g->nodes);
	free(g->edges);
	free(g->ways);
	free(g->asides);
	free(g->unit);
	hidden_free(g->hidden);
	graph_init(g);
}

/* --- What is equal, for the indices of functions and of ways. --- */

uint32_t graph_node_hash(const struct graph_node_key *key)
{
	uint32_t hash = graph_hash_bytes((uint32_t)key->line, key->file, strlen(key->file));

	hash = graph_hash_bytes(hash, key->name, strlen(key->name));
	return key->module ? graph_hash_bytes(hash, key->module, strlen(key->module)) : hash;
}

static uint32_t hash_of_node(const void *owner, uint32_t item)
{
	return ((const struct graph *)owner)->hidden->hashes[item];
}

static bool same_node(const void *owner, uint32_t item, const void *key)
{
	const struct graph_node *n = &((const struct graph *)owner)->nodes[item];
	const struct graph_node_key *k = key;

	if (n->line != k->line || strcmp(n->name, k->name) != 0 || strcmp(n->file, k->file) != 0)
		return false;
	return n->module && k->module ? strcmp(n->module, k->module) == 0 : n->module == k->module;
}

static uint32_t hash_of_way(const void *owner, uint32_t item)
{
	const struct graph_way *w = &((const struct graph *)owner)->ways[item];

	return graph_hash_pair(w->parent, w->node);
}

static bool same_way(const void *owner, uint32_t item, const void *key)
{
	const struct graph_way *w = &((const struct graph *)owner)->ways[item];
	const struct graph_pair_key *k = key;

	return item && w->parent == k->first && w->node == k->second;
}

struct graph_hidden *graph_hidden(struct graph *g, struct error *err)
{
	if (g->hidden)
		return g->hidden;
	g->hidden = calloc(1, sizeof *g->hidden);
	if (!g->hidden) {
		error_set(err, "out of memory for a call graph");
		return NULL;
	}
	g->hidden->nodes = (struct graph_index){.hash = hash_of_node, .same = same_node};
	graph_edges_init(&g->hidden->edges);
	g->hidden->ways = (struct graph_index){.hash = hash_of_way, .same = same_way};
	return g->hidden;
}

/* --- Building. --- */

static size_t copied(char *to, const char *text, size_t length)
{
	size_t at = 0;

	for (size_t i = 0; i < length; i++)
		if (text[i]) {
			to[at++] = text[i];
		} else {
			memcpy(to + at, "\xef\xbf\xbd", 3);
			at += 3;
		}
	to[at++] = '\0';
	return at;
}

char *graph_text(struct graph *g, const char *text, size_t length, struct error *err)
{
	struct graph_hidden *h = graph_hidden(g, err);
	size_t need = 1;
	char *at;

	if (!h)
		return NULL;
	for (size_t i = 0; i < length; i++)
		need += text[i] ? 1 : 3;
	if (!h->blocks || h->blocks->room - h->blocks->used < need) {
		size_t room = need > BLOCK_BYTES ? need : BLOCK_BYTES;
		struct graph_text_block *block = malloc(sizeof *block + room);

		if (!block) {
			error_set(err, "out of memory for the names of functions");
			return NULL;
		}
		*block = (struct graph_text_block){.next = h->blocks, .room = room};
		h->blocks = block;
	}
	at = h->blocks->text + h->blocks->used;
	h->blocks->used += copied(at, text, length);
	return at;
}

int graph_room(void **items, size_t count, size_t *room, size_t size, const char *what, struct error *err)
{
	size_t wanted = *room ? 2 * *room : 16;
	void *larger;

	if (count < *room)
		return 0;
	if (count >= ITEMS_MAX)
		return error_set(err, "more than %zu %s are too many for a call graph", ITEMS_MAX, what);
	larger = reallocarray(*items, wanted, size);
	if (!larger)
		return error_set(err, "out of memory for %zu %s", wanted, what);
	*items = larger;
	*room = wanted;
	return 0;
}

static int room_for_node(struct graph *g, struct graph_hidden *h, struct error *err)
{
	size_t room = h->node_room;
	uint32_t *hashes;

	if (graph_room((void **)&g->nodes, g->node_count, &room, sizeof *g->nodes, "functions", err) < 0)
		return -1;
	if (room == h->node_room)
		return 0;
	hashes = reallocarray(h->hashes, room, sizeof *hashes);
	if (!hashes)
		return error_set(err, "out of memory for %zu functions", room);
	h->hashes = hashes;
	h->node_room = room;
	return 0;
}

/* Functions of one file come one after the other: its name is kept once. */
static char *shared_text(struct graph *g, char *last, const char *text, struct error *err)
{
	return last && strcmp(last, text) == 0 ? last : graph_text(g, text, strlen(text), err);
}

static int new_node(struct graph *g, struct graph_hidden *h, const struct graph_node_key *key, uint32_t hash,
		    struct error *err)
{
	const struct graph_node *last = g->node_count ? &g->nodes[g->node_count - 1] : NULL;
	struct graph_node n = {.line = key->line};

	n.file = shared_text(g, last ? last->file : NULL, key->file, err);
	n.name = graph_text(g, key->name, strlen(key->name), err);
	if (key->module)
		n.module = shared_text(g, last ? last->module : NULL, key->module, err);
	if (!n.file || !n.name || (key->module && !n.module) || room_for_node(g, h, err) < 0)
		return -1;
	g->nodes[g->node_count] = n;
	h->hashes[g->node_count] = hash;
	if (!graph_index_add(&h->nodes, g, (uint32_t)g->node_count))
		return error_set(err, "out of memory for %zu functions", g->node_count);
	g->node_count++;
	return 0;
}

/* The text itself where it ends with its 0, else a copy of it: keys are compared as strings. */
static const char *as_string(const char *text, size_t length, char **copy)
{
	*copy = NULL;
	if (length == SIZE_MAX)
		return text;
	*copy = malloc(3 * length + 1);
	if (*copy)
		copied(*copy, text, length);
	return *copy;
}

int graph_node(struct graph *g, const char *file, size_t file_length, int64_t line, const char *name,
	       size_t name_length, const char *module, uint32_t *ret, struct error *err)
{
	struct graph_hidden *h = graph_hidden(g, err);
	struct graph_node_key key = {.module = module, .line = line};
	char *file_copy = NULL, *name_copy = NULL;
	int status = 0;

	if (!h)
		return -1;
	key.file = as_string(file, file_length, &file_copy);
	key.name = as_string(name, name_length, &name_copy);
	if (!key.file || !key.name) {
		status = error_set(err, "out of memory for the names of functions");
	} else {
		uint32_t hash = graph_node_hash(&key);
		uint32_t found = graph_index_find(&h->nodes, g, hash, &key);

		if (found == GRAPH_INDEX_NONE) {
			found = (uint32_t)g->node_count;
			status = new_node(g, h, &key, hash, err);
		}
		if (status == 0)
			*ret = found;
	}
	free(file_copy);
	free(name_copy);
	return status;
}

static int new_way(struct graph *g, struct graph_hidden *h, struct graph_way way, struct error *err)
{
	if (graph_room((void **)&g->ways, g->way_count, &h->way_room, sizeof *g->ways, "stacks", err) < 0)
		return -1;
	g->ways[g->way_count] = way;
	if (!graph_index_add(&h->ways, g, (uint32_t)g->way_count))
		return error_set(err, "out of memory for %zu stacks", g->way_count);
	g->way_count++;
	return 0;
}

int graph_way(struct graph *g, uint32_t parent, uint32_t node, uint32_t *ret, struct error *err)
{
	struct graph_hidden *h = graph_hidden(g, err);
	struct graph_pair_key key = {parent, node};
	uint32_t found;

	if (!h || (!g->way_count && new_way(g, h, (struct graph_way){.node = GRAPH_NONE}, err) < 0))
		return -1;
	found = graph_index_find(&h->ways, g, graph_hash_pair(parent, node), &key);
	if (found == GRAPH_INDEX_NONE) {
		found = (uint32_t)g->way_count;
		if (new_way(g, h, (struct graph_way){.parent = parent, .node = node}, err) < 0)
			return -1;
	}
	*ret = found;
	return 0;
}

struct graph_node *graph_aside(struct graph *g, const char *file, size_t file_length, int64_t line, const char *name,
			       size_t name_length, struct error *err)
{
	struct graph_hidden *h = graph_hidden(g, err);
	struct graph_node n = {.line = line};
	void **items = (void **)&g->asides;

	if (!h || graph_room(items, g->aside_count, &h->aside_room, sizeof *g->asides, "functions", err) < 0)
		return NULL;
	n.file = graph_text(g, file, file_length == SIZE_MAX ? strlen(file) : file_length, err);
	n.name = graph_text(g, name, name_length == SIZE_MAX ? strlen(name) : name_length, err);
	if (!n.file || !n.name)
		return NULL;
	g->asides[g->aside_count] = (struct graph_aside){(uint32_t)g->node_count, n};
	return &g->asides[g->aside_count++].node;
}

int graph_set_unit(struct graph *g, const char *unit, double per_second, struct error *err)
{
	char *copy = strdup(unit);

	if (!copy)
		return error_set(err, "out of memory for the name of a unit");
	free(g->unit);
	g->unit = copy;
	g->per_second = per_second;
	return 0;
}

int graph_note(struct graph *g, const char *format, ...)
{
	char **notes = reallocarray(g->notes, g->note_count + 1, sizeof *notes);
	va_list args;
	int length;

	if (!notes)
		return -1;
	g->notes = notes;
	va_start(args, format);
	length = vasprintf(&notes[g->note_count], format, args);
	va_end(args);
	if (length < 0)
		return -1;
	g->note_count++;
	return 0;
}

/* --- Finishing. --- */

/* Both lists of all nodes lie one after the other in one array; a node's own are filled in the order of the edges. */
static int make_lists(struct graph *g, struct graph_hidden *h, struct error *err)
{
	uint32_t *at = reallocarray(NULL, 2 * g->edge_count + 1, sizeof *at);

	if (!at)
		return error_set(err, "out of memory for %zu calls", g->edge_count);
	free(h->lists);
	h->lists = at;
	for (size_t i = 0; i < g->node_count; i++)
		g->nodes[i].called_by_count = g->nodes[i].calls_to_count = 0;
	for (size_t i = 0; i < g->edge_count; i++) {
		g->nodes[g->edges[i].callee].called_by_count++;
		g->nodes[g->edges[i].caller].calls_to_count++;
	}
	for (size_t i = 0; i < g->node_count; i++) {
		struct graph_node *n = &g->nodes[i];

		n->called_by = at;
		n->calls_to = at + n->called_by_count;
		at = n->calls_to + n->calls_to_count;
		n->called_by_count = n->calls_to_count = 0;
	}
	for (size_t i = 0; i < g->edge_count; i++) {
		struct graph_node *callee = &g->nodes[g->edges[i].callee], *caller = &g->nodes[g->edges[i].caller];

		callee->called_by[callee->called_by_count++] = (uint32_t)i;
		caller->calls_to[caller->calls_to_count++] = (uint32_t)i;
	}
	return 0;
}

int graph_finish(struct graph *g, struct error *err)
{
	struct graph_hidden *h = graph_hidden(g, err);

	if (!h || (g->way_count && graph_figures_of_ways(g, err) < 0))
		return -1;
	/* The lists come after: what was needed for building makes room for them. */
	graph_edges_release(&h->edges);
	graph_index_release(&h->ways);
	if (make_lists(g, h, err) < 0)
		return -1;
	g->total = 0;
	for (size_t i = 0; i < g->node_count; i++)
		g->total += g->nodes[i].tin;
	if (!isfinite(g->total))
		return error_set(err, "its costs add up to more than a number can hold");
	g->finished = true;
	return 0;
}
