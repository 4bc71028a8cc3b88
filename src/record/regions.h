/* The regions that a run's program marks with libassay: where they are recorded during the run, and the one file that
 * is made of them when it is over. Knows neither the layout of the recordings nor that of the file. */
#ifndef ASSAY_RECORD_REGIONS_H
#define ASSAY_RECORD_REGIONS_H

#include <stdbool.h>

#include "base/error.h"
#include "model/run.h"
#include "record/record.h"
#include "store/rundir.h"

/* Makes the folder for the recordings. Returns what the command's environment gets for them, and `more` ("K=V", ends
 * with NULL; may be NULL) before it: an array that ends with NULL, owned with begin_environment_free; NULL when out of
 * memory. Where the user has named a folder of his own ($ASSAY_DIR) it is left to him. What is not recorded is named in
 * *warnings. */
char **regions_prepare(const struct rundir *dir, const struct record_options *options, const char *const *more,
		       struct warnings *warnings);

/* Whether there are recordings that are not in regions.h5, or may not be. */
bool regions_left(const struct rundir *dir);

struct regions_finishing {
	bool survivors;            /* processes of the run live on and may record more */
	const volatile int *hurry; /* set by a signal: give up; may be NULL */
	void (*progress)(void *context, const char *text); /* may be NULL */
	void *context;
};

/* Makes regions.h5 of the recordings, removes them where no process can add to them, and fills run->regions from the
 * file; nothing where there are none. What is missing or went wrong is named in run->warnings. */
void regions_finish(const struct rundir *dir, const struct regions_finishing *f, struct run *run);

/* Fills run->regions from regions.h5, with its warnings; removes that file where there is nothing in it. */
void regions_tell(const struct rundir *dir, struct run *run);

/* The figures of a file of regions; *ret must be initialised. */
int regions_describe(const char *path, struct run_regions *ret, struct error *err);

/* Removes the recordings of a run whose regions are in a file. All at once: nobody finds a part of them. */
int regions_remove_recordings(const struct rundir *dir, struct error *err);

#endif
