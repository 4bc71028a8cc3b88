/* What a benchmark says: figures per command, and each command against the reference by pairs. Pure. */
#ifndef ASSAY_JUDGE_BENCH_H
#define ASSAY_JUDGE_BENCH_H

#include "base/error.h"
#include "judge/stats.h"
#include "model/bench.h"
#include "model/warnings.h"

struct bench_figures {
	size_t attempted, failed, timed_out, counted;
	size_t unresolved;   /* of those counted: not to be told from nothing */
	double *times;       /* of those counted, in order, the shell's start-up subtracted, never below 0; owned */
	double median, low, high; /* the interval NaN where there are too few runs */
	double mean, deviation, spread, min,
		max;	     /* spread: 1.4826 * MAD, as large as a deviation but deaf to outliers */
	double user, system; /* means, as hyperfine has them */
	double peak_bytes, minor_faults, major_faults, voluntary_switches, involuntary_switches; /* medians */
	bool below_resolution; /* most runs are */
	bool compared;       /* every command but the reference */
	struct paired paired; /* its verdict: better is faster */
	/* For Holm's correction of what the verdict claims: of "no difference", or of "none beyond the margin". NaN: no
	 * claim can be made, so that it is none of the family. */
	double claim_p;
	bool held_back;      /* alone it would be a finding; among so many comparisons it is undecided */
	size_t outliers;
	bool first_outlier, bimodal, drifts;
	double drift;
	struct warnings notes; /* what is odd about the runs, and what helps */
};

struct bench_answer {
	struct bench_figures *items; /* one per command; owned */
	size_t count;
	double startup_s, startup_user_s, startup_system_s; /* subtracted from each run; 0 without a shell */
	double resolution_s; /* times up to this are not to be told from nothing */
};

/* faster, slower, equivalent, small, undecided, too few pairs, below resolution */
const char *bench_verdict(enum paired_verdict v);

void bench_answer_release(struct bench_answer *a);

/* Fails only when out of memory. Commands without a run have NaN figures. */
int bench_judge(const struct bench *b, struct bench_answer *ret, struct error *err);

/* Whether the runs so far settle every comparison; of a single command, whether its interval is within the margin. */
int bench_decided(const struct bench *b, bool *ret, struct error *err);

/* Whether a comparison says so: slower; undecided or too few pairs. */
bool bench_has_slower(const struct bench_answer *a);
bool bench_has_undecided(const struct bench_answer *a);

#endif
