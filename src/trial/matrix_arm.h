/* One arm of a matrix: the command in a fresh process, recorded in a run directory. */
#ifndef ASSAY_TRIAL_MATRIX_ARM_H
#define ASSAY_TRIAL_MATRIX_ARM_H

#include "trial/matrix.h"

struct matrix_arm {
	size_t side;
	int block, position; /* -1: a warm-up */
	size_t number;       /* of the arm in its case, or of the side's warm-up */
	/* Results. */
	char *folder; /* its run directory, below the matrix's; NULL where there is none; owned */
	char status[16]; /* as in run.json, or "refused", "not started", "lost" */
	char why[400];   /* "" or a sentence */
};

/* Runs it. 0; 1 where it was ended by a signal meant for us (its status is "interrupted", or it has none); -1 with *err
 * where assay could not do its work. */
int matrix_arm_run(const struct matrix *m, const struct matrix_case *c, struct matrix_arm *arm, struct error *err);

#endif
