#include "report/bench_report.h"

#include <math.h>

#include "base/cleanup.h"
#include "base/table.h"
#include "base/units.h"
#include "base/utf8.h"
#include "base/wrap.h"

#define LABEL_COLUMNS 70
#define TEXT_COLUMNS 100
#define TABLE_LABEL_COLUMNS 40

static void put_time(const struct bench_figures *f, struct buf *out)
{
	struct bench_unit u = bench_unit_for(f->median);

	buf_printf(out, "   time    %.*f %s", u.decimals, f->median * u.scale, u.name);
	if (!isnan(f->low))
		buf_printf(out, " [%.*f, %.*f]", u.decimals, f->low * u.scale, u.decimals, f->high * u.scale);
	if (f->counted > 1 && f->median > 0)
		buf_printf(out, ", spread %s", units_percent(f->spread / f->median).text);
	buf_printf(out, ", from %.*f to %.*f, %zu run%s\n", u.decimals, f->min * u.scale, u.decimals, f->max * u.scale,
		   f->counted, f->counted == 1 ? "" : "s");
}

static void put_command(const struct bench *b, const struct bench_answer *a, size_t i, bool colour, struct buf *out)
{
	const struct bench_command *c = &b->commands[i];
	const struct bench_figures *f = &a->items[i];

	buf_printf(out, "%s%zu. ", colour ? "\033[1m" : "", i + 1);
	utf8_append_line(out, bench_label(c), LABEL_COLUMNS);
	buf_puts(out, colour ? "\033[0m" : "");
	if (c->name) {
		buf_puts(out, ": ");
		utf8_append_line(out, c->line, LABEL_COLUMNS);
	}
	buf_putc(out, '\n');
	if (f->counted == 0) {
		buf_printf(out, "   no run that counts, of %zu\n", f->attempted);
	} else {
		if (f->below_resolution)
			buf_printf(out, "   time    below resolution (%s), %zu runs\n",
				   units_seconds(a->resolution_s).text, f->counted);
		else
			put_time(f, out);
		buf_printf(out, "   CPU     user %s, system %s\n", units_seconds(f->user).text,
			   units_seconds(f->system).text);
		buf_printf(out,
			   "   memory  peak %s; page faults %s minor, %s major; switches %s voluntary, %s forced\n",
			   units_bytes(f->peak_bytes).text, units_count(f->minor_faults).text,
			   units_count(f->major_faults).text, units_count(f->voluntary_switches).text,
			   units_count(f->involuntary_switches).text);
	}
	for (size_t k = 0; k < f->notes.count; k++) {
		buf_puts(out, "   note    ");
		wrap_append(out, f->notes.texts[k], 11, 11, TEXT_COLUMNS);
	}
}

static void put_label(struct table *t, size_t i, const struct bench_command *c)
{
	CLEANUP(buf_release) struct buf label;

	buf_init(&label);
	utf8_append_line(&label, bench_label(c), TABLE_LABEL_COLUMNS);
	table_cell(t, "%zu. %s", i + 1, label.text);
}

void bench_comparisons_text(const struct bench *b, const struct bench_answer *a, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	CLEANUP(buf_release) struct buf words;

	table_init(&t, 4);
	buf_init(&words);
	t.fold = TEXT_COLUMNS;
	table_cell(&t, "against %zu.", b->reference + 1);
	table_cell(&t, "times as long");
	table_cell(&t, "interval");
	table_cell(&t, "verdict");
	for (size_t i = 0; i < a->count; i++) {
		const struct paired *p = &a->items[i].paired;

		if (i == b->reference)
			continue;
		put_label(&t, i, &b->commands[i]);
		buf_clear(&words);
		bench_say_verdict(b, a, i, &words);
		if (p->pairs && isfinite(p->ratio))
			table_cell(&t, "%.4g", p->ratio);
		else
			table_cell(&t, "-");
		if (p->pairs && isfinite(p->low) && isfinite(p->high))
			table_cell(&t, "%.4g to %.4g", p->low, p->high);
		else
			table_cell(&t, "-");
		table_cell(&t, "%s", words.text);
	}
	buf_putc(out, '\n');
	table_print(&t, "lrll", "", out);
}

static size_t most_pairs(const struct bench_answer *a)
{
	size_t most = 0;

	for (size_t i = 0; i < a->count; i++)
		if (a->items[i].compared && a->items[i].paired.pairs > most)
			most = a->items[i].paired.pairs;
	return most;
}

static void put_how(const struct bench *b, const struct bench_answer *a, struct buf *out)
{
	CLEANUP(buf_release) struct buf text;

	buf_init(&text);
	buf_printf(&text, "Times are medians with their %s interval", units_percent(b->confidence).text);
	if (b->count > 1)
		buf_printf(&text, ", ratios medians over %zu pairs of neighbouring runs, with a margin of %s",
			   most_pairs(a), units_percent(b->margin).text);
	buf_puts(&text, ".");
	if (b->looks > 1)
		buf_printf(&text, " Intervals are widened for %zu looks.", b->looks);
	if (b->shell && a->startup_s > 0) {
		buf_puts(&text, " Run by ");
		utf8_append_line(&text, b->shell, LABEL_COLUMNS);
		buf_printf(&text, ", whose own start-up of %s is subtracted.", units_seconds(a->startup_s).text);
	}
	buf_putc(out, '\n');
	wrap_append(out, text.text, 0, 0, TEXT_COLUMNS);
}

void bench_text(const struct bench *b, const struct bench_answer *a, bool colour, struct buf *out)
{
	for (size_t i = 0; i < b->count; i++)
		put_command(b, a, i, colour, out);
	if (b->count > 1)
		bench_comparisons_text(b, a, out);
	put_how(b, a, out);
}
