/* The options of `assay bench`, and the plan that they ask for. */
#ifndef ASSAY_CMD_BENCH_OPTIONS_H
#define ASSAY_CMD_BENCH_OPTIONS_H

#include "cmd/options.h"
#include "model/bench.h"
#include "trial/bench_plan.h"

struct bench_args {
	/* 0: not given; a seed below 0, too */
	double warmup, runs, min_runs, max_runs, timeout_s, margin, confidence, seed;
	const char *shell, *input, *reference, *step, *style, *json;
	const char *export_json, *export_csv, *export_markdown;
	struct option_list names, extras[BENCH_EXTRAS], scans, lists;
	bool until_decided, ignore_failure, show_output, fail_on_slower, fail_on_undecided;
};

extern const struct option bench_options[];
extern const struct bench_args bench_options_defaults;
extern const struct option_elsewhere bench_options_elsewhere[]; /* hyperfine's */

/* What cannot be, before anything runs: also export files in folders that are not there. */
int bench_options_check(const struct bench_args *a, struct error *err);

bool bench_options_uses_stdout(const struct bench_args *a);

int bench_options_plan(const struct bench_args *a, char *const *commands, size_t count, struct bench *ret,
		       struct bench_shell *ret_shell, struct error *err);

#endif
