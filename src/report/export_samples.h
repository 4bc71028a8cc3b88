/* Which samples of a profile an export holds, and their sums: what all exporters begin with. */
#ifndef ASSAY_REPORT_EXPORT_SAMPLES_H
#define ASSAY_REPORT_EXPORT_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "report/exporter.h"

struct export_samples {
	uint32_t *items;    /* indices of profile->samples: thread by thread, each in the order of time */
	size_t count;
	size_t *first;      /* those of thread i are [first[i], first[i + 1]) of items */
	uint32_t *threads;  /* those that have samples, the one of most weight first */
	size_t thread_count;
	uint64_t *weights;  /* by thread, periods */
	uint64_t weight;    /* of all */
	uint64_t period_ns; /* whole: sums of weights times this are exact */
};

void export_samples_init(struct export_samples *s);
void export_samples_release(struct export_samples *s);

/* *ret must be initialised. Returns enum export_problem. */
int export_samples_choose(struct export_samples *ret, const struct export_input *in, struct error *err);

/* Weight by a key (a thread, a process, a phase, as the exporter likes) and a place. */
struct export_sum {
	uint64_t key;
	uint32_t node;
	uint64_t weight;
};

/* Sorts by key, then by node, and joins equal ones; returns how many are left. */
size_t export_sums_join(struct export_sum *sums, size_t count);

/* The program's file without its folder, "?" where it is not known; borrowed from the profile. */
const char *export_process_name(const struct profile_image *image);

#endif
