/* What a control group may use: the smallest limit on the way up to its mount point, and who sets it. */
#ifndef ASSAY_SOURCE_CGROUP_LIMITS_H
#define ASSAY_SOURCE_CGROUP_LIMITS_H

#include "source/cgroup_find.h"

struct cgroup_limit {
	double value;  /* NaN: none */
	size_t length; /* of the path of the folder that sets it; of the group's own where there is none */
};

struct cgroup_limit cgroup_memory_limit(const struct cgroup_folder *folder, bool version_1); /* bytes */
struct cgroup_limit cgroup_cpu_quota(const struct cgroup_folder *folder, bool version_1);    /* CPUs */

#endif
