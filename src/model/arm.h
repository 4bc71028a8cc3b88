/* An arm: one run of one side of a comparison, as values by metric. Plain data. */
#ifndef ASSAY_MODEL_ARM_H
#define ASSAY_MODEL_ARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum arm_state {
	ARM_OK,
	ARM_FAILED,    /* exit status, signal, timeout, interrupted, partial */
	ARM_PERTURBED, /* traced */
	ARM_REFUSED,   /* the machine was not clean and --precheck refuse */
};

struct arm {
	char *source; /* where it came from: a path, or "case/3_A_old"; owned */
	char *status; /* as in run.json: "ok", "failed", ...; owned */
	enum arm_state state;
	bool dirty;   /* the machine was not clean before it */
	int64_t started_ns; /* wall time; INT64_MIN: not known */
	int block, position; /* in its design; -1: none */
	double *values; /* one per metric of the set; NaN: missing; owned */
	size_t value_count; /* values beyond are missing */
};

struct arms {
	struct arm *items;
	size_t count, room;
};

void arms_init(struct arms *a);
void arms_release(struct arms *a);

/* A new arm, all empty (values NULL, block -1), owned by *a; NULL when out of memory. */
struct arm *arms_add(struct arms *a);

/* Takes back the one that was added last. */
void arms_drop_last(struct arms *a);

/* NaN where it is missing. */
double arm_value(const struct arm *arm, size_t metric);

/* Sets a value, with room for it; -1 when out of memory. */
int arm_set(struct arm *arm, size_t metric, double value);

#endif
