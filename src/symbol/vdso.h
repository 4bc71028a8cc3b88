/* The kernel's library in every process, as a file: this process's own stands for that of the target, once its build-id
 * has been found to be the same. */
#ifndef ASSAY_SYMBOL_VDSO_H
#define ASSAY_SYMBOL_VDSO_H

#include "base/error.h"

/* A descriptor that the caller closes. Fails where this process has none. */
int vdso_open(struct error *err);

#endif
