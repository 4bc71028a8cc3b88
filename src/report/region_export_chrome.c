/* Trace events: a process per rank, a thread per thread, a complete event ("X") per call. Calls that overlap others of
 * their thread, which no viewer can show as complete events, are asynchronous ones ("b" and "e").
 *
 * More calls than fit in memory are written as they lie in the file, all of them as complete events. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "report/json_stream.h"
#include "report/region_timeline.h"

struct writing {
	const struct region_export *e;
	const struct regions *regions;
	FILE *out;
	const char *before; /* punctuation before the next event */
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

static void put_call(struct writing *w, const struct timeline_call *c)
{
	const char *name = w->regions->names[c->region];

	if (!c->lane) {
		begin_event(w, "X", c->rank, c->thread);
		put_time(w, ",\"ts\":", c->start, w->e->zero);
		put_time(w, ",\"dur\":", c->end, c->start);
		json_stream_raw(w->out, ",\"cat\":\"region\",\"name\":");
		json_stream_text(w->out, name);
		json_stream_raw(w->out, "}");
		return;
	}
	w->overlapping++;
	for (int ends = 0; ends < 2; ends++) {
		begin_event(w, ends ? "e" : "b", c->rank, c->thread);
		put_time(w, ",\"ts\":", ends ? c->end : c->start, w->e->zero);
		json_stream_raw(w->out, ",\"cat\":\"region\",\"id\":");
		json_stream_number(w->out, w->overlapping);
		json_stream_raw(w->out, ",\"name\":");
		json_stream_text(w->out, name);
		json_stream_raw(w->out, "}");
	}
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

static int put_block(void *context, unsigned worker, const struct region_block *block, struct error *err)
{
	struct writing *w = context;
	const struct region_part *part = &w->regions->parts[block->part];

	(void)worker;
	for (size_t i = 0; i < block->n; i++) {
		struct timeline_call c = {
			.start = block->columns[REGION_START][i],
			.end = block->columns[REGION_END][i],
			.region = part->region,
			.rank = part->rank,
			.thread = (int32_t)block->columns[REGION_THREAD][i],
		};

		put_call(w, &c);
	}
	return ferror(w->out) ? error_set(err, "the events could not be written") : 0;
}

static int put_unsorted(struct writing *w, const bool *parts, struct error *err)
{
	struct region_scan scan = {.wanted = parts,
				   .columns = 1u << REGION_THREAD,
				   .workers = 1,
				   .block = put_block,
				   .context = w};

	warnings_add(w->e->warnings,
		     "More than %" PRIu64 " calls: they are written as they lie in the file, and calls of "
		     "one thread that overlap are not told apart.",
		     REGION_TIMELINE_CALLS_MAX);
	return region_file_scan(w->e->file, &scan, err);
}

static int put_sorted(struct writing *w, struct error *err)
{
	CLEANUP(region_timeline_release) struct region_timeline t;

	region_timeline_init(&t);
	if (region_timeline_read(&t, w->e, 2, err) < 0)
		return -1;
	for (size_t i = 0; i < t.count && !ferror(w->out); i++)
		put_call(w, &t.calls[i]);
	return 0;
}

int region_export_chrome(const struct region_export *e, FILE *out, struct error *err)
{
	struct writing w = {.e = e, .regions = region_file_regions(e->file), .out = out, .before = "\n"};
	CLEANUP(free_cleanup) bool *parts = region_export_parts(e);
	uint64_t calls = 0;
	int got;

	if (!parts)
		return error_set(err, "out of memory for %zu regions of ranks", w.regions->part_count);
	for (size_t i = 0; i < w.regions->part_count; i++)
		calls += parts[i] ? w.regions->parts[i].count : 0;
	json_stream_raw(out, "{\"traceEvents\":[");
	put_names(&w);
	got = calls > REGION_TIMELINE_CALLS_MAX ? put_unsorted(&w, parts, err) : put_sorted(&w, err);
	json_stream_raw(out, "],\n\"displayTimeUnit\":\"ns\",\"otherData\":{\"creator\":\"assay " ASSAY_VERSION
			     "\",\"zero_ns\":\"");
	fprintf(out, "%" PRId64, e->zero);
	json_stream_raw(out, "\"}}\n");
	return got;
}
