/* The calls of a region file in the order in which they began, and what each lies in: the ground of gantt and flame.
 *
 * A file has its calls by region; here they come by time, in bounded memory whatever the size of the file: it is read
 * once for each slice of time that holds some two million calls. */
#ifndef ASSAY_REPORT_PLOT_CALLS_H
#define ASSAY_REPORT_PLOT_CALLS_H

#include <stdbool.h>

#include "model/region_query.h"
#include "model/warnings.h"
#include "store/region_file.h"

struct plot_call {
	int64_t start, end;
	int64_t call, parent; /* -1: not known */
	uint32_t part;        /* index into the file's parts */
	int32_t thread;       /* -1: not known */
};

struct plot_span {
	int64_t first, last; /* start of the first, end of the last call; both 0 without calls */
	uint64_t calls;      /* with times that make sense */
	uint64_t senseless;  /* that end before they begin, or lie centuries away: left out everywhere */
	uint64_t untimed;    /* of which no times were kept */
};

/* Which parts a query takes, for region_scan.wanted; owned by the caller, NULL when out of memory. */
bool *plot_wanted_parts(const struct regions *r, const struct region_query *q);

/* Notes on calls that no figure of times shows are added to *notes. */
int plot_calls_span(struct region_file *f, const bool *wanted, struct plot_span *ret, struct warnings *notes,
		    struct error *err);

/* Whether a call's times make sense. */
bool plot_call_is_sound(int64_t start, int64_t end);

struct plot_visit {
	const bool *wanted;
	int64_t from, to; /* calls that have ended before, or begin after, are left out */
	bool parents;     /* call and parent are wanted */
	int (*call)(void *context, const struct plot_call *c, struct error *err); /* negative with *err stops */
	void *context;
};

/* The calls that began first come first; of several that began together, the longest. */
int plot_calls_visit(struct region_file *f, const struct plot_span *span, const struct plot_visit *v,
		     struct error *err);

/* Lanes: what one thread of a rank does, or a rank where threads are not known. */
struct nest_entry {
	int64_t end, call;
	uint32_t node; /* the caller's */
};

struct nest_lane {
	uint32_t rank;
	int64_t thread;
	struct nest_entry
		*open; /* those that had not ended when the last one began, and some more; the last is innermost */
	size_t open_count, room, sweep_at;
};

struct nest {
	struct nest_lane *lanes; /* in the order of their first calls */
	size_t count, room;
	size_t *slots, slot_count; /* hash of rank and thread */
	uint64_t overlaps;         /* calls that ended after the one that they began in */
};

void nest_init(struct nest *n);
void nest_release(struct nest *n);

/* Enters a call. *ret_lane is its lane (index), *ret_entry what to note its node in (valid until the next call),
 * *ret_parent the node of the call that it lies in, or UINT32_MAX. That is its parent by number where
 * `by_number` and that one is open, else the innermost open call that ends no earlier. */
int nest_enter(struct nest *n, uint32_t rank, const struct plot_call *c, bool by_number, size_t *ret_lane,
	       struct nest_entry **ret_entry, uint32_t *ret_parent, struct error *err);

#endif
