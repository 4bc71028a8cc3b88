/* What limited each phase: every rule and every threshold is in limits.c, nowhere else.
 *
 * A pure function of what was recorded: it reads no files and measures nothing. docs/limits.md explains each rule. */
#ifndef ASSAY_JUDGE_LIMITS_H
#define ASSAY_JUDGE_LIMITS_H

#include <stdbool.h>

#include "model/run.h"

/* Fills run->limits, one per phase, in place of what was there. Fails only when out of memory. */
int limits_judge(struct run *run, struct error *err);

/* Whether a verdict hangs on how fast the memory can be read, so that it is worth measuring (again). */
bool limits_want_bandwidth(const struct run *run);

#endif
