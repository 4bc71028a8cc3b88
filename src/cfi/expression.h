/* DWARF expressions in unwind tables: the few of stubs, of realigned frames and of signal frames. Bounded in steps and
 * in memory. */
#ifndef ASSAY_CFI_EXPRESSION_H
#define ASSAY_CFI_EXPRESSION_H

#include "cfi/frame.h"

/* Evaluates the expression whose length stands at `place`, a distance from the section's origin. `first`, where there
 * is one, is on the stack at its start. */
bool cfi_evaluate(const struct cfi_frame *frame, int32_t place, const uint64_t *first, uint64_t *ret_value);

#endif
