/* callgrind's format: for each function its own cost by line, and the cost of the calls that it made, from the call
 * tree. A call to a function that is on the stack already is left out, so that a stack counts once in the calls to each
 * of its functions: viewers take inclusive costs from there. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/export_tree.h"
#include "report/json_stream.h"

#define NONE UINT32_MAX /* no callee */

/* Calls what is outermost on each stack: readers take the inclusive cost of a function from the calls to it, and lost
 * stacks begin with any function. Its number is the one behind all others. */
#define ALL "[all threads]"

/* A cost line: of the function itself, or of a call. */
struct row {
	uint32_t function, callee; /* callee NONE: its own cost */
	uint32_t line;
	uint64_t weight;
};

struct writing {
	const struct export_tree *tree;
	const struct profile *p;
	const struct export_samples *samples;
	FILE *out;
	uint64_t *own, *with_calls; /* weight by node */
	bool *again;                /* by node: its function stands above it, too */
	uint32_t *file_of;          /* by function: the id of its file, 0: not known */
	bool *function_told, *file_told, *module_told; /* their names stand in the file already */
	struct row *rows;
	size_t row_count;
	struct buf name, clean;
};

static void writing_release(struct writing *w)
{
	free(w->own);
	free(w->with_calls);
	free(w->again);
	free(w->file_of);
	free(w->function_told);
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
	return node ? w->tree->frames[w->tree->nodes[node].frame].function : number_of_all(w);
}

/* Which nodes have their function above them, too: a walk over the tree that counts on its way down. */
static int find_recursion(struct writing *w, struct error *err)
{
	size_t n = w->tree->node_count;
	CLEANUP(free_cleanup) uint32_t *child = calloc(n, sizeof *child);
	CLEANUP(free_cleanup) uint32_t *sibling = calloc(n, sizeof *sibling);
	CLEANUP(free_cleanup) uint32_t *on_way = calloc(number_of_all(w) + (size_t)1, sizeof *on_way);

	if (!child || !sibling || !on_way)
		return error_set(err, "out of memory for %zu places", n);
	for (uint32_t i = (uint32_t)n - 1; i > 0; i--) {
		uint32_t parent = w->tree->nodes[i].parent;

		sibling[i] = child[parent];
		child[parent] = i;
	}
	for (uint32_t at = child[0]; at;) {
		w->again[at] = on_way[function_of(w, at)]++ > 0;
		if (child[at]) {
			at = child[at];
			continue;
		}
		for (; at && !sibling[at]; at = w->tree->nodes[at].parent)
			on_way[function_of(w, at)]--;
		if (at) {
			on_way[function_of(w, at)]--;
			at = sibling[at];
		}
	}
	return 0;
}

static int by_function(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->callee != y->callee)
		return x->callee + 1 < y->callee + 1 ? -1 : 1; /* its own cost before its calls */
	return (x->line > y->line) - (x->line < y->line);
}

static void add_row(struct writing *w, uint32_t node, uint32_t callee, uint64_t weight)
{
	uint32_t line = node ? w->tree->frames[w->tree->nodes[node].frame].line : 0;

	w->rows[w->row_count++] = (struct row){function_of(w, node), callee, line, weight};
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
	w->again = calloc(n, sizeof *w->again);
	w->rows = calloc(2 * n, sizeof *w->rows);
	if (!w->own || !w->with_calls || !w->again || !w->rows)
		return error_set(err, "out of memory for %zu places", n);
	for (size_t i = 0; i < w->samples->count; i++) {
		const struct profile_sample *s = &w->p->samples[w->samples->items[i]];

		w->own[w->tree->node_of[s->node]] += s->weight;
	}
	if (find_recursion(w, err) < 0)
		return -1;
	for (uint32_t i = (uint32_t)n - 1; i > 0; i--) {
		uint32_t parent = w->tree->nodes[i].parent;

		w->with_calls[i] += w->own[i];
		w->with_calls[parent] += w->with_calls[i];
		if (w->own[i])
			add_row(w, i, NONE, w->own[i]);
		if (!w->again[i])
			add_row(w, parent, function_of(w, i), w->with_calls[i]);
	}
	join_rows(w);
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
	w->function_told = calloc(number_of_all(w) + (size_t)1, sizeof *w->function_told);
	w->file_told = calloc(p->function_count + 2, sizeof *w->file_told);
	w->module_told = calloc(p->module_count + 1, sizeof *w->module_told);
	if (!order || !w->file_of || !w->function_told || !w->file_told || !w->module_told)
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
static void put_name(struct writing *w, const char *key, size_t id, bool *told, const char *name)
{
	fprintf(w->out, "%s=(%zu)", key, id);
	if (!*told) {
		putc_unlocked(' ', w->out);
		put_clean(w, name);
	}
	putc_unlocked('\n', w->out);
	*told = true;
}

static void put_module(struct writing *w, const char *key, uint32_t module)
{
	const struct profile_module *m = module == PROFILE_NONE ? NULL : &w->p->modules[module];
	size_t at = m ? module : w->p->module_count;

	put_name(w, key, at + 1, &w->module_told[at], !m ? "???" : *m->path ? m->path : m->name);
}

static void put_file(struct writing *w, const char *key, uint32_t function)
{
	const char *file = export_function_file(w->p, function);
	uint32_t id = w->file_of[function];

	put_name(w, key, id + (size_t)1, &w->file_told[id], file ? file : "???");
}

static void put_function(struct writing *w, const char *key, uint32_t function)
{
	const char *name = function == number_of_all(w) ? ALL : export_function_name(w->p, function, &w->name);

	put_name(w, key, function + (size_t)1, &w->function_told[function], name);
}

/* Of a callee only what is not as with its caller. How often it was called no sample knows: their number stands for
 * it. */
static void put_call(struct writing *w, const struct row *r)
{
	uint32_t caller = r->function, callee = r->callee;

	if (module_of(w, callee) != module_of(w, caller))
		put_module(w, "cob", module_of(w, callee));
	if (w->file_of[callee] != w->file_of[caller])
		put_file(w, "cfi", callee);
	put_function(w, "cfn", callee);
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
			put_module(w, "ob", module_of(w, r->function));
			put_file(w, "fl", r->function);
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
