/* Texts as call graphs, for tests of their readers. */
#ifndef ASSAY_TEST_GRAPH_TEXTS_H
#define ASSAY_TEST_GRAPH_TEXTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "ingest/graph_reader.h"

struct graph_read {
	struct graph graph;
	struct error err;
	int result;
};

static inline struct graph_read read_bytes(const struct graph_reader *reader, const char *text, size_t length,
					   const char *event, bool fold)
{
	const struct graph_reading how = {"X", event, fold};
	struct graph_read r = {.err.text = ""};
	char *exact = malloc(length ? length : 1); /* of the exact size, so that reading past its end is noticed */

	assert_non_null(exact);
	memcpy(exact, text, length);
	graph_init(&r.graph);
	r.result = reader->read(exact, length, &how, &r.graph, &r.err);
	free(exact);
	return r;
}

/* A text that must be read. */
static inline struct graph_read read_good(const struct graph_reader *reader, const char *text)
{
	struct graph_read r = read_bytes(reader, text, strlen(text), NULL, false);

	if (r.result < 0)
		fail_msg("%s", r.err.text);
	return r;
}

static inline void assert_refused(const struct graph_reader *reader, const char *text, const char *why)
{
	struct graph_read r = read_bytes(reader, text, strlen(text), NULL, false);

	assert_int_equal(r.result, -1);
	assert_string_equal(r.err.text, why);
	graph_release(&r.graph);
}

/* Every beginning of a text is read, or refused with a sentence that names the file. */
static inline void assert_cut_anywhere(const struct graph_reader *reader, const char *text, size_t length)
{
	for (size_t cut = 0; cut <= length; cut++) {
		struct graph_read r = read_bytes(reader, text, cut, NULL, true);

		if (r.result < 0)
			assert_memory_equal(r.err.text, "X: ", 3);
		else
			assert_true(r.graph.finished && r.graph.node_count > 0);
		graph_release(&r.graph);
	}
}

static inline const struct graph_node *node_named(const struct graph *g, const char *name)
{
	for (size_t i = 0; i < g->node_count; i++)
		if (strcmp(g->nodes[i].name, name) == 0)
			return &g->nodes[i];
	fail_msg("there is no function \"%s\"", name);
	return NULL;
}

static inline const struct graph_edge *edge_named(const struct graph *g, const char *caller, const char *callee)
{
	for (size_t i = 0; i < g->edge_count; i++)
		if (strcmp(g->nodes[g->edges[i].caller].name, caller) == 0 &&
		    strcmp(g->nodes[g->edges[i].callee].name, callee) == 0)
			return &g->edges[i];
	fail_msg("there is no call of \"%s\" in \"%s\"", callee, caller);
	return NULL;
}

static inline void assert_costs(const struct graph *g, const char *name, double tin, double tall)
{
	const struct graph_node *n = node_named(g, name);

	if (n->tin < tin - 1e-9 || n->tin > tin + 1e-9 || n->tall < tall - 1e-9 || n->tall > tall + 1e-9)
		fail_msg("%s costs %.17g itself and %.17g in all", name, n->tin, n->tall);
}

#endif
