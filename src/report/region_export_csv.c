/* One line per call, in the order of the file. Times are ns of CLOCK_MONOTONIC, as the file has them; a column that the
 * file lacks is left out, a value that is not known is empty. */
#include <inttypes.h>
#include <string.h>

#include "report/json_stream.h"
#include "report/region_exporter.h"

static const struct {
	enum region_column column;
	const char *name;
} optional[] = {
	{REGION_THREAD, "thread"}, {REGION_CALL, "call"}, {REGION_PARENT, "parent"},
	{REGION_GPU, "gpu_ns"},    {REGION_TASK, "task"}, {REGION_AWAIT, "await_ns"},
};

struct writing {
	const struct regions *regions;
	FILE *out;
};

/* Quoted where RFC 4180 asks for it; quotes are doubled. */
static void put_field(FILE *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs_unlocked(text, out);
		return;
	}
	putc_unlocked('"', out);
	for (; *text; text++) {
		if (*text == '"')
			putc_unlocked('"', out);
		putc_unlocked(*text, out);
	}
	putc_unlocked('"', out);
}

static void put_integer(FILE *out, int64_t value)
{
	if (value < 0)
		putc_unlocked('-', out);
	json_stream_number(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static bool has(const struct regions *r, size_t i)
{
	return r->columns & 1u << optional[i].column;
}

static int put_block(void *context, unsigned worker, const struct region_block *block, struct error *err)
{
	struct writing *w = context;
	const struct region_part *part = &w->regions->parts[block->part];

	(void)worker;
	for (size_t i = 0; i < block->n; i++) {
		int64_t start = block->columns[REGION_START][i], end = block->columns[REGION_END][i];

		json_stream_number(w->out, part->rank);
		putc_unlocked(',', w->out);
		put_field(w->out, w->regions->names[part->region]);
		putc_unlocked(',', w->out);
		put_integer(w->out, start);
		putc_unlocked(',', w->out);
		put_integer(w->out, end);
		putc_unlocked(',', w->out);
		put_integer(w->out, (int64_t)((uint64_t)end - (uint64_t)start));
		for (size_t k = 0; k < sizeof optional / sizeof *optional; k++) {
			if (!has(w->regions, k))
				continue;
			putc_unlocked(',', w->out);
			if (block->columns[optional[k].column][i] >= 0)
				put_integer(w->out, block->columns[optional[k].column][i]);
		}
		putc_unlocked('\n', w->out);
	}
	return ferror(w->out) ? error_set(err, "the lines could not be written") : 0;
}

int region_export_csv(const struct region_export *e, FILE *out, struct error *err)
{
	struct writing w = {.regions = region_file_regions(e->file), .out = out};
	struct region_scan scan = {.wanted = e->wanted, .workers = 1, .block = put_block, .context = &w};

	json_stream_raw(out, "rank,region,start_ns,end_ns,duration_ns");
	for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
		if (!has(w.regions, i))
			continue;
		scan.columns |= 1u << optional[i].column;
		putc_unlocked(',', out);
		json_stream_raw(out, optional[i].name);
	}
	putc_unlocked('\n', out);
	return region_file_scan(e->file, &scan, err);
}
