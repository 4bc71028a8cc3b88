/* Two profiles compared: which functions take another share of the CPU time, beyond what the sample counts can
 * support.
 *
 * Per function the difference of two binomial shares with its Newcombe interval (score intervals combined: R. G.
 * Newcombe, Statistics in Medicine 17, 1998, method 10), n being effective deliveries, not weights. What one run
 * differs from the next for other reasons is not in it: docs/statistics.md. Pure. */
#ifndef ASSAY_JUDGE_PROFILE_DIFF_H
#define ASSAY_JUDGE_PROFILE_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/hotspots.h"

/* Rows with fewer samples on both sides together cannot show a change, and are not compared. */
#define PROFILE_DIFF_LEAST 10

struct profile_change {
	char *name;     /* owned */
	char *module;   /* owned; NULL: it has none */
	char *group;    /* owned */
	double share[2];
	double cpu_s[2];
	double deliveries[2]; /* of it: effective counts, see docs/statistics.md */
	bool compared;      /* false: too rare, or its group has too few samples on a side */
	/* Interval of share[1] - share[0] at the confidence asked, corrected for the number of rows; NaN where it is
	 * not compared. */
	double low, high;
	double cpu_low, cpu_high; /* interval of cpu_s[1] - cpu_s[0] */
	bool share_changed, cpu_changed;
};

struct profile_changes {
	struct profile_change *items; /* changed ones first, by size of the change in cpu_s */
	size_t count, changed;
	size_t compared;
	double confidence;
	double n[2];    /* effective deliveries, of the groups that both have */
	double cpu_s[2]; /* of those */
	char *only[2];  /* owned: groups that this side alone has, with blanks between; NULL: none */
	uint64_t deliveries[2]; /* of all groups of a side, and their CPU time */
	double all_cpu_s[2];
	bool too_few;   /* a side has under 30 deliveries: nothing can be said */
};

void profile_changes_init(struct profile_changes *c);
void profile_changes_release(struct profile_changes *c);

/* Compares self rows (or inclusive ones) of two sums made with the same query, group by group. Rows must be complete:
 * of sums without `top`. */
int profile_diff(struct profile_changes *ret, const struct hotspots *a, const struct hotspots *b, bool inclusive,
		 double confidence, struct error *err);

#endif
