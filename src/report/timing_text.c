#include "report/timing_report.h"

#include <math.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "base/utf8.h"
#include "base/wrap.h"
#include "report/bench_report.h"

#define LABEL_COLUMNS 90
#define TEXT_COLUMNS 100
#define TEXT_AT 12

static void put_range(struct buf *out, const struct bench_unit *u, double from, const char *between, double to)
{
	buf_printf(out, "%.*f%s%.*f", u->decimals, from * u->scale, between, u->decimals, to * u->scale);
}

static void put_time(const struct timing_report *r, const struct timing *t, struct buf *out)
{
	double middle = r->by_time ? t->average : t->median;
	struct bench_unit u = bench_unit_for(middle > 0 ? middle : 1e-9);

	buf_printf(out, "   time     %.*f %s", u.decimals, middle * u.scale, u.name);
	if (!r->by_time && isfinite(t->low) && isfinite(t->high)) {
		buf_puts(out, " [");
		put_range(out, &u, t->low, ", ", t->high);
		buf_puts(out, "]");
	}
	if (t->batches > 1) {
		buf_puts(out, r->by_time ? " on average; batches from " : "; batches from ");
		put_range(out, &u, t->min_exec, " to ", t->max_exec);
		buf_puts(out, ", the middle half ");
		put_range(out, &u, t->p25, " to ", t->p75);
	}
	buf_putc(out, '\n');
}

static void put_counters(const struct timing *t, struct buf *out)
{
	if (isnan(t->cycles) || isnan(t->instructions))
		return;
	buf_printf(out, "   counted  %.4g cycles, %.4g instructions", t->cycles, t->instructions);
	if (t->cycles > 0)
		buf_printf(out, " (%.2f per cycle)", t->instructions / t->cycles);
	buf_puts(out, ", loop included\n");
}

static const char *overhead_name(const struct timing_report *r)
{
	return r->calls ? "an empty call" : r->each ? "reading the clock" : "an empty loop";
}

static void put_how(const struct timing_report *r, const struct timing *t, struct buf *out)
{
	struct bench_unit u = bench_unit_for(t->overhead > 0 ? t->overhead : 1e-9);

	if (r->by_time)
		buf_printf(out, "   measured %zu batches, %s executions in all; ", t->batches,
			   units_count((double)t->number).text);
	else
		buf_printf(out, "   measured %zu x %s execution%s; ", t->batches, units_count((double)t->number).text,
			   t->number == 1 ? "" : "s");
	buf_printf(out, "%s of %.*f %s is subtracted\n", overhead_name(r), u.decimals, t->overhead * u.scale, u.name);
}

static void put_warnings(const struct timing *t, struct buf *out)
{
	for (unsigned bit = 1; bit < TIMING_WARNINGS; bit <<= 1) {
		if (!(t->warnings & bit))
			continue;
		buf_puts(out, "   note     ");
		wrap_append(out, timing_warning_text((enum timing_warning)bit), TEXT_AT, TEXT_AT, TEXT_COLUMNS);
	}
}

static void put_item(const struct timing_report *r, size_t i, bool colour, struct buf *out)
{
	const struct timing *t = r->items[i].timing;
	const char *label = bench_label(&r->bench->commands[i]);

	buf_puts(out, colour ? "\033[1m" : "");
	if (r->count > 1)
		buf_printf(out, "%zu. ", i + 1);
	utf8_append_line(out, *label ? label : "(nothing)", LABEL_COLUMNS);
	buf_puts(out, colour ? "\033[0m\n" : "\n");
	if (t->batches == 0) {
		buf_puts(out, "   nothing was measured\n");
		return;
	}
	put_time(r, t, out);
	put_counters(t, out);
	put_how(r, t, out);
	put_warnings(t, out);
}

void timing_text(const struct timing_report *r, bool colour, struct buf *out)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	for (size_t i = 0; i < r->count; i++)
		put_item(r, i, colour, out);
	if (r->count < 2)
		return;
	bench_comparisons_text(r->bench, r->comparisons, out);
	buf_printf(&text, "Times are medians with their %s interval, ratios medians over pairs of neighbouring "
			  "batches, with a margin of %s.",
		   units_percent(r->bench->confidence).text, units_percent(r->bench->margin).text);
	buf_putc(out, '\n');
	wrap_append(out, text.text, 0, 0, TEXT_COLUMNS);
}
