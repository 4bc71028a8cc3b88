/* The calls of a region file in the order in which they began: all together, or thread by thread.
 *
 * A file has its calls by region; here they come by time, in bounded memory whatever the size of the file: it is read
 * once for each slice of some two million calls. Calls whose times make no sense are left out. */
#ifndef ASSAY_REPORT_REGION_ORDER_H
#define ASSAY_REPORT_REGION_ORDER_H

#include <stdbool.h>

#include "model/region_query.h"
#include "store/region_file.h"

/* Which parts a query takes, for region_scan.wanted; owned by the caller, NULL with *err. */
bool *region_wanted_parts(const struct regions *r, const struct region_query *q, struct error *err);

/* Whether a call's times make sense: it does not end before it begins, and differences of two such times, and sums, are
 * no overflow. */
bool region_call_is_sound(int64_t start, int64_t end);

struct region_span {
	int64_t first, last; /* start of the first, end of the last call; both 0 without calls */
	uint64_t calls;      /* with times that make sense */
	uint64_t senseless;  /* that end before they begin, or lie centuries away */
	uint64_t untimed;    /* of which no times were kept */
	uint64_t dropped;    /* that found no room when they were recorded */
};

/* Reads the times of all calls of the wanted parts. */
int region_span_read(struct region_file *f, const bool *wanted, struct region_span *ret, struct error *err);

struct region_call {
	int64_t start, end;
	int64_t call, parent; /* -1: not known, or not asked for */
	uint32_t part;        /* index into the file's parts */
	int32_t thread;       /* -1: not known */
};

/* What is put in order one after the other: calls of threads that follow each other, or all calls. */
struct region_order_group;

struct region_order {
	struct region_file *file;
	const bool *wanted; /* parts */
	struct region_order_group *groups;
	size_t group_count;
	bool by_thread;
	uint64_t slice_calls; /* so many are held and sorted at a time */
};

void region_order_init(struct region_order *o);
void region_order_release(struct region_order *o);

/* All calls together. *o must be initialised; it borrows the file and `wanted`. */
int region_order_by_time(struct region_order *o, struct region_file *f, const bool *wanted,
			 const struct region_span *span, struct error *err);

/* By rank, then by thread, then by time; reads the file once to count. Fails above a million threads. */
int region_order_by_thread(struct region_order *o, struct region_file *f, const bool *wanted, struct error *err);

struct region_visit {
	int64_t from, to; /* calls that have ended before, or begin after, are left out */
	unsigned columns; /* those of call and parent that are wanted, as bits; calls with the same times lie in the
			     order of their numbers, where these are */
	int (*call)(void *context, const struct region_call *c, struct error *err); /* negative with *err stops */
	void *context;
};

/* The calls that began first come first; of several that began together, the longest. As often as one likes. */
int region_order_visit(const struct region_order *o, const struct region_visit *v, struct error *err);

#endif
