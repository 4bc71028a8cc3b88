/* Phases: what the target was doing when, without gaps or overlaps from its start to its end.
 *
 * Pure data and functions. Times are ns of CLOCK_MONOTONIC. Where marks come from is not known here. */
#ifndef ASSAY_MODEL_PHASE_H
#define ASSAY_MODEL_PHASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/warnings.h"

enum phase_group {
	GROUP_LOAD,
	GROUP_WARMUP,
	GROUP_PREFILL,
	GROUP_DECODE,
	GROUP_SERVING,
	GROUP_SHUTDOWN,
	GROUP_OTHER,
	GROUP_COUNT,
};

#define PHASE_NAME_MAX 64 /* bytes, the ending 0 included; longer names are cut at a character */

const char *phase_group_name(enum phase_group group);

/* The group of that name; GROUP_OTHER for any other word. */
enum phase_group phase_group_of(const char *name);

/* From this moment on the target was in the phase `name`. */
struct mark {
	int64_t t;
	enum phase_group group;
	char name[PHASE_NAME_MAX];
};

struct marks {
	struct mark *items;
	size_t count, room;
};

void marks_init(struct marks *m);
void marks_release(struct marks *m);

/* Appends; control characters in the name become '?', invalid UTF-8 U+FFFD, an empty name "unnamed". */
int marks_add(struct marks *m, int64_t t, enum phase_group group, const char *name, size_t length, struct error *err);

struct phase {
	char name[PHASE_NAME_MAX];
	enum phase_group group;
	int64_t start, end;
};

struct phases {
	struct phase *items;
	size_t count, room;
};

void phases_init(struct phases *p);
void phases_release(struct phases *p);

/* Phases from marks over [start, end]: each lasts until the next mark; what comes before the first one is called
 * `before` (skipped where the first mark is at `start`). No marks: one phase "run". A mark that goes back in time, or
 * lies outside, is moved to the nearest time allowed and counted in *warnings. Phases of no length are left out
 * without `keep_empty`, the last one excepted. */
int phases_from_marks(struct phases *ret, const struct marks *marks, int64_t start, int64_t end, const char *before,
		      bool keep_empty, struct warnings *warnings, struct error *err);

/* The phase that a moment is in: the last one that has begun by then; SIZE_MAX before the first. */
size_t phases_at(const struct phases *p, int64_t t);

/* Is that the name of the phase, or of its group? */
bool phase_is(const struct phase *p, const char *name);

/* Seconds spent in a group; NaN where no phase is of it. */
double phases_group_seconds(const struct phases *p, enum phase_group group);

#endif
