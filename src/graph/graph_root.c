/* Where a graph begins, and which functions somebody means. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "graph/graph.h"

#define NEVER_ENDS (GRAPH_NONE - 1)

char *graph_key(const struct graph_node *n)
{
	char *key = NULL;

	return asprintf(&key, "%s:%" PRId64 ":%s", n->file, n->line, n->name) < 0 ? NULL : key;
}

/* The reference climbs from the first function to its caller, and where there are several to the first caller that it
 * has not gone to from here before. `next` is that caller's place, `ends` where a chain of only callers leads
 * (GRAPH_NONE: not known yet), so that no chain is walked twice. */
struct climb {
	uint32_t *next, *ends, *chain;
	bool *seen; /* on the second climb */
};

static void climb_release(struct climb *c)
{
	free(c->next);
	free(c->ends);
	free(c->chain);
	free(c->seen);
}

static uint32_t only_caller(const struct graph *g, uint32_t node)
{
	return g->edges[g->nodes[node].called_by[0]].caller;
}

/* Up through functions with one caller, to one that has none or several, or NEVER_ENDS where they call in a circle. */
static uint32_t chain_end(const struct graph *g, struct climb *c, uint32_t node)
{
	size_t length = 0;

	while (c->ends[node] == GRAPH_NONE) {
		c->ends[node] = NEVER_ENDS; /* what a circle comes back to */
		c->chain[length++] = node;
		if (g->nodes[node].called_by_count != 1) {
			c->ends[node] = node;
			break;
		}
		node = only_caller(g, node);
	}
	for (size_t i = 0; i < length; i++)
		c->ends[c->chain[i]] = c->ends[node];
	return c->ends[node];
}

static void see(const struct graph *g, struct climb *c, uint32_t node, uint32_t *largest)
{
	while (!c->seen[node]) {
		c->seen[node] = true;
		if (*largest == GRAPH_NONE || g->nodes[node].tall > g->nodes[*largest].tall)
			*largest = node;
		if (g->nodes[node].called_by_count != 1)
			return;
		node = only_caller(g, node);
	}
}

/* The root, GRAPH_NONE where all ways have been gone, or NEVER_ENDS. `largest`, unless NULL, becomes the function with
 * the largest tall that it came by. */
static uint32_t climb(const struct graph *g, struct climb *c, uint32_t node, uint32_t *largest)
{
	for (;;) {
		uint32_t end = chain_end(g, c, node);

		if (largest)
			see(g, c, node, largest);
		if (end == NEVER_ENDS || !g->nodes[end].called_by_count)
			return end;
		if (c->next[end] == g->nodes[end].called_by_count)
			return GRAPH_NONE;
		node = g->edges[g->nodes[end].called_by[c->next[end]++]].caller;
	}
}

static uint32_t largest_of_all(const struct graph *g)
{
	uint32_t largest = 0;

	for (uint32_t i = 1; i < g->node_count; i++)
		if (g->nodes[i].tall > g->nodes[largest].tall)
			largest = i;
	return largest;
}

uint32_t graph_root(const struct graph *g)
{
	CLEANUP(climb_release) struct climb c = {0};
	uint32_t root, largest = GRAPH_NONE;

	if (!g->node_count)
		return GRAPH_NONE;
	c.next = calloc(g->node_count, sizeof *c.next);
	c.ends = reallocarray(NULL, g->node_count, sizeof *c.ends);
	c.chain = reallocarray(NULL, g->node_count, sizeof *c.chain);
	c.seen = calloc(g->node_count, sizeof *c.seen);
	if (!c.next || !c.ends || !c.chain || !c.seen)
		return largest_of_all(g);
	memset(c.ends, 0xff, g->node_count * sizeof *c.ends);
	root = climb(g, &c, 0, NULL);
	/* The second climb goes on with what the first one has gone through, as the reference's does. */
	if (root == GRAPH_NONE && climb(g, &c, 0, &largest) != NEVER_ENDS)
		return largest;
	return root == GRAPH_NONE || root == NEVER_ENDS ? largest_of_all(g) : root;
}

static bool is_named(const struct graph_node *n, const char *text)
{
	char line[32];
	size_t file_length = strlen(n->file), line_length;

	if (strcmp(n->name, text) == 0)
		return true;
	line_length = (size_t)snprintf(line, sizeof line, ":%" PRId64 ":", n->line);
	return strncmp(text, n->file, file_length) == 0 && strncmp(text + file_length, line, line_length) == 0 &&
	       strcmp(text + file_length + line_length, n->name) == 0;
}

static bool is_like(const struct graph_node *n, const char *text)
{
	return fnmatch(text, n->name, 0) == 0;
}

static size_t find(const struct graph *g, const char *text, bool (*matches)(const struct graph_node *n, const char *t),
		   uint32_t *ret, size_t room)
{
	size_t count = 0;

	for (size_t i = 0; i < g->node_count; i++)
		if (matches(&g->nodes[i], text)) {
			if (count < room)
				ret[count] = (uint32_t)i;
			count++;
		}
	return count;
}

size_t graph_find(const struct graph *g, const char *text, uint32_t *ret, size_t room)
{
	size_t count = find(g, text, is_named, ret, room);

	return count ? count : find(g, text, is_like, ret, room);
}
