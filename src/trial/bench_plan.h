/* From what was asked for to a benchmark that can be run: parameters filled in, words split, a shell or none. */
#ifndef ASSAY_TRIAL_BENCH_PLAN_H
#define ASSAY_TRIAL_BENCH_PLAN_H

#include "base/error.h"
#include "model/bench.h"
#include "trial/bench_parameters.h"

struct bench_texts {
	const char *const *items;
	size_t count;
};

struct bench_request {
	struct bench_texts lines;  /* at least one */
	struct bench_texts names;  /* of the lines, from the first on; or one per command */
	struct bench_texts extras[BENCH_EXTRAS]; /* each: none, one for all, or one per line, the reference's first */
	struct bench_parameters parameters;
	const char *reference;     /* a line, or a name; NULL: the first command */
	const char *shell;         /* "auto", "none", "default", or a command line such as "bash --norc" */
};

/* What the shell is, in words; each ends with NULL and is owned. */
struct bench_shell {
	char **hooks; /* the shell of setup, prepare, conclude and cleanup */
	char **empty; /* it with an empty line; NULL: commands run without it */
};

void bench_shell_release(struct bench_shell *s);

int bench_plan(const struct bench_request *r, struct bench *ret, struct bench_shell *ret_shell, struct error *err);

#endif
