#include "judge/compare.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "judge/compare_pairs.h"

#define MARGIN_MOST 1e300 /* of next to nothing any floor is a multiple */
#define FLAGGED_LEAST 6 /* of fewer values nobody can say which lie far out */

static const char *const separation_names[] = {
	[SEPARATION_MISSING] = "missing",
	[SEPARATION_SAME] = "same",
	[SEPARATION_BETTER] = "better",
	[SEPARATION_WORSE] = "worse",
};

const char *separation_verdict_name(enum separation_verdict v)
{
	return separation_names[v];
}

static const char *const overall_names[] = {
	[OVERALL_NEUTRAL] = "neutral",   [OVERALL_IMPROVEMENT] = "improvement", [OVERALL_REGRESSION] = "regression",
	[OVERALL_TRADEOFF] = "tradeoff", [OVERALL_UNDECIDED] = "undecided",
};

const char *overall_verdict_name(enum overall_verdict v)
{
	return overall_names[v];
}

void comparison_release(struct comparison *c)
{
	for (size_t i = 0; i < c->count; i++) {
		free(c->metrics[i].a);
		free(c->metrics[i].b);
	}
	free(c->metrics);
	*c = (struct comparison){0};
}

/* What one comparison works with. */
struct work {
	const struct metric_set *metrics;
	const struct arms *a, *b;
	const struct compare_options *options;
	double alpha;
	struct pair *pairs;
	size_t pair_count;
	double *values; /* room for a log-ratio per pair, or the values of a side */
	bool *flags;    /* as many */
};

static void work_release(struct work *w)
{
	free(w->pairs);
	free(w->values);
	free(w->flags);
}

/* The values that the usable arms have, in the order given; NULL and 0 where there are none. */
static int collect(const struct arms *arms, size_t metric, double **ret, size_t *ret_count)
{
	double *values = NULL;
	size_t count = 0;

	for (size_t i = 0; i < arms->count; i++)
		count += arms->items[i].state == ARM_OK && !isnan(arm_value(&arms->items[i], metric));
	if (count > 0 && !(values = calloc(count, sizeof *values)))
		return -1;
	*ret = values;
	*ret_count = count;
	for (size_t i = 0; i < arms->count; i++)
		if (arms->items[i].state == ARM_OK && !isnan(arm_value(&arms->items[i], metric)))
			*values++ = arm_value(&arms->items[i], metric);
	return 0;
}

static double least(const double *values, size_t n)
{
	double least = values[0];

	for (size_t i = 1; i < n; i++)
		least = fmin(least, values[i]);
	return least;
}

static double most(const double *values, size_t n)
{
	double most = values[0];

	for (size_t i = 1; i < n; i++)
		most = fmax(most, values[i]);
	return most;
}

/* From left to right, as the reference tool adds: the last digit depends on it. */
static double mean(const double *values, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return sum / (double)n;
}

/* The reference's rule: apart only where no run of one side is among those of the other, and by more than the floor. */
static void separate(const struct metric_desc *desc, struct compare_metric *m)
{
	double floor, difference;
	bool apart;

	m->a_mean = m->a_count ? mean(m->a, m->a_count) : NAN;
	m->b_mean = m->b_count ? mean(m->b, m->b_count) : NAN;
	m->difference = m->b_mean - m->a_mean;
	m->ratio = m->a_mean != 0 ? m->b_mean / m->a_mean : NAN;
	if (!isfinite(m->ratio))
		m->ratio = NAN;
	if (!m->a_count || !m->b_count)
		return;
	floor = fmax(m->margin * fabs(m->a_mean), desc->absolute_floor);
	difference = m->difference * desc->direction;
	apart = least(m->b, m->b_count) > most(m->a, m->a_count) || most(m->b, m->b_count) < least(m->a, m->a_count);
	m->separation = SEPARATION_SAME;
	if (apart && fabs(difference) > floor)
		m->separation = difference > 0 ? SEPARATION_BETTER : SEPARATION_WORSE;
}

static void judge_pairs(struct work *w, int direction, struct compare_metric *m)
{
	size_t n = 0, unresolved = 0;

	for (size_t i = 0; i < w->pair_count; i++) {
		double a = arm_value(&w->a->items[w->pairs[i].a], m->metric);
		double b = arm_value(&w->b->items[w->pairs[i].b], m->metric);

		if (isnan(a) || isnan(b))
			continue;
		if (a >= DBL_MIN && b >= DBL_MIN) /* below it a double has lost digits, and their ratio means nothing */
			w->values[n++] = log(b) - log(a);
		else
			unresolved++;
	}
	stats_paired(w->values, n, unresolved, direction, m->margin, w->alpha, &m->paired);
	m->by_difference = n == 0 && unresolved > 0 && (m->a_mean == 0 || m->b_mean == 0);
	m->p_adjusted =
		m->gated && !m->by_difference ? stats_claim_p(w->values, n, m->margin, &m->paired) : NAN;
}

/* What a person should know of a side's values; decides nothing. */
static void flag(struct work *w, const double *values, size_t n, size_t *outliers, bool *ret_bimodal)
{
	if (n < FLAGGED_LEAST)
		return;
	*outliers += stats_outliers(values, n, w->flags);
	memcpy(w->values, values, n * sizeof *values);
	stats_sort(w->values, n);
	*ret_bimodal = stats_bimodal(w->values, n);
}

static bool is_judged(const struct work *w, size_t metric)
{
	const struct metric_desc *desc = &w->metrics->items[metric];

	if (w->options->selected)
		return w->options->selected[metric]; /* by name: under every rule */
	/* Beyond the fixed metrics, those that count are of another tool's file, which the reference does not know. */
	return !w->options->reference || desc->reference || (metric >= metric_count && desc->gated);
}

static int judge_metric(struct work *w, struct comparison *c, size_t metric)
{
	const struct compare_options *o = w->options;
	const struct metric_desc *desc = &w->metrics->items[metric];
	struct compare_metric *m = &c->metrics[c->count];

	*m = (struct compare_metric){.metric = metric, .p_adjusted = NAN};
	m->gated = o->selected || desc->gated;
	m->margin = fmax(desc->relative_floor, o->margin);
	if (o->noise && metric < o->noise_count)
		m->margin = fmax(m->margin, o->noise[metric]); /* which fmax ignores where it is NaN */
	if (collect(w->a, metric, &m->a, &m->a_count) < 0)
		return -1;
	if (collect(w->b, metric, &m->b, &m->b_count) < 0) {
		free(m->a);
		return -1;
	}
	if (!m->a_count && !m->b_count)
		return 0;
	c->count++;
	separate(desc, m);
	/* Separation holds the difference itself against the absolute floor; pairs have ratios only. */
	if (m->a_count && m->a_mean != 0)
		m->margin = fmax(m->margin, fmin(desc->absolute_floor / fabs(m->a_mean), MARGIN_MOST));
	m->has_pairs = c->interleaved && m->a_count && m->b_count;
	judge_pairs(w, desc->direction, m);
	flag(w, m->a, m->a_count, &m->outliers, &m->bimodal_a);
	flag(w, m->b, m->b_count, &m->outliers, &m->bimodal_b);
	return 0;
}

/* More pairs, were the share of those beyond the margin to stay as it is. */
static double pairs_to_hold(double p, double level, size_t n)
{
	return isfinite(p) && p > 0 && p < 1 ? ceil((double)n * log(level) / log(p)) - (double)n : NAN;
}

/* Among many metrics one is beyond its margin by chance more often than one alone: Holm's correction. */
static int correct(struct comparison *c, double alpha)
{
	CLEANUP(free_cleanup) double *p = calloc(c->count + 1, sizeof *p);
	CLEANUP(free_cleanup) double *adjusted = calloc(c->count + 1, sizeof *adjusted);
	size_t count = 0;

	if (!p || !adjusted)
		return -1;
	for (size_t i = 0; i < c->count; i++)
		if (!isnan(c->metrics[i].p_adjusted))
			p[count++] = c->metrics[i].p_adjusted;
	if (stats_holm(p, count, adjusted) < 0)
		return -1;
	for (size_t i = 0, at = 0; i < c->count; i++) {
		struct compare_metric *m = &c->metrics[i];
		bool claims = m->paired.verdict == PAIRED_BETTER || m->paired.verdict == PAIRED_WORSE;

		if (isnan(m->p_adjusted))
			continue;
		m->p_adjusted = adjusted[at];
		m->held_back = claims && adjusted[at] > alpha;
		if (m->held_back) {
			m->paired.verdict = PAIRED_UNDECIDED;
			m->paired.pairs_needed =
				pairs_to_hold(p[at], alpha * p[at] / adjusted[at], m->paired.pairs);
		}
		at++;
	}
	return 0;
}

static enum overall_verdict overall_of(bool better, bool worse, bool undecided)
{
	if (better && worse)
		return OVERALL_TRADEOFF;
	if (worse)
		return OVERALL_REGRESSION;
	return better ? OVERALL_IMPROVEMENT : undecided ? OVERALL_UNDECIDED : OVERALL_NEUTRAL;
}

static enum overall_verdict overall_by_separation(const struct comparison *c)
{
	bool better = false, worse = false;

	for (size_t i = 0; i < c->count; i++) {
		better |= c->metrics[i].gated && c->metrics[i].separation == SEPARATION_BETTER;
		worse |= c->metrics[i].gated && c->metrics[i].separation == SEPARATION_WORSE;
	}
	return overall_of(better, worse, false);
}

static enum overall_verdict overall_by_pairs(const struct comparison *c)
{
	bool better = false, worse = false, undecided = false;

	for (size_t i = 0; i < c->count; i++) {
		const struct compare_metric *m = &c->metrics[i];

		if (!m->gated || m->separation == SEPARATION_MISSING)
			continue;
		better |= m->by_difference ? m->separation == SEPARATION_BETTER : m->paired.verdict == PAIRED_BETTER;
		worse |= m->by_difference ? m->separation == SEPARATION_WORSE : m->paired.verdict == PAIRED_WORSE;
		undecided |= m->by_difference ? m->difference != 0 : m->paired.verdict != PAIRED_EQUIVALENT;
	}
	return overall_of(better, worse, undecided);
}

static bool same_run(const struct arm *a, const struct arm *b, size_t metrics)
{
	if (strcmp(a->source, b->source) != 0 && (a->started_ns == INT64_MIN || a->started_ns != b->started_ns))
		return false;
	for (size_t i = 0; i < metrics; i++) {
		double x = arm_value(a, i), y = arm_value(b, i);

		if (x != y && !(isnan(x) && isnan(y)))
			return false;
	}
	return a->state == b->state;
}

/* The same runs on both sides, in the same order: nothing is left to judge. */
static bool same_runs(const struct arms *a, const struct arms *b, size_t metrics)
{
	for (size_t i = 0; i < a->count && i < b->count; i++)
		if (!same_run(&a->items[i], &b->items[i], metrics))
			return false;
	return a->count == b->count && a->count > 0;
}

static void make_equivalent(struct comparison *c)
{
	for (size_t i = 0; i < c->count; i++) {
		struct paired *p = &c->metrics[i].paired;

		p->verdict = PAIRED_EQUIVALENT;
		p->ratio = p->low = p->high = p->equivalence_low = p->equivalence_high = p->p = 1;
		p->detectable = NAN;
		p->pairs_needed = 0;
	}
	c->overall = OVERALL_NEUTRAL;
}

static void count_arms(const struct arms *arms, size_t *ret_attempted, size_t *ret_usable, struct comparison *c)
{
	*ret_attempted = arms->count;
	for (size_t i = 0; i < arms->count; i++) {
		*ret_usable += arms->items[i].state == ARM_OK;
		c->dropped += arms->items[i].state != ARM_OK;
		c->dirty += arms->items[i].state == ARM_OK && arms->items[i].dirty;
	}
}

static int judge_all(struct work *w, struct comparison *c)
{
	size_t room = w->a->count + w->b->count + 1;

	w->values = calloc(room, sizeof *w->values);
	w->flags = calloc(room, sizeof *w->flags);
	c->metrics = calloc(w->metrics->count + 1, sizeof *c->metrics);
	if (!w->values || !w->flags || !c->metrics)
		return -1;
	for (size_t i = 0; i < w->metrics->count; i++)
		if (is_judged(w, i) && judge_metric(w, c, i) < 0)
			return -1;
	return correct(c, w->alpha);
}

int compare(const struct metric_set *metrics, const struct arms *a, const struct arms *b,
	    const struct compare_options *options, struct comparison *ret, struct error *err)
{
	CLEANUP(work_release) struct work w = {.metrics = metrics, .a = a, .b = b, .options = options};
	struct comparison c = {.rule = options->rule};

	w.alpha = (1 - options->confidence) / (options->looks > 1 ? (double)options->looks : 1);
	count_arms(a, &c.attempted_a, &c.usable_a, &c);
	count_arms(b, &c.attempted_b, &c.usable_b, &c);
	if (compare_find_pairs(a, b, &w.pairs, &w.pair_count, &c.interleaved, err) < 0)
		return -1;
	c.pairs = w.pair_count;
	if (c.rule == RULE_AUTO)
		c.rule = c.interleaved ? RULE_PAIRED : RULE_SEPARATION;
	/* Without a run on either side nothing can be said of any metric. */
	if (c.usable_a && c.usable_b && judge_all(&w, &c) < 0) {
		comparison_release(&c);
		return error_set(err, "out of memory for a comparison of %zu metrics", metrics->count);
	}
	c.by_separation = overall_by_separation(&c);
	c.overall = c.rule == RULE_PAIRED ? overall_by_pairs(&c) : c.by_separation;
	c.same_runs = c.usable_a && same_runs(a, b, metrics->count);
	if (c.same_runs)
		make_equivalent(&c);
	*ret = c;
	return 0;
}
