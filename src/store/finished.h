/* What is asked of a finished run besides its figures: what it was, when it ran, and its phases, in the clock of its
 * records. For whoever lays samples or series of a run beside its phases. */
#ifndef ASSAY_STORE_FINISHED_H
#define ASSAY_STORE_FINISHED_H

#include "base/error.h"
#include "model/phase.h"
#include "store/rundir.h"

struct finished_run {
	int64_t start, end; /* of the command, ns of CLOCK_MONOTONIC */
	struct phases phases;
	char *label, *command; /* owned; NULL where run.json has none */
	double wall_s, cpu_s;  /* NaN where run.json has none */
};

void finished_init(struct finished_run *f);
void finished_release(struct finished_run *f);

/* *ret must be initialised, and may be partly filled on failure. Fails where run.json is missing or is none; phases in
 * it that cannot be (without a name, of no time, backwards) are left out. */
int finished_read(const struct rundir *dir, struct finished_run *ret, struct error *err);

#endif
