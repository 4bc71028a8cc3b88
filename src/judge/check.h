/* The gate: which figures got worse beyond a budget. Pure: named pairs of values in, findings out; regions, run
 * directories and foreign result files are all turned into such pairs. */
#ifndef ASSAY_JUDGE_CHECK_H
#define ASSAY_JUDGE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* One figure on both sides; NaN: it is not known there (in_x: there is such a thing at all). */
struct check_item {
	const char *name, *unit; /* borrowed; unit as in region_metric_unit, or that of a run's metric */
	bool in_a, in_b;
	double a, b;
	bool higher_is_better; /* tokens per second */
	double weight; /* what --min-total is compared with, in ns, the larger of both sides; NaN: never left out */
};


struct check_budget {
	double max_regression; /* percent, 0 and up, finite */
	bool fail_on_new, fail_on_missing;
	double min_total; /* ns: items below it on both sides are left out; 0: none */
};

/* In the order of printing, after all that fails. */
enum check_finding {
	CHECK_REGRESSED,       /* worse by more than the budget */
	CHECK_FROM_ZERO,       /* the baseline is 0 and it costs something now: fails, there is no percentage */
	CHECK_UNKNOWN,         /* NaN or infinite on a side that has it: fails, nothing can be said */
	CHECK_NEW,             /* fails with fail_on_new */
	CHECK_VANISHED,        /* fails with fail_on_missing */
	CHECK_WITHIN,          /* within the budget, equality included */
	CHECK_IMPROVED,
	CHECK_TOO_SMALL,       /* below min_total */
	CHECK_FINDINGS,
};

struct check_row {
	struct check_item item;
	enum check_finding finding;
	bool fails;
	double delta, pct; /* of b to a, a missing side as 0; NaN: not known, and where a is missing or 0 */
	double worse_pct;  /* pct, with the sign that makes worse positive; NaN */
};

struct check_result {
	struct check_budget budget;
	struct check_row *rows; /* what fails, then by finding, then by how much worse */
	size_t count, failed;
	size_t compared; /* that are on both sides with a figure each, and not too small: 0 is no pass */
	size_t per_finding[CHECK_FINDINGS];
};

void check_result_init(struct check_result *r);
void check_result_release(struct check_result *r);

/* Items that neither side has are passed over. Fails for no memory, or a budget that is negative, NaN or infinite.
 * Nothing to compare (count 0, or none on both sides) is no error here: the caller decides. */
int check_judge(const struct check_item *items, size_t count, const struct check_budget *b, struct check_result *ret,
		struct error *err);

/* Whether both sides had a figure that was held against the other: what `compared` counts. */
bool check_was_compared(enum check_finding f);

const char *check_finding_text(enum check_finding f); /* "regressed", "new cost where there was none", ... */
const char *check_finding_name(enum check_finding f); /* for scripts: "regressed", "from_zero", ... */

#endif
