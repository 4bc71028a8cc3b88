/* The clocks of the processes of a job: from what a process' events say to CLOCK_MONOTONIC of rank 0. */
#ifndef ASSAY_STORE_REGION_CLOCKS_H
#define ASSAY_STORE_REGION_CLOCKS_H

#include "store/region_segments.h"
#include "store/region_time.h"

/* Computers, that is boots of one: processes of one share their clocks. */
struct region_machine {
	char boot_id[40];
	double ns_per_tick; /* of the time stamp counter, from the recording that tells it best; 0: none does */
	int64_t span;       /* ns that this is from */
	const struct region_log *offsets; /* a process that knows the offset to rank 0; NULL: none */
	int64_t wall_offset; /* CLOCK_REALTIME minus CLOCK_MONOTONIC, of its first process */
};

struct region_machines {
	struct region_machine *machines; /* by boot_id */
	size_t count;
	size_t reference; /* that of rank 0, or of the lowest rank there is */
};

void region_machines_release(struct region_machines *m);

/* reference: the process whose clock is the job's. */
int region_machines_find(const struct region_job *j, const struct region_log *reference, struct region_machines *ret,
			 struct error *err);
size_t region_machines_of(const struct region_machines *m, const struct region_log *l);

struct region_clocks {
	struct region_ramp own;    /* its clock to its CLOCK_MONOTONIC */
	struct region_ramp offset; /* that to rank 0's */
	double ns_per_unit;
	bool usable;    /* false: nothing tells how long a tick is */
	bool uncertain; /* the readings lie so close together that lengths may be wrong by percents */
	bool by_wall;   /* put beside rank 0 by the time of day, for want of anything better */
};

void region_clocks_release(struct region_clocks *c);

/* readings: what the process' files of calls say, beside its table; not finished. */
int region_clocks_make(const struct region_log *l, const struct region_machines *machines,
		       const struct region_ramp *readings, struct region_clocks *ret, struct error *err);

/* ns of CLOCK_MONOTONIC of rank 0, of a time of the process' clock, and of its CLOCK_MONOTONIC. */
int64_t region_clocks_at(struct region_clocks *c, uint64_t clock);
int64_t region_clocks_mono(struct region_clocks *c, int64_t mono_ns);

#endif
