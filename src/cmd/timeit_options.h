/* The options of `assay timeit`, and what makes no sense among them. */
#ifndef ASSAY_CMD_TIMEIT_OPTIONS_H
#define ASSAY_CMD_TIMEIT_OPTIONS_H

#include "cmd/options.h"

struct timeit_args {
	/* 0: not given; warmup and seed: below 0 */
	double number, repeat, warmup, max_time, timeout_s, margin, confidence, seed;
	const char *each, *cc, *cflags, *standard, *call;
	const char *json; /* "": standard output */
	struct option_list setups, headers, libraries, library_dirs, others, shared;
	bool fail_on_slower, fail_on_undecided;
};

extern const struct option timeit_options[];
extern const struct timeit_args timeit_options_defaults;
extern const struct option_elsewhere timeit_options_elsewhere[]; /* of Python's timeit */

/* `count` is that of the operands. */
int timeit_options_check(const struct timeit_args *a, size_t count, struct error *err);

#endif
