/* One result of the ranks of a job, from their run directories: a function of the folder alone. */
#ifndef ASSAY_RECORD_JOB_RESULT_H
#define ASSAY_RECORD_JOB_RESULT_H

#include "record/job.h"

/* Fills *ret and writes DIR/run.json, summary.md and, where ranks recorded regions, regions.h5. */
int job_result_make(const struct job *j, struct record_result *ret, struct error *err);

#endif
