/* The only loop over arms: plan, launch, judge, stop, resume. Used by matrix, bench and timeit.
 *
 * It knows neither what an arm is nor how it is shown: both are callbacks. Blocks: each holds every side twice, in an
 * order drawn by chance and then in its mirror image, so that a steady drift falls on all sides alike (for two sides:
 * ABBA or BAAB by coin). */
#ifndef ASSAY_TRIAL_TRIAL_H
#define ASSAY_TRIAL_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define TRIAL_SIDES_MAX 4096

enum trial_stop { TRIAL_DONE, TRIAL_DECIDED, TRIAL_INTERRUPTED, TRIAL_FAILED };

struct trial_options {
	size_t sides;
	size_t pairs;         /* how many times each side runs; odd ones end in a half block */
	/* Stop at a preset look (stats_looks) once `decided` says so; at the latest at trial_pairs_to_look(pairs). */
	bool until_decided;
	/* "random" or NULL (blocks as above); or a fixed one such as "ABBA", repeated: letters A, B, ... of the sides,
	 * each as often as any other. */
	const char *order;
	uint64_t seed;
	size_t warmup;        /* unmeasured runs of each side first, in turn */
	/* Arms that a run before has done already, in the order of the plan (resume). Warm-ups are run again where an
	 * arm is left to do. */
	size_t done;
	/* Runs one arm; `block` and `position` are its place in the design (-1 for a warm-up), `turn` counts this
	 * side's arms, or its warm-ups, from 0. Returns 0, 1 to stop everything (Ctrl-C), or -1 with *err. */
	int (*run)(void *context, size_t side, int block, int position, size_t turn, struct error *err);
	/* After `pairs` whole turns of all sides: is it decided? Only asked at preset looks. May be NULL. */
	bool (*decided)(void *context, size_t pairs);
	/* Before each arm and warm-up: `at` (from 0) of `of`, the most that may come. May be NULL. */
	void (*progress)(void *context, size_t at, size_t of, size_t side);
	void *context;
};

/* The largest preset look that is not more than so many pairs; fewer than the first are as they are: then the end is
 * the only look. */
size_t trial_pairs_to_look(size_t pairs);

/* The order in which the sides run, without warm-ups: side numbers; owned by the caller. The same options give the same
 * order, on every machine. */
int trial_plan(const struct trial_options *o, uint16_t **ret_sides, size_t *ret_count, struct error *err);

/* Returns enum trial_stop; TRIAL_FAILED with *err. */
enum trial_stop trial_run(const struct trial_options *o, struct error *err);

#endif
