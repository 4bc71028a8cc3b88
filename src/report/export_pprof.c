/* pprof's profile.proto, compressed. Locations keep their addresses, lines and inlined functions, which this format has
 * all of; samples carry thread, process and phase as labels (`go tool pprof -tagfocus phase=decode`).
 *
 * https://github.com/google/pprof/blob/main/proto/profile.proto numbers the fields. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/export_tree.h"
#include "report/gzip_stream.h"
#include "report/protobuf.h"

enum profile_field {
	SAMPLE_TYPE = 1,
	SAMPLE = 2,
	MAPPING = 3,
	LOCATION = 4,
	FUNCTION = 5,
	STRING_TABLE = 6,
	DURATION_NANOS = 10,
	PERIOD_TYPE = 11,
	PERIOD = 12,
	COMMENT = 13,
	DEFAULT_SAMPLE_TYPE = 14,
};
enum value_type_field { TYPE = 1, UNIT = 2 };
enum sample_field { LOCATION_ID = 1, VALUE = 2, LABEL = 3 };
enum label_field { KEY = 1, STR = 2, NUM = 3 };
enum mapping_field { MAPPING_ID = 1, START = 2, LIMIT = 3, FILENAME = 5, BUILD_ID = 6, HAS_FUNCTIONS = 7,
		     HAS_FILENAMES = 8, HAS_LINES = 9, HAS_INLINES = 10 };
enum location_field { ID = 1, MAPPING_OF = 2, ADDRESS = 3, LINE = 4 };
enum line_field { FUNCTION_ID = 1, LINE_NUMBER = 2 };
enum function_field { FUNCTION_NUMBER = 1, NAME = 2, SYSTEM_NAME = 3, FILE_NAME = 4, START_LINE = 5 };

/* Ids are positions plus 1, since 0 means none. */
struct writing {
	const struct profile *p;
	const struct export_samples *samples;
	const struct export_input *in;
	struct gzip_stream gzip;
	struct buf message, inner, innermost, scratch; /* being built, reused */
	struct buf strings;                            /* the table, in its final form */
	uint64_t string_count;
	bool *node_used, *location_used, *function_used, *module_used;
	bool no_stack_used;
	uint64_t *texts; /* of names that labels repeat: by thread, then by image, then by phase; 0: not given yet */
	uint64_t label_thread, label_tid, label_process, label_pid, label_phase;
	struct export_sum *sums;
	size_t sum_count;
};

static void writing_release(struct writing *w)
{
	buf_release(&w->message);
	buf_release(&w->inner);
	buf_release(&w->innermost);
	buf_release(&w->scratch);
	buf_release(&w->strings);
	free(w->node_used);
	free(w->location_used);
	free(w->function_used);
	free(w->module_used);
	free(w->texts);
	free(w->sums);
}

/* Adds a text to the table; what is not UTF-8 in it would make other readers refuse the file. */
static uint64_t string_id(struct writing *w, const char *text)
{
	CLEANUP(buf_release) struct buf clean;

	buf_init(&clean);
	if (!text || !*text)
		return 0;
	utf8_append_clean(&clean, text, strlen(text));
	protobuf_bytes(&w->strings, STRING_TABLE, clean.text, clean.length);
	w->strings.failed |= clean.failed;
	return w->string_count++;
}

static void put_field(struct writing *w, unsigned field, const struct buf *message)
{
	CLEANUP(buf_release) struct buf head;

	buf_init(&head);
	protobuf_varint(&head, field << 3 | 2);
	protobuf_varint(&head, message->length);
	gzip_stream_put(&w->gzip, head.text, head.length);
	gzip_stream_put(&w->gzip, message->text, message->length);
}

static void put_value_type(struct writing *w, unsigned field, uint64_t type, uint64_t unit)
{
	buf_clear(&w->message);
	protobuf_number(&w->message, TYPE, type);
	protobuf_number(&w->message, UNIT, unit);
	put_field(w, field, &w->message);
}

static void put_head(struct writing *w)
{
	uint64_t count, cpu, ns;

	protobuf_bytes(&w->strings, STRING_TABLE, "", 0);
	w->string_count = 1;
	count = string_id(w, "count");
	cpu = string_id(w, "cpu");
	ns = string_id(w, "nanoseconds");
	w->label_thread = string_id(w, "thread");
	w->label_tid = string_id(w, "tid");
	w->label_process = string_id(w, "process");
	w->label_pid = string_id(w, "pid");
	w->label_phase = string_id(w, "phase");
	put_value_type(w, SAMPLE_TYPE, string_id(w, "samples"), count);
	put_value_type(w, SAMPLE_TYPE, cpu, ns);
	put_value_type(w, PERIOD_TYPE, cpu, ns);
	buf_clear(&w->message);
	protobuf_number(&w->message, PERIOD, w->samples->period_ns);
	if (w->in->end > w->in->start)
		protobuf_number(&w->message, DURATION_NANOS, (uint64_t)w->in->end - (uint64_t)w->in->start);
	protobuf_number(&w->message, DEFAULT_SAMPLE_TYPE, cpu);
	protobuf_number(&w->message, COMMENT, string_id(w, w->in->command));
	gzip_stream_put(&w->gzip, w->message.text, w->message.length);
}

/* Where in the phases a sample lies, as part of its key: the position plus 1, 0 before the first one. */
static uint32_t phase_of(const struct writing *w, const struct profile_sample *s)
{
	size_t phase = w->in->phases->count ? phases_at(w->in->phases, s->t) : SIZE_MAX;

	return phase == SIZE_MAX ? 0 : (uint32_t)phase + 1;
}

static int sum_up(struct writing *w, struct error *err)
{
	const struct profile *p = w->p;
	size_t functions = export_no_stack(p) + (size_t)1;

	w->sums = calloc(w->samples->count, sizeof *w->sums);
	w->node_used = calloc(p->node_count + 1, sizeof *w->node_used);
	w->location_used = calloc(p->location_count + 1, sizeof *w->location_used);
	w->function_used = calloc(functions, sizeof *w->function_used);
	w->module_used = calloc(p->module_count + 1, sizeof *w->module_used);
	w->texts = calloc(p->thread_count + p->image_count + w->in->phases->count + 1, sizeof *w->texts);
	if (!w->sums || !w->node_used || !w->location_used || !w->function_used || !w->module_used || !w->texts)
		return error_set(err, "out of memory for %zu samples", w->samples->count);
	for (size_t i = 0; i < w->samples->count; i++) {
		const struct profile_sample *s = &p->samples[w->samples->items[i]];

		w->sums[i] = (struct export_sum){(uint64_t)s->thread << 32 | phase_of(w, s), s->node, s->weight};
	}
	w->sum_count = export_sums_join(w->sums, w->samples->count);
	export_mark_nodes(p, w->samples, w->node_used);
	for (size_t i = 1; i < p->node_count; i++)
		if (w->node_used[i] && !export_is_sampler(p, p->locations[p->nodes[i].location].module))
			w->location_used[p->nodes[i].location] = true;
	return 0;
}

static void put_line(struct writing *w, uint32_t function, uint32_t line)
{
	w->function_used[function] = true;
	buf_clear(&w->inner);
	protobuf_number(&w->inner, FUNCTION_ID, (uint64_t)function + 1);
	protobuf_number(&w->inner, LINE_NUMBER, line);
	protobuf_bytes(&w->message, LINE, w->inner.text, w->inner.length);
}

/* The last location is that of samples without a stack. */
static void put_locations(struct writing *w)
{
	const struct profile *p = w->p;

	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];

		if (!w->location_used[i])
			continue;
		w->module_used[l->module] = true;
		buf_clear(&w->message);
		protobuf_number(&w->message, ID, i + 1);
		protobuf_number(&w->message, MAPPING_OF, (uint64_t)l->module + 1);
		protobuf_number(&w->message, ADDRESS, l->address);
		for (uint32_t j = 0; j < l->count; j++)
			put_line(w, p->frames[l->first + j].function, p->frames[l->first + j].line);
		if (!l->count)
			put_line(w, export_unnamed(p, l->module), 0);
		put_field(w, LOCATION, &w->message);
	}
	if (!w->no_stack_used)
		return;
	buf_clear(&w->message);
	protobuf_number(&w->message, ID, p->location_count + 1);
	put_line(w, export_no_stack(p), 0);
	put_field(w, LOCATION, &w->message);
}

static void put_functions(struct writing *w)
{
	for (uint32_t i = 0; i <= export_no_stack(w->p); i++) {
		uint64_t name;

		if (!w->function_used[i])
			continue;
		name = string_id(w, export_function_name(w->p, i, &w->scratch));
		buf_clear(&w->message);
		protobuf_number(&w->message, FUNCTION_NUMBER, (uint64_t)i + 1);
		protobuf_number(&w->message, NAME, name);
		protobuf_number(&w->message, SYSTEM_NAME, name);
		protobuf_number(&w->message, FILE_NAME, string_id(w, export_function_file(w->p, i)));
		protobuf_number(&w->message, START_LINE, export_function_line(w->p, i));
		put_field(w, FUNCTION, &w->message);
	}
}

static void put_mapping(struct writing *w, size_t module, uint64_t limit)
{
	const struct profile_module *m = &w->p->modules[module];
	uint64_t has_names = m->kind != PROFILE_UNKNOWN;

	buf_clear(&w->scratch);
	for (size_t i = 0; i < m->build_id_length && i < sizeof m->build_id; i++)
		buf_printf(&w->scratch, "%02x", m->build_id[i]);
	buf_clear(&w->message);
	protobuf_number(&w->message, MAPPING_ID, module + 1);
	protobuf_number(&w->message, LIMIT, limit);
	protobuf_number(&w->message, FILENAME, string_id(w, *m->path ? m->path : m->name));
	protobuf_number(&w->message, BUILD_ID, string_id(w, w->scratch.text));
	/* Names were found when the run ended: a reader that looked for more would take today's file for it. */
	protobuf_number(&w->message, HAS_FUNCTIONS, has_names);
	protobuf_number(&w->message, HAS_FILENAMES, has_names);
	protobuf_number(&w->message, HAS_LINES, has_names);
	protobuf_number(&w->message, HAS_INLINES, has_names);
	put_field(w, MAPPING, &w->message);
}

/* A reader takes the first mapping for the program. Addresses are the file's own, so that each mapping begins at 0. */
static int put_mappings(struct writing *w, struct error *err)
{
	const struct profile *p = w->p;
	CLEANUP(free_cleanup) uint64_t *limits = calloc(p->module_count + 1, sizeof *limits);
	uint32_t busiest = p->threads[w->samples->threads[0]].image;
	size_t program = SIZE_MAX;

	if (!limits)
		return error_set(err, "out of memory for %zu modules", p->module_count);
	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];

		if (w->location_used[i] && l->address >= limits[l->module])
			limits[l->module] = l->address < UINT64_MAX ? l->address + 1 : l->address;
	}
	for (size_t i = 0; i < p->module_count && program == SIZE_MAX; i++)
		if (w->module_used[i] && strcmp(p->modules[i].path, p->images[busiest].exe) == 0)
			program = i;
	if (program != SIZE_MAX)
		put_mapping(w, program, limits[program]);
	for (size_t i = 0; i < p->module_count; i++)
		if (w->module_used[i] && i != program)
			put_mapping(w, i, limits[i]);
	return 0;
}

static void put_label(struct writing *w, uint64_t key, uint64_t text, uint64_t number)
{
	buf_clear(&w->inner);
	protobuf_number(&w->inner, KEY, key);
	protobuf_number(&w->inner, STR, text);
	protobuf_number(&w->inner, NUM, number);
	protobuf_bytes(&w->message, LABEL, w->inner.text, w->inner.length);
}

/* The name's id, given at its first use. */
static uint64_t text_of(struct writing *w, size_t at, const char *name)
{
	if (!w->texts[at])
		w->texts[at] = string_id(w, name);
	return w->texts[at];
}

static void put_labels(struct writing *w, uint64_t key)
{
	const struct profile *p = w->p;
	uint32_t thread = (uint32_t)(key >> 32), phase = (uint32_t)key;
	const struct profile_thread *t = &p->threads[thread];
	const struct profile_image *image = &p->images[t->image];
	size_t images = p->thread_count, phases = images + p->image_count;

	if (*t->name)
		put_label(w, w->label_thread, text_of(w, thread, t->name), 0);
	put_label(w, w->label_tid, 0, (uint64_t)t->tid);
	put_label(w, w->label_process, text_of(w, images + t->image, export_process_name(image)), 0);
	put_label(w, w->label_pid, 0, (uint64_t)image->pid);
	if (phase)
		put_label(w, w->label_phase, text_of(w, phases + phase, w->in->phases->items[phase - 1].name), 0);
}

static void put_samples(struct writing *w)
{
	const struct profile *p = w->p;

	for (size_t i = 0; i < w->sum_count && !ferror(w->gzip.out); i++) {
		const struct export_sum *s = &w->sums[i];

		buf_clear(&w->innermost);
		for (uint32_t at = s->node; at && at != PROFILE_NONE; at = p->nodes[at].parent)
			if (w->location_used[p->nodes[at].location])
				protobuf_varint(&w->innermost, (uint64_t)p->nodes[at].location + 1);
		if (!w->innermost.length) {
			w->no_stack_used = true;
			protobuf_varint(&w->innermost, p->location_count + 1);
		}
		buf_clear(&w->message);
		protobuf_bytes(&w->message, LOCATION_ID, w->innermost.text, w->innermost.length);
		buf_clear(&w->innermost);
		protobuf_varint(&w->innermost, s->weight);
		protobuf_varint(&w->innermost, s->weight * w->samples->period_ns);
		protobuf_bytes(&w->message, VALUE, w->innermost.text, w->innermost.length);
		put_labels(w, s->key);
		put_field(w, SAMPLE, &w->message);
	}
}

static int put_all(struct writing *w, FILE *out, struct error *err)
{
	int got;

	if (gzip_stream_begin(&w->gzip, out, err) < 0)
		return EXPORT_TROUBLE;
	put_head(w);
	put_samples(w);
	put_locations(w);
	put_functions(w);
	got = put_mappings(w, err);
	gzip_stream_put(&w->gzip, w->strings.text, w->strings.length);
	gzip_stream_end(&w->gzip);
	if (got == 0 && (w->message.failed || w->inner.failed || w->innermost.failed || w->scratch.failed ||
			 w->strings.failed))
		got = error_set(err, "out of memory for a message");
	return got;
}

int export_pprof(const struct export_input *in, FILE *out, struct error *err)
{
	CLEANUP(export_samples_release) struct export_samples samples;
	CLEANUP(writing_release) struct writing w = {.p = in->profile, .samples = &samples, .in = in};
	int got;

	export_samples_init(&samples);
	buf_init(&w.message);
	buf_init(&w.inner);
	buf_init(&w.innermost);
	buf_init(&w.scratch);
	buf_init(&w.strings);
	got = export_samples_choose(&samples, in, err);
	if (got == EXPORT_OK)
		got = sum_up(&w, err);
	return got == EXPORT_OK ? put_all(&w, out, err) : got;
}
