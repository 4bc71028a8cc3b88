/* Nodes and frames are found again through two hash tables that are only kept while the tree is built. */
#include "report/export_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define SAMPLER "libassay-sampler.so"
#define NO_STACK "[no stack]"

/* Pairs of numbers to numbers from 1; open addressing, at most half full. */
struct pairs {
	struct pair {
		uint32_t a, b, value; /* value 0: free */
	} *slots;
	size_t room, count;
};

static void pairs_release(struct pairs *m)
{
	free(m->slots);
}

static uint64_t pair_hash(uint32_t a, uint32_t b)
{
	uint64_t h = ((uint64_t)a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15);

	return h ^ h >> 29;
}

static struct pair *pair_slot(const struct pairs *m, uint32_t a, uint32_t b)
{
	size_t at = pair_hash(a, b) & (m->room - 1);

	while (m->slots[at].value && (m->slots[at].a != a || m->slots[at].b != b))
		at = (at + 1) & (m->room - 1);
	return &m->slots[at];
}

/* The slot of a pair, free where it is new; NULL when out of memory. The caller sets it. */
static struct pair *pair_at(struct pairs *m, uint32_t a, uint32_t b)
{
	struct pairs larger = {.room = m->room ? 2 * m->room : 1024, .count = m->count};

	if (2 * (m->count + 1) >= m->room) {
		larger.slots = calloc(larger.room, sizeof *larger.slots);
		if (!larger.slots)
			return NULL;
		for (size_t i = 0; i < m->room; i++)
			if (m->slots[i].value)
				*pair_slot(&larger, m->slots[i].a, m->slots[i].b) = m->slots[i];
		free(m->slots);
		*m = larger;
	}
	return pair_slot(m, a, b);
}

void export_tree_init(struct export_tree *t)
{
	*t = (struct export_tree){0};
}

void export_tree_release(struct export_tree *t)
{
	free(t->frames);
	free(t->nodes);
	free(t->node_of);
	free(t->same);
	export_tree_init(t);
}

static int more_room(void *array, size_t *room, size_t count, size_t size, struct error *err)
{
	void **items = array;
	size_t larger = *room ? 2 * *room : 1024;
	void *grown;

	if (count < *room)
		return 0;
	grown = reallocarray(*items, larger, size);
	if (!grown || larger > UINT32_MAX) {
		*items = grown ? grown : *items;
		return error_set(err, "out of memory for a call tree of %zu places", larger);
	}
	*items = grown;
	*room = larger;
	return 0;
}

/* The number of the frame from 0, or -1. */
static int64_t frame_at(struct export_tree *t, struct pairs *frames, uint32_t function, uint32_t line,
			struct error *err)
{
	struct pair *slot = pair_at(frames, function, line);

	if (!slot || more_room(&t->frames, &t->frame_room, t->frame_count, sizeof *t->frames, err) < 0)
		return error_set(err, "out of memory for a call tree of %zu places", t->node_count);
	if (!slot->value) {
		t->frames[t->frame_count++] = (struct export_frame){function, line};
		*slot = (struct pair){function, line, (uint32_t)t->frame_count};
		frames->count++;
	}
	return slot->value - 1;
}

struct building {
	struct export_tree *tree;
	struct pairs frames, nodes;
	bool lines;
};

static void building_release(struct building *b)
{
	pairs_release(&b->frames);
	pairs_release(&b->nodes);
}

/* The place of a function below a caller's, or -1. */
static int64_t node_at(struct building *b, uint32_t parent, uint32_t function, uint32_t line, struct error *err)
{
	struct export_tree *t = b->tree;
	int64_t frame = frame_at(t, &b->frames, function, b->lines ? line : 0, err);
	struct pair *slot = frame < 0 ? NULL : pair_at(&b->nodes, parent, (uint32_t)frame);

	if (!slot || more_room(&t->nodes, &t->node_room, t->node_count, sizeof *t->nodes, err) < 0)
		return error_set(err, "out of memory for a call tree of %zu places", t->node_count);
	if (!slot->value) {
		t->nodes[t->node_count] = (struct export_node){parent, (uint32_t)frame};
		*slot = (struct pair){parent, (uint32_t)frame, (uint32_t)t->node_count++};
		b->nodes.count++;
	}
	return slot->value;
}

/* The place of an address below the place of its caller: one step per inlined function. */
static int64_t place_of(struct building *b, uint32_t parent, uint32_t location, struct error *err)
{
	const struct profile *p = b->tree->profile;
	const struct profile_location *l = &p->locations[location];
	int64_t at = parent;

	if (export_is_sampler(p, l->module))
		return parent;
	if (!l->count)
		return node_at(b, parent, export_unnamed(p, l->module), 0, err);
	for (uint32_t i = l->count; i-- > 0 && at >= 0;) {
		const struct profile_frame *f = &p->frames[l->first + i];

		at = node_at(b, (uint32_t)at, b->tree->same[f->function], f->line, err);
	}
	return at;
}

static int compare_names(const struct profile *p, const struct profile_function *x, const struct profile_function *y)
{
	int modules = x->module == y->module ? 0 : strcmp(p->modules[x->module].name, p->modules[y->module].name);

	return modules ? modules : strcmp(x->name, y->name);
}

/* By module and name; of equal ones the one that knows its file comes first, then the smaller number. */
static int by_name(const void *a, const void *b, void *profile)
{
	const struct profile *p = profile;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct profile_function *x = &p->functions[i], *y = &p->functions[j];
	int names = compare_names(p, x, y);

	if (names)
		return names;
	if (!x->file != !y->file)
		return x->file ? -1 : 1;
	return (i > j) - (i < j);
}

/* One function may be known with and without its file, where it was inlined and where it was not. */
static int find_same(struct export_tree *t, struct error *err)
{
	const struct profile *p = t->profile;
	CLEANUP(free_cleanup) uint32_t *order = calloc(p->function_count + 1, sizeof *order);

	t->same = calloc(p->function_count + 1, sizeof *t->same);
	if (!order || !t->same)
		return error_set(err, "out of memory for %zu functions", p->function_count);
	for (uint32_t i = 0; i < p->function_count; i++)
		order[i] = i;
	qsort_r(order, p->function_count, sizeof *order, by_name, (void *)p);
	for (size_t i = 0; i < p->function_count; i++) {
		const struct profile_function *f = &p->functions[order[i]];
		bool new = !i || compare_names(p, f, &p->functions[order[i - 1]]) != 0;

		t->same[order[i]] = new ? order[i] : t->same[order[i - 1]];
	}
	return 0;
}

void export_mark_nodes(const struct profile *p, const struct export_samples *s, bool *flags)
{
	for (size_t i = 0; i < s->count; i++)
		flags[p->samples[s->items[i]].node] = true;
	for (size_t i = p->node_count; i-- > 1;)
		if (flags[i] && p->nodes[i].parent != PROFILE_NONE)
			flags[p->nodes[i].parent] = true;
}

int export_tree_build(struct export_tree *t, const struct profile *p, const struct export_samples *s, bool lines,
		      struct error *err)
{
	CLEANUP(free_cleanup) bool *needed = calloc(p->node_count + 1, sizeof *needed);
	CLEANUP(building_release) struct building b = {.tree = t, .lines = lines};
	int64_t no_stack = 0;

	t->profile = p;
	t->node_of = calloc(p->node_count + 1, sizeof *t->node_of);
	if (!needed || !t->node_of)
		return error_set(err, "out of memory for a call tree of %zu places", p->node_count);
	if (find_same(t, err) < 0 || more_room(&t->nodes, &t->node_room, 0, sizeof *t->nodes, err) < 0)
		return EXPORT_TROUBLE;
	t->nodes[t->node_count++] = (struct export_node){0, 0};
	export_mark_nodes(p, s, needed);
	for (size_t i = 1; i < p->node_count; i++) {
		int64_t at = needed[i] ? place_of(&b, t->node_of[p->nodes[i].parent], p->nodes[i].location, err) : 0;

		if (at < 0)
			return EXPORT_TROUBLE;
		t->node_of[i] = (uint32_t)at;
	}
	/* What has no frame left still is CPU time. */
	for (size_t i = 0; i < s->count; i++) {
		uint32_t node = p->samples[s->items[i]].node;

		if (t->node_of[node])
			continue;
		if (!no_stack)
			no_stack = node_at(&b, 0, export_no_stack(p), 0, err);
		if (no_stack < 0)
			return EXPORT_TROUBLE;
		t->node_of[node] = (uint32_t)no_stack;
	}
	return EXPORT_OK;
}

bool export_is_sampler(const struct profile *p, uint32_t module)
{
	return strncmp(p->modules[module].name, SAMPLER, strlen(SAMPLER)) == 0;
}

uint32_t export_unnamed(const struct profile *p, uint32_t module)
{
	return (uint32_t)p->function_count + module;
}

uint32_t export_no_stack(const struct profile *p)
{
	return (uint32_t)(p->function_count + p->module_count);
}

const char *export_function_name(const struct profile *p, uint32_t function, struct buf *scratch)
{
	if (function < p->function_count)
		return *p->functions[function].name ? p->functions[function].name : "?";
	if (function == export_no_stack(p))
		return NO_STACK;
	buf_clear(scratch);
	buf_printf(scratch, "%s!?", p->modules[function - p->function_count].name);
	return scratch->text;
}

const char *export_function_file(const struct profile *p, uint32_t function)
{
	return function < p->function_count ? p->functions[function].file : NULL;
}

uint32_t export_function_line(const struct profile *p, uint32_t function)
{
	return function < p->function_count ? p->functions[function].line : 0;
}

uint32_t export_function_module(const struct profile *p, uint32_t function)
{
	if (function < p->function_count)
		return p->functions[function].module;
	return function == export_no_stack(p) ? PROFILE_NONE : function - (uint32_t)p->function_count;
}

const char *export_frame_name(const struct export_tree *t, uint32_t frame, struct buf *scratch)
{
	const struct export_frame *f = &t->frames[frame];
	const char *name = export_function_name(t->profile, f->function, scratch);
	const char *file = export_function_file(t->profile, f->function), *slash;

	if (!f->line || f->function >= t->profile->function_count)
		return name;
	slash = file ? strrchr(file, '/') : NULL;
	buf_clear(scratch);
	buf_printf(scratch, "%s (%s:%u)", name, slash ? slash + 1 : file ? file : "?", f->line);
	return scratch->text;
}
