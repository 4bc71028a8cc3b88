/* CPU time that processes used, beside what of it was sampled: which ones the kernel did not let us see.
 *
 * Goes by the process table, since no record tells of a process whose events the kernel has taken away. */
#ifndef ASSAY_RECORD_PERF_ACCOUNT_H
#define ASSAY_RECORD_PERF_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/process.h"
#include "record/samples_writer.h"

struct perf_account;

/* `period`: ns of CPU time that a weight of 1 stands for; `kernel`: time in the kernel is sampled, too. */
struct perf_account *perf_account_new(int64_t period, bool kernel);
void perf_account_free(struct perf_account *a); /* NULL accepted */

/* A sample of that process. */
void perf_account_sampled(struct perf_account *a, int pid, uint32_t weight);

/* Takes over what the table knows; call it every 100 ms or so, while the dead of the last while are still in it. */
void perf_account_update(struct perf_account *a, const struct process_table *table, struct samples_writer *writer);

/* Names those that used CPU time and gave no samples, or far too few. */
void perf_account_finish(struct perf_account *a, struct samples_writer *writer);

#endif
