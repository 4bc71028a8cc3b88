/* A matrix's own files: its folder, matrix.json and table.md, and what they say of arms that have been run. */
#ifndef ASSAY_TRIAL_MATRIX_FILES_H
#define ASSAY_TRIAL_MATRIX_FILES_H

#include "trial/matrix.h"
#include "trial/matrix_arm.h"

/* Makes the folder, which must be new or empty; NULL: assay-runs/DATE-matrix. *ret_folder is owned. */
int matrix_make_folder(const char *folder, char **ret_folder, struct error *err);

/* Puts an arm into a case's results: its values from its run.json, its row for matrix.json. */
int matrix_take_arm(struct matrix *m, struct matrix_case_result *r, const struct matrix_arm *arm, struct error *err);

/* Makes r->json from what it holds. */
void matrix_case_json(const struct matrix *m, struct matrix_case_result *r);

int matrix_write_json(const struct matrix *m, struct error *err);
int matrix_write_table(const struct matrix *m, struct error *err);

/* Takes up the arms that matrix.json names, but for the one that was interrupted. Without that file there are none. */
int matrix_load(struct matrix *m, struct error *err);

#endif
