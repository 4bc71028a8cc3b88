/* Metrics: what two runs are compared by. Each is one row of one table; no code switches on a metric's name. */
#ifndef ASSAY_MODEL_METRIC_H
#define ASSAY_MODEL_METRIC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct metric_desc {
	const char *name;  /* "decode_tps"; of a phase "phase:NAME" */
	const char *unit;  /* "tokens/s", "MiB", "s", "J/token", "count" */
	const char *path;  /* in run.json, keys separated by dots: "throughput.decode.tokens_per_s"; NULL: of a phase */
	const char *title; /* for tables: "decode" */
	int direction;     /* +1: larger is better, -1: smaller is better */
	double relative_floor, absolute_floor; /* the smallest difference that can mean anything; absolute in `unit` */
	bool reference;    /* one of the eight that the separation rule knows */
	bool gated;        /* counts for the overall verdict; others are shown */
};

/* The fixed ones: the reference's eight first, in its order. */
extern const struct metric_desc metric_table[];
extern const size_t metric_count;

/* The metrics of a comparison: the fixed ones, and those that its runs bring along (seconds of each phase name, cases
 * of benchmark files). Owns the names of the latter. */
struct metric_set {
	struct metric_desc *items;
	size_t count, room;
	size_t *slot, slots; /* index by name: item number + 1, 0 where free */
};

int metric_set_init(struct metric_set *s, struct error *err); /* with the fixed ones */
void metric_set_release(struct metric_set *s);

/* Index by name; SIZE_MAX where there is none. */
size_t metric_find(const struct metric_set *s, const char *name);

/* The index of a metric of that name, added where it is new (name, unit and title are copied, path stays NULL).
 * SIZE_MAX when out of memory. */
size_t metric_add(struct metric_set *s, const struct metric_desc *desc);

#endif
