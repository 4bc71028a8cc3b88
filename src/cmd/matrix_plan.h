/* The options of assay matrix, and the plan that they make. */
#ifndef ASSAY_CMD_MATRIX_PLAN_H
#define ASSAY_CMD_MATRIX_PLAN_H

#include "cmd/options.h"
#include "trial/matrix_plan.h"

struct matrix_args {
	const char *a, *b, *order, *only, *noise, *precheck, *rule, *out, *resume;
	struct option_list a_env, b_env;
	/* NaN: not given. */
	double seed, pairs, warmup, timeout_s, confidence, margin_percent;
	bool until_decided, json, markdown, quiet, allow_tradeoff, fail_on_undecided;
};

extern const struct option matrix_options[];
extern const struct matrix_args matrix_args_none;

/* From the options and the words that are none (CASES.json). *ret is released by the caller, also on failure. */
int matrix_args_plan(const struct matrix_args *a, char **words, struct matrix_plan *ret, struct error *err);

/* With --resume the plan is the old one's: nothing that would change it may be given. */
int matrix_args_check_resume(const struct matrix_args *a, char **words, struct error *err);

#endif
