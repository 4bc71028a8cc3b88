/* The table of regions as JSON: times in ns, null where not known; beside it what the file says about the run. */
#include <inttypes.h>
#include <math.h>

#include "report/json_stream.h"
#include "report/region_reports.h"

static void put_integer(FILE *out, const char *key, int64_t value)
{
	fprintf(out, ",\"%s\":%" PRId64, key, value);
}

static void put_count(FILE *out, const char *key, uint64_t value)
{
	fprintf(out, ",\"%s\":%" PRIu64, key, value);
}

static void put_real(FILE *out, const char *key, double value)
{
	fprintf(out, ",\"%s\":", key);
	json_stream_real(out, value);
}

/* Nanoseconds without rounding; null where no call has a time. */
static void put_ns(FILE *out, const char *key, const struct region_row *row, int64_t value)
{
	if (row->timed)
		put_integer(out, key, value);
	else
		fprintf(out, ",\"%s\":null", key);
}

static void put_row(const struct region_row *row, bool threads, FILE *out)
{
	fputs("{\"name\":", out);
	json_stream_text(out, row->name);
	if (row->rank >= 0)
		put_integer(out, "rank", row->rank);
	if (threads && row->thread >= 0)
		put_integer(out, "thread", row->thread);
	else if (threads)
		fputs(",\"thread\":null", out);
	put_count(out, "calls", row->calls);
	put_count(out, "timed", row->timed);
	put_count(out, "dropped", row->dropped);
	put_ns(out, "total", row, row->total);
	put_real(out, "exclusive", row->exclusive);
	put_real(out, "avg", row->avg);
	put_ns(out, "min", row, row->min);
	put_ns(out, "max", row, row->max);
	put_real(out, "std", row->std);
	put_real(out, "p50", row->p50);
	put_real(out, "p95", row->p95);
	put_real(out, "p99", row->p99);
	fprintf(out, ",\"approximate\":%s", row->approximate ? "true" : "false");
	put_real(out, "imbalance", row->timed ? row->imbalance : NAN);
	put_real(out, "share", row->share);
	put_count(out, "ranks_with", row->ranks_with);
	put_count(out, "ranks_selected", row->ranks_selected);
	fputs(",\"ranks\":[", out);
	for (uint64_t i = 0; i < row->ranks_with; i++)
		fprintf(out, "%s%" PRIu32, i ? "," : "", row->ranks[i]);
	putc(']', out);
	put_count(out, "gpu_calls", row->gpu_calls);
	if (row->gpu_calls)
		put_integer(out, "gpu_total", row->gpu_total);
	else
		fputs(",\"gpu_total\":null", out);
	put_real(out, "gpu_avg", row->gpu_avg);
	put_ns(out, "first_start", row, row->first_start);
	put_ns(out, "last_end", row, row->last_end);
	putc('}', out);
}

static void put_texts(char *const *texts, size_t count, bool first, FILE *out)
{
	for (size_t i = 0; i < count; i++) {
		fputs(i || !first ? ",\n  " : "\n  ", out);
		json_stream_text(out, texts[i]);
	}
}

static void put_troubles(const struct regions *r, FILE *out)
{
	fputs(" \"troubles\":[", out);
	for (size_t i = 0; i < r->trouble_count; i++) {
		const struct region_trouble_count *trouble = &r->troubles[i];

		fputs(i ? ",\n  {\"kind\":" : "\n  {\"kind\":", out);
		json_stream_text(out, region_trouble_name(trouble->kind));
		put_count(out, "rank", trouble->rank);
		put_count(out, "count", trouble->count);
		fputs(",\"example\":", out);
		json_stream_text(out, trouble->example);
		putc('}', out);
	}
	fputs("],\n", out);
}

static void put_threads(const struct regions *r, FILE *out)
{
	fputs(" \"threads\":[", out);
	for (size_t i = 0; i < r->thread_count; i++) {
		const struct region_thread_row *t = &r->threads[i];

		fputs(i ? ",\n  {\"name\":" : "\n  {\"name\":", out);
		json_stream_text(out, t->name);
		put_count(out, "rank", t->rank);
		put_integer(out, "index", t->index);
		put_integer(out, "native_id", t->native_id);
		put_integer(out, "start", t->start);
		put_integer(out, "end", t->end);
		put_integer(out, "cpu", t->cpu);
		putc('}', out);
	}
	fputs("],\n", out);
}

int region_table_json(const struct region_table *t, const struct regions *r, FILE *out, struct error *err)
{
	bool threads = false;

	for (size_t i = 0; i < t->count; i++)
		threads |= t->rows[i].thread >= 0;
	fputs("{\"file\":", out);
	json_stream_text(out, t->path);
	put_count(out, "layout", r->layout);
	put_integer(out, "wall", t->wall);
	put_count(out, "ranks_selected", t->ranks_selected);
	fputs(",\n \"ranks\":[", out);
	for (size_t i = 0; i < r->rank_count; i++)
		fprintf(out, "%s%" PRIu32, i ? "," : "", r->ranks[i]);
	fputs("],\n \"regions\":[", out);
	for (size_t i = 0; i < t->count; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		put_row(&t->rows[i], threads, out);
	}
	fputs("],\n", out);
	put_troubles(r, out);
	put_threads(r, out);
	fputs(" \"metadata\":{", out);
	for (size_t i = 0; i < r->fact_count; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		json_stream_text(out, r->facts[i].key);
		putc(':', out);
		json_stream_text(out, r->facts[i].value);
	}
	fputs("},\n \"notes\":[", out);
	put_texts(r->notes, r->note_count, true, out);
	put_texts(t->notes, t->note_count, r->note_count == 0, out);
	fputs("]}\n", out);
	return ferror(out) ? error_set(err, "the table cannot be written") : 0;
}
