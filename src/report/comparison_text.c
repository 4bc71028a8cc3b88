/* A comparison on a terminal. */
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/wrap.h"
#include "report/comparison.h"
#include "report/comparison_figures.h"

#define COLUMNS 100
#define ROWS_SHOWN 60
#define LABEL_COLUMNS 60

static const char *const colours[] = {
	[OVERALL_NEUTRAL] = "",
	[OVERALL_IMPROVEMENT] = "\033[32m",
	[OVERALL_REGRESSION] = "\033[31m",
	[OVERALL_TRADEOFF] = "\033[33m",
	[OVERALL_UNDECIDED] = "\033[33m",
};

static void put_side(const char *side, const char *label, size_t usable, size_t attempted, struct buf *out)
{
	buf_printf(out, "%s: ", side);
	utf8_append_line(out, label, LABEL_COLUMNS);
	buf_printf(out, ", %zu run%s", usable, usable == 1 ? "" : "s");
	if (attempted > usable)
		buf_printf(out, " of %zu", attempted);
	buf_putc(out, '\n');
}

/* The sentences of one kind under their heading. */
struct paragraph {
	struct buf *out;
	enum sentence_kind kind;
	const char *heading;
	bool begun;
};

static void put_sentence(void *context, enum sentence_kind kind, const char *sentence)
{
	struct paragraph *p = context;

	if (kind != p->kind)
		return;
	if (!p->begun)
		buf_printf(p->out, "\n%s\n", p->heading);
	p->begun = true;
	buf_puts(p->out, "  ");
	wrap_append(p->out, sentence, 2, 4, COLUMNS);
}

static void put_paragraph(const struct comparison_view *v, enum sentence_kind kind, const char *heading,
			  struct buf *out)
{
	struct paragraph p = {out, kind, heading, false};

	comparison_sentences(v, put_sentence, &p);
}

static void put_table(const struct comparison_view *v, struct buf *out)
{
	CLEANUP(table_release) struct table t;
	const char *align;
	size_t left_out = comparison_table(v, ROWS_SHOWN, false, &t, &align);
	bool shown_only = false;

	buf_putc(out, '\n');
	table_print(&t, align, "  ", out);
	for (size_t i = 0; i < v->comparison->count; i++)
		shown_only |= !v->comparison->metrics[i].gated;
	if (left_out)
		buf_printf(out, "  ... and %zu more; --json has them all\n", left_out);
	if (shown_only)
		buf_puts(out, "  (in brackets: shown, and no part of the verdict unless asked for by --metric)\n");
}

void comparison_text(const struct comparison_view *v, struct buf *out)
{
	const struct comparison *c = v->comparison;

	put_side("A", v->a, c->usable_a, c->attempted_a, out);
	put_side("B", v->b, c->usable_b, c->attempted_b, out);
	if (c->interleaved)
		buf_printf(out, "%zu pair%s of neighbouring runs\n", c->pairs, c->pairs == 1 ? "" : "s");
	if (c->count)
		put_table(v, out);
	buf_printf(out, "\nVerdict: %s%s%s (by %s)\n", v->colour ? colours[c->overall] : "",
		   overall_verdict_name(c->overall), v->colour && *colours[c->overall] ? "\033[0m" : "",
		   c->rule == RULE_PAIRED ? "pairs" : "separation");
	put_paragraph(v, SENTENCE_DECIDED, "Decided:", out);
	put_paragraph(v, SENTENCE_OPEN, "Not decided:", out);
	put_paragraph(v, SENTENCE_NOTE, "To know:", out);
}
