#include "model/hotspot_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define SAMPLER_MODULE "libassay-sampler.so"
/* No recorder writes deeper stacks; what lies further out in a damaged file is left out: no stack takes long. */
#define DEPTH_MAX 4096
#define ENTRIES_MAX ((size_t)64 << 20) /* inlined functions, over all places: past this a file is damaged */

/* What is found out per frame and per module before the tree is walked. */
struct naming {
	uint32_t *frames;    /* label of each of the profile's frames */
	uint32_t *places;    /* label of each location that has no frames */
	uint32_t *modules;   /* label of each module */
	uint8_t *functions;  /* enum tree_flags of each function, TREE_OURS left out; NAMED_FOCUS */
	uint8_t *module_flags;
};

#define NAMED_FOCUS 8

static void naming_release(struct naming *n)
{
	free(n->frames);
	free(n->places);
	free(n->modules);
	free(n->functions);
	free(n->module_flags);
}

void hotspot_tree_release(struct hotspot_tree *t)
{
	row_names_release(&t->functions);
	row_names_release(&t->modules);
	free(t->nodes);
	free(t->firsts);
	*t = (struct hotspot_tree){0};
}

static uint8_t flags_of(const struct hotspot_query *q, const char *name)
{
	return (uint8_t)((label_matches_any(q->include, name) ? TREE_INCLUDED : 0) |
			 (label_matches_any(q->exclude, name) ? TREE_EXCLUDED : 0));
}

static int name_modules(struct hotspot_tree *t, const struct profile *p, const struct hotspot_query *q,
			struct naming *n, struct error *err)
{
	for (size_t i = 0; i < p->module_count; i++) {
		const char *name = p->modules[i].name;

		n->modules[i] = row_names_add(&t->modules, name, NULL, p->modules[i].kind != PROFILE_UNKNOWN, err);
		if (n->modules[i] == LABEL_NONE)
			return -1;
		n->module_flags[i] = flags_of(q, name);
		if (strcmp(name, SAMPLER_MODULE) == 0)
			n->module_flags[i] |= TREE_OURS;
	}
	return 0;
}

/* A place without names: "libfoo.so!?", or the module's own name where that says all, as "[kernel]". */
static uint32_t name_place(struct hotspot_tree *t, const struct profile *p, uint32_t module, struct error *err)
{
	const struct profile_module *m = &p->modules[module];
	char *text;
	uint32_t label;

	if (m->kind != PROFILE_FILE)
		return row_names_add(&t->functions, m->name, m->name, false, err);
	if (asprintf(&text, "%s!?", m->name) < 0) {
		error_set(err, "out of memory for the names of hot spots");
		return LABEL_NONE;
	}
	label = row_names_copy(&t->functions, text, m->name, false, err);
	free(text);
	return label;
}

static int name_frames(struct hotspot_tree *t, const struct profile *p, const struct hotspot_query *q,
		       struct naming *n, struct error *err)
{
	for (size_t i = 0; i < p->function_count; i++) {
		n->functions[i] = flags_of(q, p->functions[i].name);
		if (q->focus && label_matches(q->focus, p->functions[i].name))
			n->functions[i] |= NAMED_FOCUS;
	}
	for (size_t i = 0; i < p->frame_count; i++) {
		const struct profile_function *f = &p->functions[p->frames[i].function];

		n->frames[i] = q->by == BY_LINE ? row_names_add_line(&t->functions, p, &p->frames[i], err)
						: row_names_add(&t->functions, f->name, p->modules[f->module].name,
							     f->known, err);
		if (n->frames[i] == LABEL_NONE)
			return -1;
	}
	for (size_t i = 0; i < p->location_count; i++) {
		if (p->locations[i].count)
			continue;
		n->places[i] = name_place(t, p, p->locations[i].module, err);
		if (n->places[i] == LABEL_NONE)
			return -1;
	}
	return 0;
}

static int name_all(struct hotspot_tree *t, const struct profile *p, const struct hotspot_query *q, struct naming *n,
		    struct error *err)
{
	n->frames = calloc(p->frame_count + 1, sizeof *n->frames);
	n->places = calloc(p->location_count + 1, sizeof *n->places);
	n->modules = calloc(p->module_count + 1, sizeof *n->modules);
	n->functions = calloc(p->function_count + 1, sizeof *n->functions);
	n->module_flags = calloc(p->module_count + 1, sizeof *n->module_flags);
	if (!n->frames || !n->places || !n->modules || !n->functions || !n->module_flags)
		return error_set(err, "out of memory for the names of hot spots");
	t->no_stack = row_names_add(&t->functions, "[no stack]", "[unknown]", false, err);
	t->start = row_names_add(&t->functions, "[start]", NULL, true, err);
	t->itself = row_names_add(&t->functions, "[itself]", NULL, true, err);
	t->no_module = row_names_add(&t->modules, "[unknown]", NULL, false, err);
	if (t->no_stack == LABEL_NONE || t->start == LABEL_NONE || t->itself == LABEL_NONE ||
	    t->no_module == LABEL_NONE || name_modules(t, p, q, n, err) < 0)
		return -1;
	return name_frames(t, p, q, n, err);
}

/* Who called the focus where it first occurs on the way, and what it called where it last does: so that each sample has
 * one caller and one callee, however often the focus recurs. */
static void find_focus(struct hotspot_tree *t, const struct profile *p, const struct naming *n, struct tree_node *node,
		       const struct profile_location *l)
{
	const struct tree_node *up = &t->nodes[node->up];
	uint32_t outer = l->count ? n->frames[l->first + l->count - 1] : node->self;
	uint32_t last = l->count, first = l->count;

	for (uint32_t i = 0; i < l->count; i++) {
		if (!(n->functions[p->frames[l->first + i].function] & NAMED_FOCUS))
			continue;
		last = last == l->count ? i : last; /* the innermost one */
		first = i;
	}
	node->above = up->above;
	node->below = up->below == t->itself ? outer : up->below;
	if (last == l->count)
		return;
	t->found_focus = true;
	node->below = last > 0 ? n->frames[l->first + last - 1] : t->itself;
	if (node->above != LABEL_NONE)
		return;
	if (first + 1 < l->count)
		node->above = n->frames[l->first + first + 1];
	else
		node->above = node->up == TREE_ROOT ? t->start : up->self;
}

/* Whatever can be said of a place once the one above it is known. */
static void fill_node(struct hotspot_tree *t, const struct profile *p, const struct naming *n,
		      const struct hotspot_query *q, size_t i)
{
	const struct profile_location *l = &p->locations[p->nodes[i].location];
	const struct tree_node *parent = &t->nodes[p->nodes[i].parent];
	struct tree_node *node = &t->nodes[i];

	node->up = parent->flags & TREE_OURS ? parent->up : p->nodes[i].parent;
	if (n->module_flags[l->module] & TREE_OURS) {
		node->flags = TREE_OURS;
		return;
	}
	if (t->nodes[node->up].depth >= DEPTH_MAX)
		node->up = TREE_ROOT;
	node->depth = (uint16_t)(t->nodes[node->up].depth + 1);
	node->module = n->modules[l->module];
	node->self = l->count ? n->frames[l->first] : n->places[p->nodes[i].location];
	node->flags = (uint8_t)(t->nodes[node->up].flags | (n->module_flags[l->module] & ~TREE_OURS));
	for (uint32_t k = 0; k < l->count; k++)
		node->flags |= n->functions[p->frames[l->first + k].function] & (TREE_INCLUDED | TREE_EXCLUDED);
	if (q->focus)
		find_focus(t, p, n, node, l);
}

/* The places below each, as lists: the way to walk the tree without recursion. */
struct children {
	uint32_t *first, *next;
	uint32_t *on_way; /* per label: how often it is on the way to where the walk is */
};

static void children_release(struct children *c)
{
	free(c->first);
	free(c->next);
	free(c->on_way);
}

/* The labels of a place: its modules', or those of its functions; *ret_count of them. */
static const uint32_t *labels_of(const struct hotspot_tree *t, const struct profile *p, const struct naming *n,
				 bool modules, uint32_t i, uint32_t *ret_count)
{
	const struct profile_location *l = &p->locations[p->nodes[i].location];

	*ret_count = modules || !l->count ? 1 : l->count;
	if (modules)
		return &t->nodes[i].module;
	return l->count ? n->frames + l->first : &t->nodes[i].self;
}

/* Goes down, up and on through the tree, and keeps the labels that were not on the way before. */
static void find_firsts(struct hotspot_tree *t, const struct profile *p, const struct naming *n, bool modules,
			struct children *c)
{
	uint32_t at = c->first[TREE_ROOT], used = 0, count;
	bool entering = true;

	while (at != TREE_ROOT) {
		const uint32_t *labels = labels_of(t, p, n, modules, at, &count);

		if (entering)
			t->nodes[at].first = used;
		for (uint32_t i = 0; i < count; i++) {
			if (!entering)
				c->on_way[labels[i]]--;
			else if (c->on_way[labels[i]]++ == 0)
				t->firsts[used++] = labels[i];
		}
		if (entering)
			t->nodes[at].end = used;
		if (entering && c->first[at]) {
			at = c->first[at];
		} else if (entering) {
			entering = false; /* a leaf is left at once */
		} else {
			entering = c->next[at] != TREE_ROOT;
			at = entering ? c->next[at] : t->nodes[at].up;
		}
	}
}

static int walk(struct hotspot_tree *t, const struct profile *p, const struct naming *n, bool modules,
		struct error *err)
{
	CLEANUP(children_release) struct children c = {0};
	size_t labels = modules ? t->modules.count : t->functions.count, entries = 0;
	uint32_t count;

	c.first = calloc(t->count + 1, sizeof *c.first);
	c.next = calloc(t->count + 1, sizeof *c.next);
	c.on_way = calloc(labels + 1, sizeof *c.on_way);
	if (!c.first || !c.next || !c.on_way)
		return error_set(err, "out of memory for %zu places of a call tree", t->count);
	for (size_t i = t->count; i-- > 1;) {
		struct tree_node *node = &t->nodes[i];

		if (node->flags & TREE_OURS)
			continue;
		c.next[i] = c.first[node->up];
		c.first[node->up] = (uint32_t)i;
		labels_of(t, p, n, modules, (uint32_t)i, &count);
		entries += count;
	}
	if (entries > ENTRIES_MAX)
		return error_set(err, "The profile names %zu functions on its call tree: it is damaged.", entries);
	t->firsts = calloc(entries + 1, sizeof *t->firsts);
	if (!t->firsts)
		return error_set(err, "out of memory for %zu functions on a call tree", entries);
	find_firsts(t, p, n, modules, &c);
	return 0;
}

int hotspot_tree_init(struct hotspot_tree *t, const struct profile *p, const struct hotspot_query *query,
		      struct error *err)
{
	CLEANUP(naming_release) struct naming n = {0};

	if (name_all(t, p, query, &n, err) < 0)
		return -1;
	t->count = p->node_count ? p->node_count : 1;
	t->nodes = calloc(t->count, sizeof *t->nodes);
	if (!t->nodes)
		return error_set(err, "out of memory for %zu places of a call tree", t->count);
	t->nodes[TREE_ROOT] = (struct tree_node){
		.up = TREE_ROOT,
		.self = t->no_stack,
		.module = t->no_module,
		.above = LABEL_NONE,
		.below = LABEL_NONE,
	};
	for (size_t i = 1; i < t->count; i++)
		fill_node(t, p, &n, query, i);
	return walk(t, p, &n, query->by == BY_MODULE, err);
}
