/* Cycles and instructions of the calling thread, the program's part of them, where the kernel and the machine count
 * them. Two descriptors, closed on exec; errno stays as it is. */
#ifndef ASSAY_LIB_MEASURE_COUNTERS_H
#define ASSAY_LIB_MEASURE_COUNTERS_H

#include <stdbool.h>

struct counters {
	int cycles, instructions; /* descriptors; -1: not counted */
};

/* Since they were opened; NaN: not known. */
struct counts {
	double cycles, instructions;
	double idle_s; /* for which they had to make room for other counters: then a difference is none */
};

/* Never fails: what is not there is not counted. */
void counters_open(struct counters *c);
void counters_close(struct counters *c);

struct counts counters_read(const struct counters *c);

/* after - before; NaN where they did not count all the time between. */
struct counts counts_between(const struct counts *before, const struct counts *after);

#endif
