/* Labels as folder names: each safe, no two the same, whatever the labels are. */
#ifndef ASSAY_TRIAL_LABELS_H
#define ASSAY_TRIAL_LABELS_H

#include "base/json.h"

struct labels {
	json_t *labels, *tags; /* what has been used: label -> index, tag -> the next number to try */
};

/* Fails when out of memory. */
int labels_init(struct labels *l);
void labels_release(struct labels *l);

/* The next label's folder name, owned: rundir_tag, and "-2", "-3", ... where that is taken. Where the label was there
 * before, *ret_tag stays NULL and the index of its first use is returned; else SIZE_MAX, *ret_tag NULL when out of
 * memory. */
size_t labels_add(struct labels *l, const char *label, char **ret_tag);

#endif
