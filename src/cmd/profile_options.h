/* What `assay profile` is asked for, and profiles of finished runs: shared by its two forms, showing and comparing. */
#ifndef ASSAY_CMD_PROFILE_OPTIONS_H
#define ASSAY_CMD_PROFILE_OPTIONS_H

#include "cmd/run_options.h"
#include "model/hotspots.h"
#include "store/finished.h"

#define PROFILE_COLUMNS_MAX 200 /* names are long: no other table of ours uses so wide a terminal */

struct profile_args {
	struct run_options run;
	const char *by, *group, *focus, *json;
	struct option_list include, exclude;
	double hz, top, confidence; /* below 0: not given */
	bool inclusive, fail_on_change;
};

/* The query of these options; borrows from them. `top` is the number of rows where --top was not given. */
struct hotspot_query profile_query(const struct profile_args *a, size_t top);

/* What the query names does not occur: -1 and what there is. `h` was summed with it. In a comparison a function may
 * occur on one side alone. */
int profile_query_check(const struct hotspot_query *q, const struct hotspots *h, const struct profile *p,
			const struct phases *phases, struct error *err);

/* A finished run with its samples, its names and its phases. */
struct loaded_profile {
	struct rundir dir;
	struct finished_run run;
	struct profile profile;
};

/* Whether the run was sampled at all, as far as its files tell. */
bool profile_was_recorded(const struct rundir *dir);

void loaded_profile_init(struct loaded_profile *l);
void loaded_profile_release(struct loaded_profile *l);

/* *l must be initialised. What is missing is told on stderr. Fails for a run that was not sampled. */
int loaded_profile_read(struct loaded_profile *l, const char *path, struct error *err);

/* An answer on standard output, or to the file that --json=FILE names. -1 and *err where it could not be. */
int profile_put_json(const struct profile_args *a, const json_t *root, struct error *err);

/* `assay profile diff A B`: returns the exit status, or -1 with *err for wrong input. */
int profile_compare(const struct profile_args *a, const char *first, const char *second, struct error *err);

#endif
