/* A job of many recorders: `mpirun -n N assay run -o DIR -- CMD` starts one for each rank. Each records into
 * DIR/rank-N, a run directory like any other; whoever ends last makes one result of all in DIR. They share nothing but
 * that folder and a lock in it, so that any launcher will do, and a rank that dies takes nothing of the others with
 * it. */
#ifndef ASSAY_RECORD_JOB_H
#define ASSAY_RECORD_JOB_H

#include <stdbool.h>

#include "base/error.h"
#include "record/record.h"

struct job {
	int rank, size; /* size 0: this is no rank of a job of several */
	char *id;       /* by which a launcher tells its jobs apart; "" where it does not */
	char *path;     /* DIR, absolute */
	char *rank_path; /* DIR/rank-N */
	char *lock;     /* DIR/job.json, which is also what says of whom the folder is */
	char *presence; /* DIR/job.present: a lock on a byte of it for each recorder that lives */
	int present;    /* that file, open; -1 */
	char *pointer;  /* file that tells the other ranks which folder has been made; NULL: they were told its name */
};

void job_init(struct job *j);
void job_release(struct job *j);

/* Whether the environment says that this process is one rank of several; then rank, size and id are filled. */
bool job_find(struct job *j);

/* Takes this rank's place in the folder `out`; NULL: in assay-runs/DATE-LABEL, which the job's first one makes. The
 * folder must be new or empty for the first, and of this job for the others. Returns enum record_problem. */
int job_join(struct job *j, const char *out, const char *label, struct error *err);

/* For recovering: fills *j from the folder of a job of the past, or of one that goes on. Returns 1; 0 where `path` is
 * no such folder; -1 with *err where it does not say of how many ranks it is. */
int job_open(struct job *j, const char *path, struct error *err);

/* Whether the rank's recorder lives, on whatever machine. */
bool job_rank_lives(const struct job *j, int rank);

/* The result of an opened job, of the ranks that have left theirs, whoever may still run. */
int job_recover(struct job *j, struct record_result *ret, struct error *err);

/* Gives the place back, where the command could not be started: a folder that nobody else has used is removed. */
void job_leave(struct job *j);

/* After this rank has ended, as `status` says. Returns 1 and the job's result as that of one run, where no other rank
 * is still to end; 0 where one is, or is still to begin; -1 with *err where no result could be written. A rank that
 * died is named in the result, and the status is then "partial". */
int job_finish(struct job *j, enum run_status status, struct record_result *ret, struct error *err);

#endif
