/* The counters of a run over time, on their way into the record: which series there are, and the rule that a point is
 * kept when its value changes and once a second.
 *
 * Knows neither where values come from nor where they are written: finished ticks go to two callbacks. */
#ifndef ASSAY_MODEL_TIMELINE_H
#define ASSAY_MODEL_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum series_kind {
	SERIES_GAUGE = 0,   /* a level: holds until the next point */
	SERIES_COUNTER = 1, /* a running total: only differences mean anything; linear between points */
};

/* All strings are borrowed for the call only. `name` uses dots, is unique, e.g. "memory.anon"; unit: "bytes", "s",
 * "count", "share"; source: the source's name; scope: "tree", "machine", "cgroup", "process PID", "disk NAME". */
struct series_desc {
	const char *name, *unit, *source, *scope;
	enum series_kind kind;
};

struct timeline_point {
	uint32_t id;
	double value;
};

struct timeline_sink {
	void *context;
	void (*define)(void *context, uint32_t id, const struct series_desc *desc);
	void (*points)(void *context, int64_t t, const struct timeline_point *points, size_t count);
};

struct timeline {
	struct timeline_sink sink;
	struct timeline_last *last; /* one per series */
	size_t count, room;
	struct timeline_point *pending;
	size_t pending_count;
	uint64_t kept, offered;
};

void timeline_init(struct timeline *tl, struct timeline_sink sink);
void timeline_release(struct timeline *tl);

/* Defines a series and returns its id, or -1 when out of memory or past 100,000 series. */
int timeline_define(struct timeline *tl, const struct series_desc *desc);

/* Offers a value at the tick under way; NaN and a negative id are ignored. */
void timeline_put(struct timeline *tl, int id, int64_t t, double value);

/* Ends the tick: hands what is to be kept to the sink. */
void timeline_flush(struct timeline *tl, int64_t t);

/* From now on, until the next flush, every offered value is kept: the ends of a run and of a phase are exact. */
void timeline_keep_all(struct timeline *tl);

#endif
