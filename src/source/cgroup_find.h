/* Where a process's control groups lie: /proc/PID/cgroup joined with the mounts of the cgroup file systems.
 *
 * Versions 1 and 2 may be mounted side by side, and in a container what is mounted may be a part of the hierarchy. */
#ifndef ASSAY_SOURCE_CGROUP_FIND_H
#define ASSAY_SOURCE_CGROUP_FIND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* A process's folder in one hierarchy; path "": it has none that can be reached. */
struct cgroup_folder {
	char path[PATH_MAX];
	size_t top; /* length of the part of the path that is the mount point: its ancestors lie below that */
	bool root;  /* it is the hierarchy's root, which has next to no figures of its own */
};

/* Finds the folder of the version 1 controller ("memory"), or of version 2 (""), of the process; pid 0: this process.
 * 0 with ret->path "" where there is none; fails only where /proc cannot be read. */
int cgroup_find(pid_t pid, const char *controller, struct cgroup_folder *ret, struct error *err);

#endif
