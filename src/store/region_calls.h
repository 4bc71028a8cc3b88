/* Reading the file of calls of one thread (or of several, one after the other), as libassay writes it: wire/regions.h.
 * Nothing is believed, and nothing is read through a mapping: a file that shrinks meanwhile is an error, no signal. */
#ifndef ASSAY_STORE_REGION_CALLS_H
#define ASSAY_STORE_REGION_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/regions.h"

struct region_calls;

struct region_calls_facts {
	uint32_t clock;  /* enum region_clock */
	uint64_t events; /* that are committed and in the file */
	uint64_t dropped;
	int stopped;     /* errno of what ended the writing, 0: nothing did */
	bool closed;
	uint32_t thread; /* index of the thread that wrote last, UINT32_MAX: none */
	uint64_t last;   /* a recent time of its clock, 0: not known */
	uint64_t troubles[REGION_TROUBLES];
};

/* A region that was open when the writer ended. */
struct region_open {
	uint64_t start;
	uint32_t region;
	uint16_t depth;
};

/* What is only added up; clock units. */
struct region_sum {
	uint32_t region;
	uint64_t calls, timed, total, exclusive, shortest, longest, dropped, dropped_total;
};

int region_calls_open(const char *path, struct region_calls **ret, struct error *err);
void region_calls_free(struct region_calls *c);
void region_calls_cleanup(struct region_calls **c);

const struct region_calls_facts *region_calls_facts(const struct region_calls *c);

/* Events [first, first + n), which the caller knows to be there. */
int region_calls_read(struct region_calls *c, uint64_t first, size_t n, struct region_event *out, struct error *err);

/* Regions that are open, outermost first, without those that say nothing (mode count). *ret: owned, may be NULL. */
int region_calls_stack(struct region_calls *c, struct region_open **ret, size_t *ret_count, struct error *err);

/* Sums of ids 1 .. ids - 1 that are not all zero. *ret: owned, may be NULL. */
int region_calls_sums(struct region_calls *c, uint32_t ids, struct region_sum **ret, size_t *ret_count,
		      struct error *err);

/* The histogram of a region, REGION_BUCKETS numbers. */
int region_calls_buckets(struct region_calls *c, uint32_t region, uint64_t *out, struct error *err);

#endif
