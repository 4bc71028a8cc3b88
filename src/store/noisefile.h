/* Noise floors: the relative difference that a metric has shown with nothing changed.
 *
 * A file of them is {LABEL: {METRIC: FLOOR}}, as made from the matrix.json of a null comparison (the same build on both
 * sides), or {METRIC: FLOOR} for any label. A label whose floors come from a null comparison that found a difference
 * has "untrusted": true beside them. */
#ifndef ASSAY_STORE_NOISEFILE_H
#define ASSAY_STORE_NOISEFILE_H

#include <stdbool.h>

#include "base/json.h"
#include "model/metric.h"
#include "model/warnings.h"

struct noisefile {
	json_t *root; /* checked; owned */
	bool flat;    /* the same floors for every label */
};

void noisefile_init(struct noisefile *n);
void noisefile_release(struct noisefile *n);

/* Refuses what is no floor (negative, text) by label and metric. */
int noisefile_read(const char *path, struct noisefile *ret, struct error *err);

/* The only label of a file that has just one, NULL in any other case. */
const char *noisefile_only_label(const struct noisefile *n);

/* Fills floors[] for each metric of the set, NaN where the file has none. False where it does not know the label; a
 * flat file knows every label, NULL included. */
bool noisefile_floors(const struct noisefile *n, const char *label, const struct metric_set *metrics, double *floors);

/* Whether it has floors of that label. */
bool noisefile_knows(const struct noisefile *n, const char *label);

/* False where the null comparison of that label found a difference. */
bool noisefile_trusted(const struct noisefile *n, const char *label);

/* A note for each name among the floors of that label that is none of the metrics; phases may come later. */
void noisefile_unknown(const struct noisefile *n, const char *label, const struct metric_set *metrics, const char *path,
		       struct warnings *notes);

/* The labels as "a, b, c", cut where there are many; owned by the caller. */
char *noisefile_labels(const struct noisefile *n);

/* Floors from a matrix.json, ours or the reference tool's: the whole spread of a metric over both sides, relative to
 * its mean. *notes tells what is not to be trusted or was passed over. NULL with *err where it is no matrix. */
json_t *noisefile_from_matrix(const json_t *matrix, const char *path, struct warnings *notes, struct error *err);

#endif
