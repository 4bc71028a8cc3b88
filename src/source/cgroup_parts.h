/* What is read of a control group: the series, and the files that they come from in versions 1 and 2. */
#ifndef ASSAY_SOURCE_CGROUP_PARTS_H
#define ASSAY_SOURCE_CGROUP_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/timeline.h"

enum cgroup_figure {
	MEMORY_CURRENT,
	MEMORY_PEAK,
	MEMORY_ANON,
	MEMORY_FILE,
	MEMORY_SWAP,
	MEMORY_LIMIT,
	REFAULTS_FILE,
	REFAULTS_ANON,
	MAJOR_FAULTS,
	OOM_KILLS,
	CPU_USAGE,
	CPU_PERIODS,
	CPU_THROTTLED_PERIODS,
	CPU_THROTTLED,
	CPU_QUOTA,
	CPU_SOME,
	CPU_FULL,
	MEMORY_SOME,
	MEMORY_FULL,
	IO_SOME,
	IO_FULL,
	CGROUP_FIGURES,
};

extern const struct cgroup_series {
	const char *name, *unit;
	enum series_kind kind;
} cgroup_series[CGROUP_FIGURES];

#define CGROUP_KEYS_MAX 7

/* A file, and what is read from it: one number, numbers behind keys, or two totals of pressure. */
struct cgroup_part {
	const char *file; /* NULL ends a list of parts */
	enum { NUMBER, KEYS, PRESSURE_TOTALS } shape;
	bool seldom; /* read once a second only */
	struct {
		enum cgroup_figure figure;
		const char *key;
		double factor; /* to the series' unit; 0 ends the list */
	} figures[CGROUP_KEYS_MAX];
};

extern const struct cgroup_part cgroup_memory_v1[], cgroup_memory_v2[];
extern const struct cgroup_part cgroup_usage_v1[], cgroup_usage_v2[];
extern const struct cgroup_part cgroup_throttling_v1[], cgroup_throttling_v2[];
extern const struct cgroup_part cgroup_pressure_v2[];

/* Fills the value of each of the part's figures from its open file, NaN where it is not there; returns how many are. */
size_t cgroup_read_part(const struct cgroup_part *part, int fd, double values[CGROUP_KEYS_MAX]);

#endif
