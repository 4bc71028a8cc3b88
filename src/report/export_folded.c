/* Folded stacks: "process;outermost;...;innermost 12", one line per distinct stack, the number being periods. The
 * format has no escapes: what would break a line or a stack apart is replaced. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/export_tree.h"
#include "report/json_stream.h"

static int by_exe(const void *a, const void *b, void *images)
{
	const struct profile_image *of = images;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	int names = strcmp(export_process_name(&of[i]), export_process_name(&of[j]));

	return names ? names : (i > j) - (i < j);
}

/* For each image the first one whose program has the same name: a fork server's children are one process here. */
static uint32_t *same_processes(const struct profile *p)
{
	CLEANUP(free_cleanup) uint32_t *order = calloc(p->image_count + 1, sizeof *order);
	uint32_t *same = calloc(p->image_count + 1, sizeof *same);

	for (uint32_t i = 0; order && i < p->image_count; i++)
		order[i] = i;
	if (!order || !same) {
		free(same);
		return NULL;
	}
	qsort_r(order, p->image_count, sizeof *order, by_exe, p->images);
	for (size_t i = 0; i < p->image_count; i++) {
		const char *name = export_process_name(&p->images[order[i]]);
		bool new = !i || strcmp(name, export_process_name(&p->images[order[i - 1]])) != 0;

		same[order[i]] = new ? order[i] : same[order[i - 1]];
	}
	return same;
}

static void put_name(FILE *out, const char *name, struct buf *clean)
{
	buf_clear(clean);
	utf8_append_clean(clean, name, strlen(name));
	for (size_t i = 0; i < clean->length; i++) {
		char *c = &clean->text[i];

		if (*c == ';')
			*c = ':';
		else if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	}
	fwrite_unlocked(clean->text, 1, clean->length, out);
}

struct writing {
	const struct export_tree *tree;
	FILE *out;
	uint32_t *path; /* room for the deepest stack */
	struct buf name, clean;
};

static void writing_release(struct writing *w)
{
	free(w->path);
	buf_release(&w->name);
	buf_release(&w->clean);
}

static void put_stack(struct writing *w, const char *process, const struct export_sum *sum)
{
	size_t depth = 0;

	for (uint32_t at = sum->node; at; at = w->tree->nodes[at].parent)
		w->path[depth++] = w->tree->nodes[at].frame;
	put_name(w->out, process, &w->clean);
	while (depth-- > 0) {
		putc_unlocked(';', w->out);
		put_name(w->out, export_frame_name(w->tree, w->path[depth], &w->name), &w->clean);
	}
	putc_unlocked(' ', w->out);
	json_stream_number(w->out, sum->weight);
	putc_unlocked('\n', w->out);
}

static int put_all(struct writing *w, const struct export_samples *s, struct error *err)
{
	const struct profile *p = w->tree->profile;
	CLEANUP(free_cleanup) uint32_t *processes = same_processes(p);
	CLEANUP(free_cleanup) struct export_sum *sums = calloc(s->count, sizeof *sums);
	size_t n;

	w->path = calloc(w->tree->node_count, sizeof *w->path);
	if (!processes || !sums || !w->path)
		return error_set(err, "out of memory for %zu stacks", s->count);
	for (size_t i = 0; i < s->count; i++) {
		const struct profile_sample *sample = &p->samples[s->items[i]];

		sums[i].key = processes[p->threads[sample->thread].image];
		sums[i].node = w->tree->node_of[sample->node];
		sums[i].weight = sample->weight;
	}
	n = export_sums_join(sums, s->count);
	for (size_t i = 0; i < n && !ferror(w->out); i++)
		put_stack(w, export_process_name(&p->images[sums[i].key]), &sums[i]);
	return w->name.failed || w->clean.failed ? error_set(err, "out of memory for a name") : 0;
}

int export_folded(const struct export_input *in, FILE *out, struct error *err)
{
	CLEANUP(export_samples_release) struct export_samples samples;
	CLEANUP(export_tree_release) struct export_tree tree;
	CLEANUP(writing_release) struct writing w = {.tree = &tree, .out = out};
	int got;

	export_samples_init(&samples);
	export_tree_init(&tree);
	buf_init(&w.name);
	buf_init(&w.clean);
	got = export_samples_choose(&samples, in, err);
	if (got == EXPORT_OK)
		got = export_tree_build(&tree, in->profile, &samples, in->by_line, err);
	return got == EXPORT_OK ? put_all(&w, &samples, err) : got;
}
