/* A matrix: both sides of a comparison over many cases, run by ourselves, interleaved, each arm in a fresh process.
 *
 * It lives in a folder: plan.json (what was asked), TAG/NN_SIDE_NAME (the run directories), matrix.json (rewritten
 * after each arm, so that nothing that has been finished is lost) and table.md (rewritten after each case). It prints
 * nothing. */
#ifndef ASSAY_TRIAL_MATRIX_H
#define ASSAY_TRIAL_MATRIX_H

#include "base/buf.h"
#include "judge/compare.h"
#include "model/arm.h"
#include "model/metric.h"
#include "model/warnings.h"
#include "report/matrix_table.h"
#include "store/noisefile.h"
#include "trial/matrix_plan.h"

struct matrix_case_result {
	const struct matrix_case *what;
	bool selected;        /* by --only */
	const char *skipped;  /* why it is not run; NULL: it is */
	struct arms sides[2]; /* in the order of time */
	json_t *arms;         /* of both, as in matrix.json */
	size_t failed, refused;
	bool done, has_comparison;
	struct comparison comparison;
	json_t *json; /* as in matrix.json */
};

struct matrix {
	struct matrix_plan plan;
	char *folder;
	int lock; /* descriptor of plan.json; -1: none. One process at a time works on a matrix */
	bool null;
	struct metric_set metrics;
	struct noisefile noise;
	bool has_noise;
	struct matrix_case_result *results; /* one per case of the plan */
	/* A sentence for the person at the terminal; and what is being done, with the time left. May be NULL. */
	void (*say)(void *context, const char *text);
	void (*progress)(void *context, const char *text);
	void *context; /* of both */
	/* Of this process's own arms: for the time left. */
	size_t timed;
	double timed_s;
};

void matrix_init(struct matrix *m);
void matrix_release(struct matrix *m);

/* Begins one: takes the plan over, makes the folder (NULL: assay-runs/DATE-matrix) and writes plan.json. All errors are
 * the user's. */
int matrix_begin(struct matrix *m, struct matrix_plan *plan, const char *folder, struct error *err);

/* Goes on with the one in `folder`. */
int matrix_resume(struct matrix *m, const char *folder, struct error *err);

enum matrix_end { MATRIX_COMPLETE, MATRIX_INTERRUPTED, MATRIX_TROUBLE };

/* Runs what is left to do. MATRIX_TROUBLE with *err; what was finished is kept in every case. */
enum matrix_end matrix_run(struct matrix *m, struct error *err);

/* The rows of the table, owned by the caller; NULL when out of memory. */
struct matrix_row *matrix_rows(const struct matrix *m, struct matrix_view *ret);

/* matrix.json as it stands; owned by the caller. */
json_t *matrix_json(const struct matrix *m);

/* Only what the reference tool judges, as it does: where separation decides by request. */
bool matrix_is_reference(const struct matrix *m);

bool matrix_is_complete(const struct matrix *m);

#endif
