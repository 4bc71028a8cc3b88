/* speedscope's own format: the frames once, then for each thread its stacks in the order of time, each as long as the
 * CPU time that it stands for. https://www.speedscope.app/file-format-schema.json is its schema. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "report/export_tree.h"
#include "report/json_stream.h"

struct writing {
	const struct export_tree *tree;
	const struct export_samples *samples;
	FILE *out;
	uint32_t *path; /* room for the deepest stack */
	struct buf text;
};

static void writing_release(struct writing *w)
{
	free(w->path);
	buf_release(&w->text);
}

static void put_frames(struct writing *w)
{
	const struct profile *p = w->tree->profile;

	for (uint32_t i = 0; i < w->tree->frame_count; i++) {
		const struct export_frame *f = &w->tree->frames[i];
		const char *file = export_function_file(p, f->function);
		uint32_t line = f->line ? f->line : export_function_line(p, f->function);

		json_stream_raw(w->out, i ? ",\n{\"name\":" : "\n{\"name\":");
		json_stream_text(w->out, export_frame_name(w->tree, i, &w->text));
		if (file) {
			json_stream_raw(w->out, ",\"file\":");
			json_stream_text(w->out, file);
		}
		if (file && line) {
			json_stream_raw(w->out, ",\"line\":");
			json_stream_number(w->out, line);
		}
		json_stream_raw(w->out, "}");
	}
}

static void put_stack(struct writing *w, uint32_t node)
{
	size_t depth = 0;

	for (uint32_t at = node; at; at = w->tree->nodes[at].parent)
		w->path[depth++] = w->tree->nodes[at].frame;
	for (const char *before = "["; depth > 0; before = ",") {
		json_stream_raw(w->out, before);
		json_stream_number(w->out, w->path[--depth]);
	}
	json_stream_raw(w->out, "]");
}

static uint32_t node_of(const struct writing *w, size_t item)
{
	return w->tree->node_of[w->tree->profile->samples[w->samples->items[item]].node];
}

/* The end of the samples from `from` on that have the same stack: one entry says the same as all of them. */
static size_t same_stack(const struct writing *w, size_t from, size_t end, uint64_t *ret_weight)
{
	uint32_t node = node_of(w, from);

	*ret_weight = 0;
	for (; from < end && node_of(w, from) == node; from++)
		*ret_weight += w->tree->profile->samples[w->samples->items[from]].weight;
	return from;
}

static void put_name(struct writing *w, uint32_t thread)
{
	const struct profile_thread *t = &w->tree->profile->threads[thread];
	const struct profile_image *image = &w->tree->profile->images[t->image];

	buf_clear(&w->text);
	buf_printf(&w->text, "%s (%d) %s (%d)", export_process_name(image), image->pid, t->name, t->tid);
	json_stream_text(w->out, w->text.text);
}

static void put_thread(struct writing *w, uint32_t thread)
{
	const struct export_samples *s = w->samples;
	size_t first = s->first[thread], end = s->first[thread + 1];
	uint64_t weight;

	json_stream_raw(w->out, "{\"type\":\"sampled\",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":");
	json_stream_number(w->out, s->weights[thread] * s->period_ns);
	json_stream_raw(w->out, ",\"name\":");
	put_name(w, thread);
	json_stream_raw(w->out, ",\n\"samples\":[");
	for (size_t at = first; at < end; at = same_stack(w, at, end, &weight)) {
		if (at > first)
			json_stream_raw(w->out, ",\n");
		put_stack(w, node_of(w, at));
	}
	json_stream_raw(w->out, "],\n\"weights\":[");
	for (size_t at = first; at < end;) {
		if (at > first)
			json_stream_raw(w->out, ",");
		at = same_stack(w, at, end, &weight);
		json_stream_number(w->out, weight * s->period_ns);
	}
	json_stream_raw(w->out, "]}");
}

static int put_all(struct writing *w, const struct export_input *in, struct error *err)
{
	w->path = calloc(w->tree->node_count, sizeof *w->path);
	if (!w->path)
		return error_set(err, "out of memory for %zu places", w->tree->node_count);
	json_stream_raw(w->out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n\"exporter\":");
	json_stream_text(w->out, "assay " ASSAY_VERSION);
	json_stream_raw(w->out, ",\"name\":");
	json_stream_text(w->out, in->label ? in->label : in->command);
	json_stream_raw(w->out, ",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[");
	put_frames(w);
	json_stream_raw(w->out, "]},\n\"profiles\":[");
	for (size_t i = 0; i < w->samples->thread_count && !ferror(w->out); i++) {
		json_stream_raw(w->out, i ? ",\n" : "\n");
		put_thread(w, w->samples->threads[i]);
	}
	json_stream_raw(w->out, "]}\n");
	return w->text.failed ? error_set(err, "out of memory for a name") : EXPORT_OK;
}

int export_speedscope(const struct export_input *in, FILE *out, struct error *err)
{
	CLEANUP(export_samples_release) struct export_samples samples;
	CLEANUP(export_tree_release) struct export_tree tree;
	CLEANUP(writing_release) struct writing w = {.tree = &tree, .samples = &samples, .out = out};
	int got;

	export_samples_init(&samples);
	export_tree_init(&tree);
	buf_init(&w.text);
	got = export_samples_choose(&samples, in, err);
	if (got == EXPORT_OK)
		got = export_tree_build(&tree, in->profile, &samples, in->by_line, err);
	return got == EXPORT_OK ? put_all(&w, in, err) : got;
}
