/* Trace events: a process per rank, a thread per thread, a complete event ("X") per call. Calls that overlap others of
 * their thread, which no viewer can show as complete events, are asynchronous ones ("b" and "e"). */
#include <inttypes.h>

#include "base/cleanup.h"
#include "report/json_stream.h"
#include "report/region_exporter.h"
#include "report/region_nest.h"

struct writing {
	const struct region_export *e;
	const struct regions *regions;
	FILE *out;
	const char *before;	     /* punctuation before the next event */
	struct region_stacks stacks; /* one, and what does not fit into it overlaps */
	uint32_t rank;
	int32_t thread;
	uint64_t overlapping;
};

/* Viewers take thread 0 for the idle one: indices are one higher here, and 0 is an unknown thread. */
static void begin_event(struct writing *w, const char *phase, uint32_t rank, int64_t thread)
{
	json_stream_raw(w->out, w->before);
	json_stream_raw(w->out, "{\"ph\":\"");
	json_stream_raw(w->out, phase);
	json_stream_raw(w->out, "\",\"pid\":");
	json_stream_number(w->out, rank);
	json_stream_raw(w->out, ",\"tid\":");
	json_stream_number(w->out, (uint64_t)(thread + 1));
	w->before = ",\n";
}

static void put_time(struct writing *w, const char *key, int64_t t, int64_t since)
{
	json_stream_raw(w->out, key);
	json_stream_us(w->out, (int64_t)((uint64_t)t - (uint64_t)since));
}

static void put_complete(struct writing *w, uint32_t rank, const struct region_call *c, const char *name)
{
	begin_event(w, "X", rank, c->thread);
	put_time(w, ",\"ts\":", c->start, w->e->zero);
	put_time(w, ",\"dur\":", c->end, c->start);
	json_stream_raw(w->out, ",\"cat\":\"region\",\"name\":");
	json_stream_text(w->out, name);
	json_stream_raw(w->out, "}");
}

static void put_overlapping(struct writing *w, uint32_t rank, const struct region_call *c, const char *name)
{
	w->overlapping++;
	for (int ends = 0; ends < 2; ends++) {
		begin_event(w, ends ? "e" : "b", rank, c->thread);
		put_time(w, ",\"ts\":", ends ? c->end : c->start, w->e->zero);
		json_stream_raw(w->out, ",\"cat\":\"region\",\"id\":");
		json_stream_number(w->out, w->overlapping);
		json_stream_raw(w->out, ",\"name\":");
		json_stream_text(w->out, name);
		json_stream_raw(w->out, "}");
	}
}

static int put_call(void *context, const struct region_call *c, struct error *err)
{
	struct writing *w = context;
	const struct region_part *part = &w->regions->parts[c->part];
	const char *name = w->regions->names[part->region];
	uint32_t stack;

	if (part->rank != w->rank || c->thread != w->thread)
		region_stacks_clear(&w->stacks);
	w->rank = part->rank;
	w->thread = c->thread;
	if (region_stacks_place(&w->stacks, c->start, c->end, &stack, err) < 0)
		return -1;
	if (stack == 0)
		put_complete(w, part->rank, c, name);
	else
		put_overlapping(w, part->rank, c, name);
	return ferror(w->out) ? error_set(err, "the events could not be written") : 0;
}

static void put_metadata(struct writing *w, const char *what, uint32_t rank, int64_t thread, const char *name)
{
	begin_event(w, "M", rank, thread);
	json_stream_raw(w->out, ",\"name\":\"");
	json_stream_raw(w->out, what);
	json_stream_raw(w->out, "\",\"args\":{\"name\":");
	json_stream_text(w->out, name);
	json_stream_raw(w->out, "}}");
}

static void put_names(struct writing *w)
{
	const struct regions *r = w->regions;

	for (size_t i = 0; i < r->rank_count; i++) {
		char name[32];

		if (!region_query_takes_rank(w->e->query, r->ranks[i]))
			continue;
		snprintf(name, sizeof name, "rank %" PRIu32, r->ranks[i]);
		put_metadata(w, "process_name", r->ranks[i], -1, name);
		begin_event(w, "M", r->ranks[i], -1);
		json_stream_raw(w->out, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":");
		json_stream_number(w->out, r->ranks[i]);
		json_stream_raw(w->out, "}}");
	}
	for (size_t i = 0; i < r->thread_count; i++) {
		const struct region_thread_row *t = &r->threads[i];

		if (t->index >= 0 && region_query_takes_rank(w->e->query, t->rank))
			put_metadata(w, "thread_name", t->rank, t->index, t->name);
	}
}

int region_export_chrome(const struct region_export *e, FILE *out, struct error *err)
{
	struct writing w = {.e = e, .regions = region_file_regions(e->file), .out = out, .before = "\n"};
	struct region_visit visit = {
		.from = INT64_MIN, .to = INT64_MAX, .columns = 1u << REGION_CALL, .call = put_call, .context = &w};
	CLEANUP(region_order_release) struct region_order order;
	int got;

	region_order_init(&order);
	if (region_order_by_thread(&order, e->file, e->wanted, err) < 0 || region_stacks_init(&w.stacks, 1, err) < 0)
		return -1;
	json_stream_raw(out, "{\"traceEvents\":[");
	put_names(&w);
	got = region_order_visit(&order, &visit, err);
	json_stream_raw(out, "],\n\"displayTimeUnit\":\"ns\",\"otherData\":{\"creator\":\"assay " ASSAY_VERSION
			     "\",\"zero_ns\":\"");
	fprintf(out, "%" PRId64, e->zero);
	json_stream_raw(out, "\"}}\n");
	region_stacks_release(&w.stacks);
	return got;
}
