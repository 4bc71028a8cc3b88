#include "report/summary.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/table.h"
#include "base/units.h"
#include "base/utf8.h"
#include "base/wrap.h"
#include "report/hotspots_short.h"
#include "report/tables.h"

#define FOLD_UNSEEN 110 /* columns where no terminal says how many there are */
#define PHASES_SHOWN 12
#define LIMITS_SHOWN 6
#define MOVEMENTS_SHOWN 6
#define WARNINGS_SHOWN 5
#define REGIONS_SHOWN 8
#define TESTS_SHOWN 6
#define COMMAND_COLUMNS 90
#define WARNING_COLUMNS 400
#define PATH_COLUMNS 4096

static const char *const status_colours[] = {
	[RUN_OK] = "\033[32m",      [RUN_FAILED] = "\033[31m",      [RUN_SIGNAL] = "\033[31m",
	[RUN_TIMEOUT] = "\033[31m", [RUN_INTERRUPTED] = "\033[33m", [RUN_PARTIAL] = "\033[33m",
};

static void print_status(const struct run *run, bool colour, struct buf *out)
{
	buf_printf(out, "assay: %s%s%s", colour ? status_colours[run->status] : "", run_status_name(run->status),
		   colour ? "\033[0m" : "");
	if (run->status == RUN_TIMEOUT)
		buf_printf(out, " (after %s)", units_seconds(run->wall_s).text);
	else if (run->signo)
		buf_printf(out, " (%s)", strsignal(run->signo));
	else if (run->exit_code > 0)
		buf_printf(out, " (exit status %d)", run->exit_code);
	buf_puts(out, "  ");
	utf8_append_line(out, run->command_line ? run->command_line : "", COMMAND_COLUMNS);
	buf_putc(out, '\n');
}

static void print_totals(const struct run *run, struct buf *out)
{
	double cpu = run->cpu_user_s + run->cpu_system_s;

	buf_printf(out, "  wall %s   CPU %s (%s user, %s system", units_seconds(run->wall_s).text,
		   units_seconds(cpu).text, units_seconds(run->cpu_user_s).text, units_seconds(run->cpu_system_s).text);
	if (run->wall_s > 0 && !isnan(cpu))
		buf_printf(out, "; %.2f cores", cpu / run->wall_s);
	buf_printf(out, ")\n  memory peak %s", units_bytes(run->rss_peak).text);
	if (*run->rss_kind)
		buf_printf(out, " (%s)", run->rss_kind);
	buf_printf(out, ", of it anonymous %s\n", units_bytes(run->anon_peak).text);
	buf_printf(out, "  storage read %s, written %s   processes %s%s", units_bytes(run->whole.read_bytes).text,
		   units_bytes(run->whole.write_bytes).text, run->processes_exact ? "" : "at least ",
		   units_count((double)run->processes).text);
	if (!isnan(run->whole.threads_max))
		buf_printf(out, ", threads at most %.0f", run->whole.threads_max);
	buf_putc(out, '\n');
}

static void print_left_out(size_t count, const char *what, struct buf *out)
{
	if (count)
		buf_printf(out, "  ... and %zu more %s in run.json\n", count, what);
}

static void print_phases(const struct run *run, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	const char *align;
	size_t left_out = tables_phases(run, PHASES_SHOWN, &t, &align);

	buf_putc(out, '\n');
	table_print(&t, align, "  ", out);
	print_left_out(left_out, "phases", out);
}

static void print_limits(const struct run *run, size_t columns, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	const char *align;
	size_t left_out = tables_limits(run, LIMITS_SHOWN, &t, &align);

	if (t.count == t.columns)
		return;
	t.fold = columns ? columns : FOLD_UNSEEN;
	buf_putc(out, '\n');
	table_print(&t, align, "  ", out);
	print_left_out(left_out, "limits", out);
}

static void print_threads(const struct run *run, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	const char *align;

	tables_threads(run, LIMITS_SHOWN, &t, &align);
	if (t.count == t.columns || !(run->whole.threads_max > 1))
		return;
	buf_putc(out, '\n');
	table_print(&t, align, "  ", out);
}

static void print_regions(const struct run *run, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	const char *align;
	size_t left_out = tables_regions(run, REGIONS_SHOWN, &t, &align);

	if (t.count == t.columns)
		return;
	buf_putc(out, '\n');
	table_print(&t, align, "  ", out);
	if (left_out)
		buf_printf(out, "  ... and %zu more regions: `assay inspect` shows them\n", left_out);
}

static void print_movements(const struct run *run, bool colour, size_t columns, struct buf *out)
{
	static const char *const colours[] = {
		[MOVEMENT_INFO] = "", [MOVEMENT_NOTE] = "\033[36m", [MOVEMENT_WARNING] = "\033[33m"};
	size_t shown = run->movement_count <= MOVEMENTS_SHOWN ? run->movement_count : MOVEMENTS_SHOWN - 1;

	if (shown)
		buf_puts(out, "\n  moved:\n");
	for (size_t i = 0; i < shown; i++) {
		const struct movement *m = &run->movements[i];
		CLEANUP(buf_release) struct buf line;
		bool coloured = colour && m->level != MOVEMENT_INFO;

		buf_init(&line);
		utf8_append_line(&line, m->text, sizeof m->text);
		buf_printf(out, "    %s%-7s%s  ", coloured ? colours[m->level] : "", movement_level_name(m->level),
			   coloured ? "\033[0m" : "");
		wrap_append(out, line.text, 13, 13, columns ? columns : FOLD_UNSEEN);
	}
	print_left_out(run->movement_count - shown, "movements", out);
}

static void print_rate(const char *name, double rate, double deviation, struct buf *out)
{
	if (isnan(rate))
		return;
	buf_printf(out, "   %s %.2f tokens/s", name, rate);
	if (!isnan(deviation))
		buf_printf(out, " ± %.2f", deviation);
}

static void print_engine(const struct run *run, struct buf *out)
{
	const struct engine_result *e = &run->engine;

	if (!run->has_engine)
		return;
	buf_printf(out, "\n  engine %s", e->engine);
	if (*e->build)
		buf_printf(out, " (%s)", e->build);
	print_rate("prefill", e->prefill_tokens_per_s, e->prefill_deviation, out);
	print_rate("decode", e->decode_tokens_per_s, e->decode_deviation, out);
	if (isnan(e->prefill_tokens_per_s) && isnan(e->decode_tokens_per_s))
		buf_puts(out, "   printed no speed");
	buf_putc(out, '\n');
	for (size_t i = 0; e->test_count > 2 && i < e->test_count && i < TESTS_SHOWN; i++) {
		const struct engine_test *t = &e->tests[i];

		buf_printf(out, "    %-18s", t->name);
		print_rate("", t->tokens_per_s, t->deviation, out);
		buf_putc(out, '\n');
	}
	if (e->test_count > TESTS_SHOWN)
		buf_printf(out, "    ... and %zu more tests in run.json\n", e->test_count - TESTS_SHOWN);
	if (e->request_count > 1)
		buf_printf(out, "    %s requests\n",
			   units_count((double)(e->request_count + e->requests_dropped)).text);
}

/* All of them where run.json, which would have the rest, is not there. */
static void print_warnings(const struct run *run, bool all, bool colour, size_t columns, struct buf *out)
{
	size_t shown = all || run->warnings.count <= WARNINGS_SHOWN ? run->warnings.count : WARNINGS_SHOWN - 1;

	if (run->warnings.count)
		buf_putc(out, '\n');
	for (size_t i = 0; i < shown; i++) {
		CLEANUP(buf_release) struct buf line;

		buf_init(&line);
		utf8_append_line(&line, run->warnings.texts[i], WARNING_COLUMNS);
		buf_printf(out, "  %swarning:%s ", colour ? "\033[33m" : "", colour ? "\033[0m" : "");
		wrap_append(out, line.text, 11, 11, columns ? columns : SIZE_MAX);
	}
	if (shown < run->warnings.count)
		buf_printf(out, "  ... and %zu more warnings in run.json\n",
			   run->warnings.count + run->warnings.lost - shown);
}

/* A share of so short a run would only be that of starting and ending. */
#define SHARE_LEAST_S 0.2
#define FINISH_LEAST_S 0.5

static void print_cost(const struct run *run, struct buf *out)
{
	double cpu = run->cost_cpu_s + (isnan(run->cost_helper_cpu_s) ? 0 : run->cost_helper_cpu_s);

	if (isnan(cpu))
		return;
	if (run->wall_s >= SHARE_LEAST_S)
		buf_printf(out, "  watching cost %s of one core", units_percent(run->cost_share).text);
	else
		buf_printf(out, "  watching cost %s of CPU", units_seconds(cpu).text);
	buf_printf(out, " and %s", units_bytes(run->cost_max_rss).text);
	if (run->interval_effective_ms > 1.1 * run->interval_requested_ms)
		buf_printf(out, "; a reading every %.3g ms, not every %.3g ms, to keep it low",
			   run->interval_effective_ms, run->interval_requested_ms);
	if (run->cost_finish_cpu_s >= FINISH_LEAST_S)
		buf_printf(out, "; making the results took %s of CPU", units_seconds(run->cost_finish_cpu_s).text);
	buf_putc(out, '\n');
}

void summary_print(const struct run *run, const char *where, bool colour, size_t columns, struct buf *out)
{
	print_status(run, colour, out);
	print_totals(run, out);
	if (run->phases.count > 1 && run->figures)
		print_phases(run, out);
	print_engine(run, out);
	print_limits(run, columns, out);
	print_threads(run, out);
	print_regions(run, out);
	hotspots_short(run, false, columns ? columns : FOLD_UNSEEN, out);
	print_movements(run, colour, columns, out);
	print_warnings(run, !where, colour, columns, out);
	buf_putc(out, '\n');
	print_cost(run, out);
	if (where) {
		buf_puts(out, "  results: ");
		utf8_append_line(out, where, PATH_COLUMNS);
		buf_putc(out, '\n');
	}
}
