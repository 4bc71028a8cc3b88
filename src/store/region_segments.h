/* Reading what libassay left in a folder: its processes, their tables, the calls of their threads. From programs that
 * ended well, were killed, or still run. Nothing is believed. */
#ifndef ASSAY_STORE_REGION_SEGMENTS_H
#define ASSAY_STORE_REGION_SEGMENTS_H

#include "base/error.h"
#include "model/regions.h"
#include "wire/regions.h"

struct region_job; /* all processes of a folder */

/* Fails where the folder cannot be read. One without recordings is a job of no processes. */
int region_job_open(const char *folder, struct region_job **ret, struct error *err);
void region_job_free(struct region_job *j);
void region_job_cleanup(struct region_job **j);

size_t region_job_processes(const struct region_job *j);

#endif
