/* Side B against side A, by two rules: separation (the reference's, exact) and pairs (sign intervals). Pure.
 *
 * design section 6 and docs/statistics.md are its specification. */
#ifndef ASSAY_JUDGE_COMPARE_H
#define ASSAY_JUDGE_COMPARE_H

#include "judge/stats.h"
#include "model/arm.h"
#include "model/metric.h"

enum compare_rule { RULE_AUTO, RULE_SEPARATION, RULE_PAIRED };

/* better, worse, same, missing */
enum separation_verdict { SEPARATION_MISSING, SEPARATION_SAME, SEPARATION_BETTER, SEPARATION_WORSE };
const char *separation_verdict_name(enum separation_verdict v);

/* regression, improvement, tradeoff, neutral; undecided: by pairs only, where nothing was found and not all that is
 * gated is equivalent */
enum overall_verdict { OVERALL_NEUTRAL, OVERALL_IMPROVEMENT, OVERALL_REGRESSION, OVERALL_TRADEOFF, OVERALL_UNDECIDED };
const char *overall_verdict_name(enum overall_verdict v);

struct compare_options {
	enum compare_rule rule;
	double confidence; /* 0.95 */
	double margin;     /* relative, 0: none beyond the metric's own floor */
	const double *noise; /* relative floor by metric index, NaN: none; may be NULL. Never from the runs judged */
	size_t noise_count;
	const bool *selected; /* by metric index; NULL: all */
	size_t looks; /* 1, or STATS_LOOKS where the runs were stopped at preset looks */
	bool reference; /* only what the reference tool judges: its eight metrics, or those of other tools' files */
};

struct compare_metric {
	size_t metric; /* index into the set */
	double *a, *b; /* values of the usable arms, in the order given; owned */
	size_t a_count, b_count;
	double a_mean, b_mean, ratio; /* ratio NaN where the mean of A is 0 */
	double difference;            /* b_mean - a_mean, in the metric's unit */
	enum separation_verdict separation;
	struct paired paired;
	bool has_pairs;
	bool gated;                   /* counts for the overall verdict: asked for by name, or one of the gated */
	/* Relative: the largest of the metric's floor, what was asked for or measured, and its absolute floor over the
	 * mean of A. */
	double margin;
	/* Of the claim that it is better or worse by more than the margin: Holm over the gated metrics that have a pair
	 * beyond theirs. NaN where there is no such claim to make. */
	double p_adjusted;
	bool held_back;               /* alone it would be better or worse; among so many metrics it is undecided */
	bool by_difference;           /* a side is 0 throughout: separation speaks for it under the paired rule too */
	size_t outliers;
	bool bimodal_a, bimodal_b;
};

struct comparison {
	struct compare_metric *metrics; /* those that at least one side has, in the set's order; owned */
	size_t count;
	enum compare_rule rule; /* that decided */
	bool interleaved;       /* pairs exist: arms carry blocks, or their times alternate */
	bool same_runs;         /* both sides hold the same runs: equivalent, and no evidence of anything */
	size_t pairs;
	size_t usable_a, usable_b;
	size_t attempted_a, attempted_b, dropped, dirty; /* dropped: failed, traced or refused arms of both sides */
	enum overall_verdict overall;      /* by the rule that decided */
	enum overall_verdict by_separation;
};

void comparison_release(struct comparison *c);

/* Neither side needs a usable arm. Fails only when out of memory. */
int compare(const struct metric_set *metrics, const struct arms *a, const struct arms *b,
	    const struct compare_options *options, struct comparison *ret, struct error *err);

#endif
