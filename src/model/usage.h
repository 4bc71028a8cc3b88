/* What the whole tree has used up, so that neither what short-lived children used is lost nor anything counted twice.
 *
 * A parent that waits for a child inherits its counters: CPU times and faults in counters of their own, input and
 * output in the same ones. When a parent's inheritance grows, what was counted already of the children that have ended
 * is taken off first, and the rest is news of what nobody saw. A child's end is often noticed a little after its
 * parent's inheritance, so growth waits for one round of readings. Children that nobody waits for keep what was last
 * read. The helper, which is no process of the tree, is the parent of those that have no other. */
#ifndef ASSAY_MODEL_USAGE_H
#define ASSAY_MODEL_USAGE_H

#include <stdint.h>

struct process;
struct process_table;

enum usage {
	USAGE_USER,   /* ns */
	USAGE_SYSTEM, /* ns */
	USAGE_CPU,    /* ns, both, finer */
	USAGE_MINOR_FAULTS,
	USAGE_MAJOR_FAULTS,
	USAGE_READ_BYTES, /* from here on a parent's own counter grows by what it inherits */
	USAGE_WRITE_BYTES,
	USAGE_READ_CHARS,
	USAGE_WRITE_CHARS,
	USAGE_READ_CALLS,
	USAGE_WRITE_CALLS,
	USAGE_KINDS,
};

/* One process's account of one kind. */
struct usage_account {
	int64_t inherited; /* last reading, where it has a counter of its own */
	int64_t owed;      /* counted already, of children that have ended and will be inherited */
	int64_t fresh[2];  /* growth that waits for its round to end */
};

/* New readings of a process's counters; one that goes back is ignored. */
void usage_read(struct process_table *t, struct process *p, enum usage kind, int64_t value);
void usage_read_inherited(struct process_table *t, struct process *p, enum usage kind, int64_t value);

/* Ends a round: every living process has been looked at since the last call, and those that ended are marked dead. */
void usage_end_round(struct process_table *t);

/* The helper has waited for a process, which with all that it inherited had used so much; or it knows how much all
 * that it has waited for had used together. The process must be marked dead before. */
void usage_reaped(struct process_table *t, enum usage kind, int64_t value);
void usage_reaped_in_all(struct process_table *t, enum usage kind, int64_t total);

/* Passes the accounts of a process that has just ended on to its parent; process_died calls it. */
void usage_died(struct process_table *t, struct process *p);

#endif
