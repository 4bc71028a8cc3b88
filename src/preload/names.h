/* Names of threads, and what else prctl tells: that the program is about to restrict its system calls. */
#ifndef ASSAY_PRELOAD_NAMES_H
#define ASSAY_PRELOAD_NAMES_H

#include "preload/ring.h"

/* The slot's thread is called so from now on: its next sample is preceded by the name. */
void names_set(struct slot *s, const char *name);

/* A call of prctl that is about to be made: it may restrict what the program, and so we, may do. */
void names_look_at_prctl(int option, unsigned long argument);

#endif
