/* Names of threads, and what else prctl tells: that the program is about to restrict its system calls. */
#ifndef ASSAY_PRELOAD_NAMES_H
#define ASSAY_PRELOAD_NAMES_H

#include "preload/ring.h"

/* The slot's thread is called so from now on: its next sample is preceded by the name. */
void names_set(struct slot *s, const char *name);

#endif
