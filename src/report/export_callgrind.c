/* callgrind's format: for each function its own cost by line, and the cost of the calls that it made, from the call
 * tree. A function that recurs is one more function per level, "f", "f'2", "f'3", as callgrind itself has it with
 * --separate-recs: so that a stack counts once in each, and inclusive costs add up. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/export_tree.h"
#include "report/json_stream.h"

#define NONE 0 /* levels begin with 1, so that no function has this key */

/* Calls what is outermost on each stack: readers take the inclusive cost of a function from the calls to it, and lost
 * stacks begin with any function. Its number is the one behind all others. */
#define ALL "[all threads]"

/* A cost line: of the function itself, or of a call. A function at a level of recursion is level << 32 | function. */
struct row {
	uint64_t function, callee; /* callee NONE: its own cost */
	uint32_t line;
	uint64_t weight;
};

struct writing {
	const struct export_tree *tree;
	const struct profile *p;
	const struct export_samples *samples;
	FILE *out;
	uint64_t *own, *with_calls; /* weight by node */
	uint64_t *functions;        /* by node, at its level */
	uint64_t *keys;             /* all of them, sorted: the position plus 1 is the id in the file */
	size_t key_count;
	uint32_t *file_of;          /* by function: the id of its file, 0: not known */
	bool *key_told, *file_told, *module_told; /* their names stand in the file already */
	struct row *rows;
	size_t row_count;
	struct buf name, clean;
};

static void writing_release(struct writing *w)
{
	free(w->own);
	free(w->with_calls);
	free(w->functions);
	free(w->keys);
	free(w->file_of);
	free(w->key_told);
	free(w->file_told);
	free(w->module_told);
	free(w->rows);
	buf_release(&w->name);
	buf_release(&w->clean);
}

static uint32_t number_of_all(const struct writing *w)
{
	return export_no_stack(w->p) + 1;
}

static uint32_t module_of(const struct writing *w, uint32_t function)
{
	return function == number_of_all(w) ? PROFILE_NONE : export_function_module(w->p, function);
}

static uint32_t function_of(const struct writing *w, uint32_t node)
{
	return w->tree->frames[w->tree->nodes[node].frame].function;
}

/* How often the function of each node already stands above it: a walk over the tree that counts on its way down. */
static int find_levels(struct writing *w, struct error *err)
{
	size_t n = w->tree->node_count;
	CLEANUP(free_cleanup) uint32_t *child = calloc(n, sizeof *child);
	CLEANUP(free_cleanup) uint32_t *sibling = calloc(n, sizeof *sibling);
	CLEANUP(free_cleanup) uint32_t *level = calloc(export_no_stack(w->p) + (size_t)1, sizeof *level);

	if (!child || !sibling || !level)
		return error_set(err, "out of memory for %zu places", n);
	for (uint32_t i = (uint32_t)n - 1; i > 0; i--) {
		uint32_t parent = w->tree->nodes[i].parent;

		sibling[i] = child[parent];
		child[parent] = i;
	}
	w->functions[0] = UINT64_C(1) << 32 | number_of_all(w);
	for (uint32_t at = child[0]; at;) {
		w->functions[at] = (uint64_t)++level[function_of(w, at)] << 32 | function_of(w, at);
		if (child[at]) {
			at = child[at];
			continue;
		}
		for (; at && !sibling[at]; at = w->tree->nodes[at].parent)
			level[function_of(w, at)]--;
		if (at) {
			level[function_of(w, at)]--;
			at = sibling[at];
		}
	}
	return 0;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int by_function(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->callee != y->callee)
		return x->callee < y->callee ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static void add_row(struct writing *w, uint32_t node, uint64_t callee, uint64_t weight)
{
	uint32_t line = node ? w->tree->frames[w->tree->nodes[node].frame].line : 0;

	w->rows[w->row_count++] = (struct row){w->functions[node], callee, line, weight};
}

static void join_rows(struct writing *w)
{
	size_t kept = 0;

	qsort(w->rows, w->row_count, sizeof *w->rows, by_function);
	for (size_t i = 0; i < w->row_count; i++) {
		if (kept && by_function(&w->rows[kept - 1], &w->rows[i]) == 0)
			w->rows[kept - 1].weight += w->rows[i].weight;
		else
			w->rows[kept++] = w->rows[i];
	}
	w->row_count = kept;
}

static int make_rows(struct writing *w, struct error *err)
{
	size_t n = w->tree->node_count;

	w->own = calloc(n, sizeof *w->own);
	w->with_calls = calloc(n, sizeof *w->with_calls);
	w->functions = calloc(n, sizeof *w->functions);
	w->keys = calloc(n, sizeof *w->keys);
	w->rows = calloc(2 * n, sizeof *w->rows);
	if (!w->own || !w->with_calls || !w->functions || !w->keys || !w->rows)
		return error_set(err, "out of memory for %zu places", n);
	for (size_t i = 0; i < w->samples->count; i++) {
		const struct profile_sample *s = &w->p->samples[w->samples->items[i]];

		w->own[w->tree->node_of[s->node]] += s->weight;
	}
	if (find_levels(w, err) < 0)
		return -1;
	for (uint32_t i = (uint32_t)n - 1; i > 0; i--) {
		uint32_t parent = w->tree->nodes[i].parent;

		w->with_calls[i] += w->own[i];
		w->with_calls[parent] += w->with_calls[i];
		w->keys[w->key_count++] = w->functions[i];
		if (w->own[i])
			add_row(w, i, NONE, w->own[i]);
		add_row(w, parent, w->functions[i], w->with_calls[i]);
	}
	w->keys[w->key_count++] = w->functions[0];
	join_rows(w);
	qsort(w->keys, w->key_count, sizeof *w->keys, by_number);
	n = w->key_count;
	w->key_count = 0;
	for (size_t i = 0; i < n; i++)
		if (!w->key_count || w->keys[w->key_count - 1] != w->keys[i])
			w->keys[w->key_count++] = w->keys[i];
	return 0;
}

static int by_file(const void *a, const void *b, void *functions)
{
	const struct profile_function *of = functions;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	int names = strcmp(of[i].file, of[j].file);

	return names ? names : (i > j) - (i < j);
}

/* Functions of one file share its id. */
static int number_files(struct writing *w, struct error *err)
{
	const struct profile *p = w->p;
	CLEANUP(free_cleanup) uint32_t *order = calloc(p->function_count + 1, sizeof *order);
	size_t n = 0;

	w->file_of = calloc(number_of_all(w) + (size_t)1, sizeof *w->file_of);
	w->key_told = calloc(w->key_count + 1, sizeof *w->key_told);
	w->file_told = calloc(p->function_count + 2, sizeof *w->file_told);
	w->module_told = calloc(p->module_count + 1, sizeof *w->module_told);
	if (!order || !w->file_of || !w->key_told || !w->file_told || !w->module_told)
		return error_set(err, "out of memory for %zu functions", p->function_count);
	for (uint32_t i = 0; i < p->function_count; i++)
		if (p->functions[i].file)
			order[n++] = i;
	qsort_r(order, n, sizeof *order, by_file, p->functions);
	for (size_t i = 0, id = 0; i < n; i++) {
		id += !i || strcmp(p->functions[order[i]].file, p->functions[order[i - 1]].file) != 0;
		w->file_of[order[i]] = (uint32_t)id;
	}
	return 0;
}

static void put_clean(struct writing *w, const char *text)
{
	buf_clear(&w->clean);
	utf8_append_clean(&w->clean, text, strlen(text));
	for (size_t i = 0; i < w->clean.length; i++)
		if ((unsigned char)w->clean.text[i] < ' ')
			w->clean.text[i] = ' ';
	fwrite_unlocked(w->clean.text, 1, w->clean.length, w->out);
}

/* "fn=(12) name", and "fn=(12)" from then on. */
static void put_name(struct writing *w, const char *key, size_t id, bool *told, const char *name, uint32_t level)
{
	fprintf(w->out, "%s=(%zu)", key, id);
	if (!*told) {
		putc_unlocked(' ', w->out);
		put_clean(w, name);
		if (level > 1)
			fprintf(w->out, "'%u", level);
	}
	putc_unlocked('\n', w->out);
	*told = true;
}

static size_t id_of(const struct writing *w, uint64_t function)
{
	const uint64_t *at = bsearch(&function, w->keys, w->key_count, sizeof *w->keys, by_number);

	return (size_t)(at - w->keys) + 1;
}

static void put_module(struct writing *w, const char *key, uint32_t module)
{
	const struct profile_module *m = module == PROFILE_NONE ? NULL : &w->p->modules[module];
	size_t at = m ? module : w->p->module_count;

	put_name(w, key, at + 1, &w->module_told[at], !m ? "???" : *m->path ? m->path : m->name, 1);
}

static void put_file(struct writing *w, const char *key, uint32_t function)
{
	const char *file = export_function_file(w->p, function);
	uint32_t id = w->file_of[function];

	put_name(w, key, id + (size_t)1, &w->file_told[id], file ? file : "???", 1);
}

static void put_function(struct writing *w, const char *key, uint64_t at_level)
{
	size_t id = id_of(w, at_level);
	uint32_t function = (uint32_t)at_level;
	const char *name = function == number_of_all(w) ? ALL : export_function_name(w->p, function, &w->name);

	put_name(w, key, id, &w->key_told[id - 1], name, (uint32_t)(at_level >> 32));
}

/* Of a callee only what is not as with its caller. How often it was called no sample knows: their number stands for
 * it. */
static void put_call(struct writing *w, const struct row *r)
{
	uint32_t caller = (uint32_t)r->function, callee = (uint32_t)r->callee;

	if (module_of(w, callee) != module_of(w, caller))
		put_module(w, "cob", module_of(w, callee));
	if (w->file_of[callee] != w->file_of[caller])
		put_file(w, "cfi", callee);
	put_function(w, "cfn", r->callee);
	fprintf(w->out, "calls=%llu %u\n", (unsigned long long)r->weight, export_function_line(w->p, callee));
}

static void put_cost(struct writing *w, uint32_t line, uint64_t weight)
{
	json_stream_number(w->out, line);
	putc_unlocked(' ', w->out);
	json_stream_number(w->out, weight);
	putc_unlocked(' ', w->out);
	json_stream_number(w->out, weight * w->samples->period_ns);
	putc_unlocked('\n', w->out);
}

static void put_rows(struct writing *w)
{
	for (size_t i = 0; i < w->row_count && !ferror(w->out); i++) {
		const struct row *r = &w->rows[i];

		if (!i || r->function != w->rows[i - 1].function) {
			putc_unlocked('\n', w->out);
			put_module(w, "ob", module_of(w, (uint32_t)r->function));
			put_file(w, "fl", (uint32_t)r->function);
			put_function(w, "fn", r->function);
		}
		if (r->callee != NONE)
			put_call(w, r);
		put_cost(w, r->line, r->weight);
	}
}

static int put_all(struct writing *w, const struct export_input *in, struct error *err)
{
	unsigned long long weight = w->samples->weight, ns = weight * w->samples->period_ns;

	if (make_rows(w, err) < 0 || number_files(w, err) < 0)
		return EXPORT_TROUBLE;
	json_stream_raw(w->out, "# callgrind format\nversion: 1\ncreator: assay " ASSAY_VERSION "\ncmd: ");
	put_clean(w, in->command ? in->command : "");
	json_stream_raw(w->out, "\npart: 1\n\npositions: line\nevent: Samples : CPU samples, in sampling periods\n"
				"event: CPU_ns : CPU time [ns]\nevents: Samples CPU_ns\n");
	fprintf(w->out, "summary: %llu %llu\n", weight, ns);
	put_rows(w);
	fprintf(w->out, "\ntotals: %llu %llu\n", weight, ns);
	return w->name.failed || w->clean.failed ? error_set(err, "out of memory for a name") : EXPORT_OK;
}

int export_callgrind(const struct export_input *in, FILE *out, struct error *err)
{
	CLEANUP(export_samples_release) struct export_samples samples;
	CLEANUP(export_tree_release) struct export_tree tree;
	CLEANUP(writing_release) struct writing w = {.tree = &tree, .p = in->profile, .samples = &samples, .out = out};
	int got;

	export_samples_init(&samples);
	export_tree_init(&tree);
	buf_init(&w.name);
	buf_init(&w.clean);
	got = export_samples_choose(&samples, in, err);
	if (got == EXPORT_OK)
		got = export_tree_build(&tree, in->profile, &samples, true, err);
	return got == EXPORT_OK ? put_all(&w, in, err) : got;
}
