/* What a matrix was asked to do, and its plan.json, from which it is gone on with. */
#ifndef ASSAY_TRIAL_MATRIX_PLAN_H
#define ASSAY_TRIAL_MATRIX_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "record/record.h"
#include "trial/cases.h"

struct matrix_side {
	char *name, *folder; /* owned, as all text here */
	json_t *env;         /* array of "NAME=TEXT" */
};

struct matrix_plan {
	struct matrix_side sides[2]; /* A, B */
	char *cases_path;
	struct cases cases;
	char *order;                 /* as in trial.h */
	char *only, *noise;          /* NULL: none */
	char *precheck, *rule;       /* by name: "wait", "auto", ... */
	json_int_t seed;             /* from 0 to 2^53, which every reader of JSON holds exactly */
	size_t pairs, warmup;
	bool until_decided;
	double timeout_s, confidence, margin;
};

#define MATRIX_SEED_MAX 9007199254740992.0

void matrix_plan_release(struct matrix_plan *p);

/* Both folders are there, and each case's binary where nothing stands before it. */
int matrix_plan_check(const struct matrix_plan *p, struct error *err);

/* The same folder and environment on both sides: whatever differs then is noise. */
bool matrix_plan_is_null(const struct matrix_plan *p);

/* Readable for its owner only: variables may hold secrets. */
int matrix_plan_write(const struct matrix_plan *p, const char *path, struct error *err);

/* Reads it back and the cases with it. Refuses another working directory than the first one's, and a cases file that
 * has changed since. */
int matrix_plan_read(const char *path, struct matrix_plan *ret, struct error *err);

enum precheck matrix_precheck(const char *name);

#endif
