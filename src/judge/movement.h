/* What moved: bytes between disk, page cache, swap and memory, phase by phase, as sentences.
 *
 * A pure function of what was recorded. */
#ifndef ASSAY_JUDGE_MOVEMENT_H
#define ASSAY_JUDGE_MOVEMENT_H

#include "model/run.h"

/* Fills run->movements, the gravest first, in place of what was there. Fails only when out of memory. */
int movement_judge(struct run *run, struct error *err);

#endif
