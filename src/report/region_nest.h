/* Which call lies in which, from calls in the order of time. Two questions that differ where calls of one thread
 * overlap: what a call lies in (nest), and where it can stand so that all beside it are in it or beside it (stacks). */
#ifndef ASSAY_REPORT_REGION_NEST_H
#define ASSAY_REPORT_REGION_NEST_H

#include "report/region_lanes.h"
#include "report/region_order.h"

struct nest_entry {
	int64_t end, call;
	uint32_t node; /* the caller's */
};

/* What one thread of a rank does, or a rank where threads are not known. */
struct nest_lane {
	struct nest_entry
		*open; /* those that had not ended when the last one began, and some more; the last is innermost */
	size_t open_count, room, sweep_at;
};

struct nest {
	struct region_lanes threads;
	struct nest_lane *lanes; /* by number of thread; room as those have */
	size_t room;
	uint64_t overlaps; /* calls that ended after the one that they began in */
};

void nest_init(struct nest *n);
void nest_release(struct nest *n);

/* Enters a call. *ret_lane is its lane (index), *ret_entry what to note its node in (valid until the next call),
 * *ret_parent the node of the call that it lies in, or UINT32_MAX. That is its parent by number where
 * `by_number` and that one is open, else the innermost open call that ends no earlier. */
int nest_enter(struct nest *n, uint32_t rank, const struct region_call *c, bool by_number, size_t *ret_lane,
	       struct nest_entry **ret_entry, uint32_t *ret_parent, struct error *err);

/* The ends of the calls of a stack that are open, outermost first. */
struct region_stack {
	int64_t *ends;
	size_t depth, room;
};

/* The stacks of one thread at a time. */
struct region_stacks {
	struct region_stack *items;
	uint32_t most, used;
};

#define REGION_STACK_DEPTH_MAX ((size_t)1 << 16) /* deeper calls count as ones that overlap */

int region_stacks_init(struct region_stacks *s, uint32_t most, struct error *err);
void region_stacks_release(struct region_stacks *s);

/* Before the next thread. */
void region_stacks_clear(struct region_stacks *s);

/* The first stack in which a call is inside or beside every other one. What fits into none of them: `most`. */
int region_stacks_place(struct region_stacks *s, int64_t start, int64_t end, uint32_t *ret, struct error *err);

#endif
