#include "report/markdown.h"

#include <math.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "base/utf8.h"
#include "report/hotspots_short.h"
#include "report/markdown_text.h"
#include "report/tables.h"

#define ROWS_SHOWN 60
#define LINE_COLUMNS 4096

/* Text from elsewhere in a line of prose: what Markdown would take for markup is made plain. */
static void put_plain(struct buf *out, const char *text)
{
	markdown_put_text(out, text, "\\`*_{}[]<>#|", LINE_COLUMNS);
}

/* As code, between more backquotes than stand in it. */
static void put_code(struct buf *out, const char *text)
{
	CLEANUP(buf_release) struct buf line;
	size_t longest = 0, here = 0;

	buf_init(&line);
	utf8_append_line(&line, text, LINE_COLUMNS);
	for (const char *c = line.text; *c; c++) {
		here = *c == '`' ? here + 1 : 0;
		longest = here > longest ? here : longest;
	}
	for (size_t i = 0; i <= longest; i++)
		buf_putc(out, '`');
	buf_printf(out, "%s%s%s", longest ? " " : "", line.text, longest ? " " : "");
	for (size_t i = 0; i <= longest; i++)
		buf_putc(out, '`');
}

typedef size_t fill(const struct run *run, size_t most, struct table *t, const char **ret_align);

/* `whole` has the rows that are left out. */
static void put_table(const struct run *run, const char *title, fill *fill_table, const char *whole, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	const char *align;
	size_t left_out = fill_table(run, ROWS_SHOWN, &t, &align);

	if (t.count == t.columns)
		return;
	buf_printf(out, "\n## %s\n\n", title);
	table_print_markdown(&t, align, out);
	if (left_out)
		buf_printf(out, "\n%zu more in %s.\n", left_out, whole);
}

static void put_rate(struct buf *out, const char *name, double rate, double deviation)
{
	if (isnan(rate))
		return;
	buf_printf(out, "- %s: %.2f tokens/s", name, rate);
	if (!isnan(deviation))
		buf_printf(out, " ± %.2f", deviation);
	buf_putc(out, '\n');
}

static void put_totals(const struct run *run, struct buf *out)
{
	double cpu = run->cpu_user_s + run->cpu_system_s;

	buf_printf(out, "- status: %s\n- wall: %s, CPU: %s", run_status_name(run->status),
		   units_seconds(run->wall_s).text, units_seconds(cpu).text);
	if (run->wall_s > 0 && !isnan(cpu))
		buf_printf(out, " (%.2f cores)", cpu / run->wall_s);
	buf_printf(out, "\n- memory peak: %s", units_bytes(run->rss_peak).text);
	if (*run->rss_kind)
		buf_printf(out, " (%s)", run->rss_kind);
	buf_printf(out, ", of it anonymous %s\n- processes: %s%s", units_bytes(run->anon_peak).text,
		   run->processes_exact ? "" : "at least ", units_count((double)run->processes).text);
	if (!isnan(run->whole.threads_max))
		buf_printf(out, ", threads at most %.0f", run->whole.threads_max);
	buf_putc(out, '\n');
	buf_printf(out, "- storage: read %s, written %s\n", units_bytes(run->whole.read_bytes).text,
		   units_bytes(run->whole.write_bytes).text);
	if (!isnan(run->cost_share))
		buf_printf(out, "- watching cost %s of one core and %s\n", units_percent(run->cost_share).text,
			   units_bytes(run->cost_max_rss).text);
	if (!run->has_engine)
		return;
	buf_printf(out, "- engine: %s\n", run->engine.engine);
	put_rate(out, "prefill", run->engine.prefill_tokens_per_s, run->engine.prefill_deviation);
	put_rate(out, "decode", run->engine.decode_tokens_per_s, run->engine.decode_deviation);
}

void markdown_print(const struct run *run, struct buf *out)
{
	buf_puts(out, "# ");
	put_plain(out, run->label ? run->label : "run");
	buf_puts(out, "\n\n");
	if (run->command_line) {
		put_code(out, run->command_line);
		buf_puts(out, "\n\n");
	}
	put_totals(run, out);
	put_table(run, "Phases", tables_phases, "run.json", out);
	put_table(run, "What limited each phase", tables_limits, "run.json", out);
	put_table(run, "Threads", tables_threads, "run.json", out);
	put_table(run, "Regions of the program", tables_regions, "regions.h5", out);
	hotspots_short(run, true, 0, out);
	if (run->movement_count)
		buf_puts(out, "\n## What moved\n\n");
	for (size_t i = 0; i < run->movement_count; i++) {
		buf_printf(out, "- %s: ", movement_level_name(run->movements[i].level));
		put_plain(out, run->movements[i].text);
		buf_putc(out, '\n');
	}
	if (run->warnings.count)
		buf_puts(out, "\n## Warnings\n\n");
	for (size_t i = 0; i < run->warnings.count; i++) {
		buf_puts(out, "- ");
		put_plain(out, run->warnings.texts[i]);
		buf_putc(out, '\n');
	}
}
