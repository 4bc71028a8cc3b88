/* What a comparison decided and what it did not, as sentences. The same for text, Markdown and JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/comparison.h"
#include "report/comparison_figures.h"

#define NAME_COLUMNS 60
#define NAMES_LISTED 6

struct words {
	const struct comparison_view *v;
	struct buf line;
	void (*take)(void *context, enum sentence_kind kind, const char *sentence);
	void *context;
};

static void hand_over(struct words *w, enum sentence_kind kind)
{
	w->take(w->context, kind, w->line.text);
	buf_clear(&w->line);
}

static void put_name(struct words *w, const struct compare_metric *m)
{
	figures_name(&w->line, w->v->metrics->items[m->metric].name, NAME_COLUMNS);
}

static void put_interval(struct words *w, const struct paired *p)
{
	buf_printf(&w->line, "%s to %s at %.4g%%", figures_change(p->low).text, figures_change(p->high).text,
		   p->confidence * 100);
}

static void put_needed(struct words *w, double pairs)
{
	if (isnan(pairs))
		buf_puts(&w->line, "; how many more pairs would settle it cannot be told from these.");
	else
		buf_printf(&w->line, "; about %s more pair%s would probably settle it.", units_count(pairs).text,
			   pairs == 1 ? "" : "s");
}

static void say_claim(struct words *w, const struct compare_metric *m)
{
	put_name(w, m);
	buf_printf(&w->line, " is %s: %s (", paired_verdict_name(m->paired.verdict),
		   figures_change(m->paired.ratio).text);
	put_interval(w, &m->paired);
	buf_printf(&w->line, "), beyond the margin of %s.", figures_share(m->margin).text);
	hand_over(w, SENTENCE_DECIDED);
}

static void say_equivalent(struct words *w, const struct compare_metric *m)
{
	put_name(w, m);
	buf_printf(&w->line, " is equivalent: within the margin of %s", figures_share(m->margin).text);
	if (!w->v->comparison->same_runs)
		buf_printf(&w->line, " (%s to %s at %.4g%%)", figures_change(m->paired.equivalence_low).text,
			   figures_change(m->paired.equivalence_high).text, (2 * m->paired.confidence - 1) * 100);
	buf_puts(&w->line, ".");
	hand_over(w, SENTENCE_DECIDED);
}

static void say_held_back(struct words *w, const struct compare_metric *m)
{
	put_name(w, m);
	buf_printf(&w->line, " is undecided: judged alone it would have changed by %s (",
		   figures_change(m->paired.ratio).text);
	put_interval(w, &m->paired);
	buf_printf(&w->line, "), but among all the metrics judged here that may be chance (p %.2g)",
		   m->p_adjusted);
	put_needed(w, m->paired.pairs_needed);
	hand_over(w, SENTENCE_OPEN);
}

static void say_undecided(struct words *w, const struct compare_metric *m)
{
	bool small = m->paired.verdict == PAIRED_SMALL;

	put_name(w, m);
	buf_printf(&w->line, small ? " has changed, by %s (" : " is undecided: %s (",
		   figures_change(m->paired.ratio).text);
	put_interval(w, &m->paired);
	if (small)
		buf_printf(&w->line, "), but whether by more than the margin of %s is open",
			   figures_share(m->margin).text);
	else
		buf_printf(&w->line, "); with these pairs a change of about %s would be found",
			   figures_share(m->paired.detectable).text);
	put_needed(w, m->paired.pairs_needed);
	hand_over(w, SENTENCE_OPEN);
}

static void say_below_resolution(struct words *w, const struct compare_metric *m)
{
	put_name(w, m);
	buf_printf(&w->line, " is below resolution: in %zu of %zu pairs a value is 0, which has no ratio.",
		   m->paired.unresolved, m->paired.pairs + m->paired.unresolved);
	hand_over(w, SENTENCE_OPEN);
}

/* By separation, or where a side is 0 throughout and there is no ratio. */
static void say_separation(struct words *w, const struct compare_metric *m)
{
	const char *unit = w->v->metrics->items[m->metric].unit;

	if (m->separation != SEPARATION_BETTER && m->separation != SEPARATION_WORSE)
		return;
	put_name(w, m);
	buf_printf(&w->line, " is %s by separation: %s", separation_verdict_name(m->separation),
		   isnan(m->ratio) ? figures_difference(m->difference, unit).text : figures_change(m->ratio).text);
	if (isnan(m->ratio))
		buf_puts(&w->line, ", from 0, so there is no ratio");
	buf_puts(&w->line, "; no run of one side lies among those of the other.");
	hand_over(w, SENTENCE_DECIDED);
}

static void say_metric(struct words *w, const struct compare_metric *m)
{
	if (m->by_difference) {
		say_separation(w, m);
		if (m->separation == SEPARATION_SAME && m->difference != 0)
			say_below_resolution(w, m);
		return;
	}
	switch (m->paired.verdict) {
	case PAIRED_BETTER:
	case PAIRED_WORSE:
		say_claim(w, m);
		break;
	case PAIRED_EQUIVALENT:
		say_equivalent(w, m);
		break;
	case PAIRED_UNDECIDED:
	case PAIRED_SMALL:
		(m->held_back ? say_held_back : say_undecided)(w, m);
		break;
	case PAIRED_BELOW_RESOLUTION:
		say_below_resolution(w, m);
		break;
	case PAIRED_TOO_FEW: /* one sentence for all of them */
		break;
	}
}

typedef bool chooser(const struct compare_metric *m);

/* "a, b, c and 3 more" of those that are chosen; returns how many. */
static size_t put_names(struct words *w, chooser *chosen)
{
	const struct comparison *c = w->v->comparison;
	size_t count = 0;

	for (size_t i = 0; i < c->count; i++) {
		if (!chosen(&c->metrics[i]))
			continue;
		if (count < NAMES_LISTED) {
			buf_puts(&w->line, count ? ", " : "");
			put_name(w, &c->metrics[i]);
		}
		count++;
	}
	if (count > NAMES_LISTED)
		buf_printf(&w->line, " and %zu more", count - NAMES_LISTED);
	return count;
}

static bool has_too_few(const struct compare_metric *m)
{
	return m->gated && m->separation != SEPARATION_MISSING && !m->by_difference &&
	       m->paired.verdict == PAIRED_TOO_FEW;
}

static bool only_a(const struct compare_metric *m)
{
	return m->b_count == 0;
}

static bool only_b(const struct compare_metric *m)
{
	return m->a_count == 0;
}

static bool is_bimodal(const struct compare_metric *m)
{
	return m->gated && (m->bimodal_a || m->bimodal_b);
}

static bool has_outliers(const struct compare_metric *m)
{
	return m->gated && m->outliers > 0;
}

/* "`before` a, b, c`after`", where there are any. */
static void say_names(struct words *w, enum sentence_kind kind, const char *before, chooser *chosen, const char *after)
{
	buf_puts(&w->line, before);
	if (put_names(w, chosen) == 0) {
		buf_clear(&w->line);
		return;
	}
	buf_puts(&w->line, after);
	hand_over(w, kind);
}

static void say_too_few(struct words *w)
{
	const struct comparison *c = w->v->comparison;
	size_t needed = stats_least_pairs(1 - w->v->confidence), missing = needed > c->pairs ? needed - c->pairs : 1;
	char after[160];

	snprintf(after, sizeof after, ": there %s %zu, and %.4g%% confidence takes at least %zu, so %zu more.",
		 c->pairs == 1 ? "is" : "are", c->pairs, w->v->confidence * 100, needed, missing);
	say_names(w, SENTENCE_OPEN, "Too few pairs to judge ", has_too_few, after);
}

static void say_not_interleaved(struct words *w)
{
	const struct comparison *c = w->v->comparison;
	double chance = 2, n = (double)c->usable_a, m = (double)c->usable_b;

	buf_printf(&w->line,
		   "Not interleaved: nothing shows that runs of both sides took turns, so a drift of the machine "
		   "looks like a difference; separation decides. Too few pairs for more: none, where %.4g%% "
		   "confidence takes %zu.", w->v->confidence * 100, stats_least_pairs(1 - w->v->confidence));
	hand_over(w, SENTENCE_NOTE);
	for (double i = 1; i <= n; i++)
		chance *= i / (m + i); /* 2 / C(n + m, n) */
	buf_printf(&w->line,
		   "Of equal sides, %zu and %zu runs lie apart by chance in %s of the cases, for each metric; "
		   "\"same\" says that nothing was found, not that the sides are equal.",
		   c->usable_a, c->usable_b, figures_share(fmin(chance, 1)).text);
	hand_over(w, SENTENCE_NOTE);
}

static void say_runs(struct words *w)
{
	const struct comparison *c = w->v->comparison;

	if (c->dropped) {
		buf_printf(&w->line, "%zu of %zu runs %s left out: failed, refused or traced.", c->dropped,
			   c->attempted_a + c->attempted_b, c->dropped == 1 ? "was" : "were");
		hand_over(w, SENTENCE_NOTE);
	}
	if (c->dirty) {
		buf_printf(&w->line, "%zu run%s started on a machine that was not clean.", c->dirty,
			   c->dirty == 1 ? "" : "s");
		hand_over(w, SENTENCE_NOTE);
	}
	if (c->same_runs) {
		buf_puts(&w->line, "Both sides are the same runs: equivalent, whatever was measured.");
		hand_over(w, SENTENCE_NOTE);
	}
	say_names(w, SENTENCE_NOTE, "Only A has: ", only_a, ".");
	say_names(w, SENTENCE_NOTE, "Only B has: ", only_b, ".");
	say_names(w, SENTENCE_NOTE, "Some values lie far out, and count all the same: ", has_outliers, ".");
	say_names(w, SENTENCE_NOTE, "Values in two groups, whose cause matters more than a median: ", is_bimodal, ".");
}

void comparison_sentences(const struct comparison_view *v,
			  void (*take)(void *context, enum sentence_kind kind, const char *sentence), void *context)
{
	const struct comparison *c = v->comparison;
	struct words w = {.v = v, .take = take, .context = context};

	buf_init(&w.line);
	for (size_t i = 0; i < c->count; i++) {
		const struct compare_metric *m = &c->metrics[i];

		if (!m->gated || m->separation == SEPARATION_MISSING)
			continue;
		(c->rule == RULE_PAIRED || c->same_runs ? say_metric : say_separation)(&w, m);
	}
	if (c->rule == RULE_PAIRED && !c->same_runs)
		say_too_few(&w);
	else if (c->count && !c->interleaved && !c->same_runs)
		say_not_interleaved(&w);
	if (c->rule == RULE_PAIRED && c->count && c->by_separation != c->overall) {
		buf_printf(&w.line, "By separation the verdict would be \"%s\".",
			   overall_verdict_name(c->by_separation));
		hand_over(&w, SENTENCE_NOTE);
	}
	say_runs(&w);
	buf_release(&w.line);
}
