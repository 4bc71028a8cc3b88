/* Parameters of a benchmark: {NAME} in a command stands for each of its values in turn. */
#ifndef ASSAY_TRIAL_BENCH_PARAMETERS_H
#define ASSAY_TRIAL_BENCH_PARAMETERS_H

#include <stddef.h>

#include "base/error.h"
#include "model/bench.h"

#define BENCH_VALUES_MAX 4096

struct bench_values {
	char *name;
	char **values;
	size_t count, room;
};

struct bench_parameters {
	struct bench_values *items;
	size_t count;
};

void bench_parameters_release(struct bench_parameters *p);

/* MIN, MIN + STEP, ... up to MAX, with as many decimals as the longest of the three; `step` NULL: 1. */
int bench_parameters_scan(struct bench_parameters *p, const char *name, const char *min, const char *max,
			  const char *step, struct error *err);

/* Values between commas; \, is a comma and \\ a backslash. */
int bench_parameters_list(struct bench_parameters *p, const char *name, const char *values, struct error *err);

/* How many combinations there are: 1 without any parameter. At most BENCH_VALUES_MAX, else -1 with *err. */
int bench_parameters_combinations(const struct bench_parameters *p, size_t *ret, struct error *err);

/* The value of parameter i in combination `at`; the first parameter changes fastest. Borrowed. */
const char *bench_parameters_value(const struct bench_parameters *p, size_t i, size_t at);

/* The text with each {NAME} replaced; owned, NULL when out of memory. */
char *bench_parameters_fill(const struct bench_parameters *p, size_t at, const char *text);

#endif
