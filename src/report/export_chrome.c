/* Trace events, as chrome://tracing and Perfetto read them: the run's phases and each thread's functions as slices over
 * time, and once more as samples with stacks, which not every viewer shows but which have the exact weights. Times are
 * microseconds since the run's start.
 *
 * A sample says that its thread used CPU time before it, not which moments: a slice reaches back by that time, at most
 * to the sample before. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/export_tree.h"
#include "report/json_stream.h"

#define PHASES_PID 4194305u /* above all that a kernel gives out */
#define SLICE_NAME_MAX 200  /* bytes; the whole name is with the stack frame, once */
#define SLICES_MAX 2000000u /* beyond, viewers fail: then each sample's innermost function alone is a slice */

struct writing {
	const struct export_tree *tree;
	const struct profile *p;
	const struct export_samples *samples;
	const struct export_input *in;
	FILE *out;
	const char *before;    /* what stands before the next element */
	uint32_t *open, *path; /* nodes from the outermost on: slices that are open, and those of the next sample */
	size_t open_count;
	size_t slices; /* counted first, without writing */
	bool counting, innermost_only;
	struct buf name, cut;
};

static void writing_release(struct writing *w)
{
	free(w->open);
	free(w->path);
	buf_release(&w->name);
	buf_release(&w->cut);
}

/* Times of a damaged record may be anything. */
static int64_t since(int64_t t, int64_t start)
{
	int64_t span;

	return __builtin_sub_overflow(t, start, &span) ? (t < start ? INT64_MIN : INT64_MAX) : span;
}

static void begin_event(struct writing *w, const char *phase, uint32_t pid, uint32_t tid)
{
	json_stream_raw(w->out, w->before);
	json_stream_raw(w->out, phase);
	json_stream_number(w->out, pid);
	json_stream_raw(w->out, ",\"tid\":");
	json_stream_number(w->out, tid);
	w->before = ",\n";
}

static void put_time(struct writing *w, const char *key, int64_t ns)
{
	json_stream_raw(w->out, key);
	json_stream_us(w->out, ns);
}

static void put_metadata(struct writing *w, const char *what, uint32_t pid, uint32_t tid, const char *name)
{
	begin_event(w, "{\"ph\":\"M\",\"pid\":", pid, tid);
	json_stream_raw(w->out, ",\"name\":\"");
	json_stream_raw(w->out, what);
	json_stream_raw(w->out, "\",\"args\":{\"name\":");
	json_stream_text(w->out, name);
	json_stream_raw(w->out, "}}");
}

static uint32_t pid_of(const struct writing *w, uint32_t thread)
{
	return (uint32_t)w->p->images[w->p->threads[thread].image].pid;
}

static void put_threads(struct writing *w)
{
	for (size_t i = 0; i < w->samples->thread_count; i++) {
		uint32_t thread = w->samples->threads[i];
		const struct profile_thread *t = &w->p->threads[thread];
		const struct profile_image *image = &w->p->images[t->image];

		put_metadata(w, "process_name", (uint32_t)image->pid, (uint32_t)t->tid, export_process_name(image));
		put_metadata(w, "thread_name", (uint32_t)image->pid, (uint32_t)t->tid, t->name);
	}
}

static void put_phases(struct writing *w)
{
	const struct phases *phases = w->in->phases;

	if (!phases->count)
		return;
	put_metadata(w, "process_name", PHASES_PID, PHASES_PID, "phases of the run");
	begin_event(w, "{\"ph\":\"M\",\"pid\":", PHASES_PID, PHASES_PID);
	json_stream_raw(w->out, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":-1}}");
	for (size_t i = 0; i < phases->count; i++) {
		const struct phase *p = &phases->items[i];

		begin_event(w, "{\"ph\":\"X\",\"cat\":\"phase\",\"pid\":", PHASES_PID, PHASES_PID);
		put_time(w, ",\"ts\":", since(p->start, w->in->start));
		put_time(w, ",\"dur\":", since(p->end, p->start));
		json_stream_raw(w->out, ",\"name\":");
		json_stream_text(w->out, p->name);
		json_stream_raw(w->out, ",\"args\":{\"group\":");
		json_stream_text(w->out, phase_group_name(p->group));
		json_stream_raw(w->out, "}}");
	}
}

static void open_slice(struct writing *w, uint32_t thread, uint32_t node, int64_t t)
{
	const char *name;
	size_t length, cut;

	w->open[w->open_count++] = node;
	w->slices++;
	if (w->counting)
		return;
	name = export_frame_name(w->tree, w->tree->nodes[node].frame, &w->name);
	length = strlen(name);
	cut = utf8_cut(name, length, SLICE_NAME_MAX);
	begin_event(w, "{\"ph\":\"B\",\"pid\":", pid_of(w, thread), (uint32_t)w->p->threads[thread].tid);
	put_time(w, ",\"ts\":", t);
	json_stream_raw(w->out, ",\"name\":");
	buf_clear(&w->cut);
	buf_append(&w->cut, name, cut);
	if (cut < length)
		buf_puts(&w->cut, "...");
	json_stream_text(w->out, w->cut.text);
	json_stream_raw(w->out, "}");
}

static void close_slices(struct writing *w, uint32_t thread, size_t left, int64_t t)
{
	for (; w->open_count > left; w->open_count--) {
		if (w->counting)
			continue;
		begin_event(w, "{\"ph\":\"E\",\"pid\":", pid_of(w, thread), (uint32_t)w->p->threads[thread].tid);
		put_time(w, ",\"ts\":", t);
		json_stream_raw(w->out, "}");
	}
}

/* The nodes of a stack that are slices, outermost first; returns how many. */
static size_t find_path(struct writing *w, uint32_t node)
{
	size_t depth = 0;

	for (uint32_t at = node; at && !(depth && w->innermost_only); at = w->tree->nodes[at].parent)
		w->path[depth++] = at;
	for (size_t i = 0; i < depth / 2; i++) {
		uint32_t other = w->path[i];

		w->path[i] = w->path[depth - 1 - i];
		w->path[depth - 1 - i] = other;
	}
	return depth;
}

/* Slices that two samples have in common go on from one to the next, unless the thread ran for less than half of the
 * time between them. */
static void put_slices(struct writing *w, uint32_t thread)
{
	int64_t last = INT64_MIN;

	for (size_t i = w->samples->first[thread]; i < w->samples->first[thread + 1] && !ferror(w->out); i++) {
		const struct profile_sample *s = &w->p->samples[w->samples->items[i]];
		int64_t used = (int64_t)(s->weight * w->samples->period_ns), t = since(s->t, w->in->start);
		int64_t from = t >= 0 && t < used ? 0 : since(t, used), gap = since(from, last);
		size_t depth = find_path(w, w->tree->node_of[s->node]), same = 0;

		if (gap > used)
			close_slices(w, thread, 0, last);
		if (w->open_count || gap < 0)
			from = last;
		while (same < depth && same < w->open_count && w->open[same] == w->path[same])
			same++;
		close_slices(w, thread, same, from);
		for (; same < depth; same++)
			open_slice(w, thread, w->path[same], from);
		last = t;
	}
	close_slices(w, thread, 0, last);
}

static void put_all_slices(struct writing *w)
{
	for (int writing = 0; writing < 2; writing++) {
		w->counting = !writing;
		w->innermost_only = w->slices > SLICES_MAX;
		for (size_t i = 0; i < w->samples->thread_count; i++)
			put_slices(w, w->samples->threads[i]);
	}
}

static void put_stack_frames(struct writing *w)
{
	for (uint32_t i = 1; i < w->tree->node_count; i++) {
		const struct export_node *node = &w->tree->nodes[i];
		uint32_t module = export_function_module(w->p, w->tree->frames[node->frame].function);

		json_stream_raw(w->out, i > 1 ? ",\n\"" : "\n\"");
		json_stream_number(w->out, i);
		json_stream_raw(w->out, "\":{\"name\":");
		json_stream_text(w->out, export_frame_name(w->tree, node->frame, &w->name));
		json_stream_raw(w->out, ",\"category\":");
		json_stream_text(w->out, module == PROFILE_NONE ? "" : w->p->modules[module].name);
		if (node->parent) {
			json_stream_raw(w->out, ",\"parent\":\"");
			json_stream_number(w->out, node->parent);
			json_stream_raw(w->out, "\"");
		}
		json_stream_raw(w->out, "}");
	}
}

static void put_samples(struct writing *w, uint32_t thread)
{
	for (size_t i = w->samples->first[thread]; i < w->samples->first[thread + 1] && !ferror(w->out); i++) {
		const struct profile_sample *s = &w->p->samples[w->samples->items[i]];

		begin_event(w, "{\"name\":\"cpu\",\"pid\":", pid_of(w, thread), (uint32_t)w->p->threads[thread].tid);
		put_time(w, ",\"ts\":", since(s->t, w->in->start));
		json_stream_raw(w->out, ",\"sf\":\"");
		json_stream_number(w->out, w->tree->node_of[s->node]);
		json_stream_raw(w->out, "\",\"weight\":");
		json_stream_number(w->out, s->weight);
		json_stream_raw(w->out, "}");
	}
}

static int put_all(struct writing *w, struct error *err)
{
	const struct export_samples *s = w->samples;

	w->open = calloc(w->tree->node_count, sizeof *w->open);
	w->path = calloc(w->tree->node_count, sizeof *w->path);
	if (!w->open || !w->path)
		return error_set(err, "out of memory for %zu places", w->tree->node_count);
	/* Some readers leave the file behind the events. */
	json_stream_raw(w->out, "{\"traceEvents\":[");
	w->before = "\n";
	put_threads(w);
	put_phases(w);
	put_all_slices(w);
	json_stream_raw(w->out, "],\n\"stackFrames\":{");
	put_stack_frames(w);
	json_stream_raw(w->out, "},\n\"samples\":[");
	w->before = "\n";
	for (size_t i = 0; i < s->thread_count; i++)
		put_samples(w, s->threads[i]);
	json_stream_raw(w->out, "],\n\"otherData\":{\"creator\":\"assay " ASSAY_VERSION "\",\"command\":");
	json_stream_text(w->out, w->in->command);
	json_stream_raw(w->out, ",\"weight_ns\":");
	json_stream_number(w->out, s->period_ns);
	json_stream_raw(w->out, ",\"slices\":");
	json_stream_text(w->out, w->innermost_only ? "innermost functions" : "whole stacks");
	json_stream_raw(w->out, "}}\n");
	return w->name.failed || w->cut.failed ? error_set(err, "out of memory for a name") : EXPORT_OK;
}

int export_chrome(const struct export_input *in, FILE *out, struct error *err)
{
	CLEANUP(export_samples_release) struct export_samples samples;
	CLEANUP(export_tree_release) struct export_tree tree;
	CLEANUP(writing_release) struct writing w = {
		.tree = &tree, .p = in->profile, .samples = &samples, .in = in, .out = out};
	int got;

	export_samples_init(&samples);
	export_tree_init(&tree);
	buf_init(&w.name);
	buf_init(&w.cut);
	got = export_samples_choose(&samples, in, err);
	if (got == EXPORT_OK)
		got = export_tree_build(&tree, in->profile, &samples, in->by_line, err);
	return got == EXPORT_OK ? put_all(&w, err) : got;
}
