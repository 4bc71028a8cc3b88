#include "report/spy_report.h"

#include <inttypes.h>
#include <math.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "base/units.h"
#include "base/utf8.h"
#include "base/wrap.h"

#define NAME_COLUMNS 60
#define TEXT_COLUMNS 100
#define INDENT 2

static struct units_text since(const struct spy_result *r, int64_t t)
{
	return units_seconds((double)(t - r->begin) / (double)NS_PER_S);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void put_head(const struct spy_result *r, const struct spy_subject *s, bool colour, struct buf *out)
{
	buf_puts(out, colour ? "\033[1m" : "");
	utf8_append_line(out, s->name, NAME_COLUMNS);
	buf_printf(out, "%s (pid %d%s): %s, %" PRIu64 " reading%s, one every %s", colour ? "\033[0m" : "", (int)s->pid,
		   s->tree ? " and its descendants" : "", since(r, r->end).text, r->ticks, plural(r->ticks),
		   units_seconds((double)s->delay_ns / (double)NS_PER_S).text);
	if (r->late_ticks)
		buf_printf(out, " (%" PRIu64 " late)", r->late_ticks);
	buf_puts(out, r->how == SPY_GONE ? ", until it ended\n" : "; it lives on\n");
}

static void put_row(struct table *t, const struct spy_result *r, const char *name, const struct monitor *m)
{
	table_cell(t, "%s", name);
	table_cell(t, "%s", units_bytes((double)m->begin).text);
	table_cell(t, "%s", units_bytes((double)m->end).text);
	table_cell(t, "%s", units_bytes((double)m->peak).text);
	table_cell(t, "%s", since(r, m->peak_at).text);
	table_cell(t, "%s", units_bytes(monitor_average(m)).text);
	table_cell(t, "%" PRIu64, m->n);
}

static void put_table(const struct spy_result *r, struct buf *out)
{
	static const char *const headings[] = {"", "begin", "end", "largest", "at", "average", "n"};
	CLEANUP(table_release) struct table t;
	bool any = false;

	table_init(&t, sizeof headings / sizeof *headings);
	for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
		table_cell(&t, "%s", headings[i]);
	for (size_t i = 0; i < SPY_RESOURCES; i++) {
		if (!r->resources[i].n)
			continue;
		put_row(&t, r, spy_resource_names[i], &r->resources[i]);
		any = true;
	}
	for (size_t i = 0; i < r->gpu_count; i++) {
		char name[24];

		snprintf(name, sizeof name, "gpu%zu", i);
		if (!r->gpus[i].n)
			continue;
		put_row(&t, r, name, &r->gpus[i]);
		any = true;
	}
	if (any)
		table_print(&t, "lrrrrrr", "  ", out);
}

/* Why the peak may have been larger than what is known. */
static void put_doubt(const struct spy_result *r, const struct spy_subject *s, struct buf *out)
{
	if (s->tree && r->peak_above >= 0)
		buf_printf(out, "; at most %s, the sum of what each process had at its own peak",
			   units_bytes((double)r->peak_above).text);
	else if (r->peak_above >= 0)
		buf_printf(out, "; at most %s, the kernel's high-water mark, which may be older than this watch",
			   units_bytes((double)r->peak_above).text);
	else
		buf_printf(out, "; nothing tells %s between the readings",
			   !r->peak_from_mark ? "what was" : s->tree ? "what all had together" : "what more there was");
}

void spy_peak_words(const struct spy_result *r, const struct spy_subject *s, struct buf *out)
{
	const struct monitor *rss = &r->resources[SPY_RSS];

	if (r->peak < 0) {
		buf_puts(out, "peak not known: nothing was read");
		return;
	}
	buf_printf(out, "peak %s%s, ", r->peak_exact ? "" : "at least ", units_bytes((double)r->peak).text);
	if (!r->peak_from_mark) {
		buf_printf(out, "from a reading at %s", since(r, rss->peak_at).text);
		if (r->peak_exact)
			buf_puts(out, "; by the kernel's high-water mark there was no larger one in between");
		else
			put_doubt(r, s, out);
		return;
	}
	buf_puts(out, "from the kernel's high-water mark: ");
	if (!rss->n)
		buf_puts(out, "no reading came before its end");
	else if (rss->peak < r->peak)
		buf_printf(out, "between two readings; the largest reading is %s",
			   units_bytes((double)rss->peak).text);
	else
		buf_puts(out, "as large as the largest reading");
	if (!r->peak_exact)
		put_doubt(r, s, out);
}

static void put_processes(const struct spy_result *r, struct buf *out)
{
	buf_printf(out, "%" PRIu64 " process%s", r->processes, r->processes == 1 ? "" : "es");
	if (r->processes > 1 && !r->resources[SPY_PSS].n)
		buf_puts(out, "; what several of them share is counted for each (--pss divides it)");
	if (r->unseen)
		buf_printf(out, "; at least %" PRIu64 " more ended before anything of them was read", r->unseen);
}

static void put_wrapped(const char *text, size_t columns, struct buf *out)
{
	buf_puts(out, "  ");
	wrap_append(out, text, INDENT, 2 * INDENT, columns);
}

void spy_text(const struct spy_result *r, const struct spy_subject *s, bool colour, size_t columns, struct buf *out)
{
	CLEANUP(buf_release) struct buf line;

	buf_init(&line);
	columns = columns ? columns : TEXT_COLUMNS;
	put_head(r, s, colour, out);
	put_table(r, out);
	spy_peak_words(r, s, &line);
	put_wrapped(line.text, columns, out);
	if (r->processes > 1 || r->unseen) {
		buf_clear(&line);
		put_processes(r, &line);
		put_wrapped(line.text, columns, out);
	}
	for (size_t i = 0; i < r->gpu_count; i++) {
		buf_clear(&line);
		buf_printf(&line, "gpu%zu is %s, used by all programs on it", i, r->gpu_names[i]);
		put_wrapped(line.text, columns, out);
	}
	for (size_t i = 0; i < r->warnings.count; i++) {
		buf_clear(&line);
		buf_puts(&line, "note: ");
		buf_puts(&line, r->warnings.texts[i]);
		put_wrapped(line.text, columns, out);
	}
	if (r->warnings.lost)
		buf_printf(out, "  ... and %zu more such notes\n", r->warnings.lost);
}
