/* Where a process's control groups lie: its /proc/PID/cgroup joined with the mounts of the cgroup file systems.
 *
 * Versions 1 and 2 may be mounted side by side, and in a container what is mounted may be a part of the hierarchy. */
#ifndef ASSAY_SOURCE_CGROUP_FIND_H
#define ASSAY_SOURCE_CGROUP_FIND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* A process's folder in one hierarchy; path "": it has none that can be reached. */
struct cgroup_folder {
	char path[PATH_MAX];
	size_t top; /* length of the part of the path that is the mount point: its ancestors lie below that */
	bool root;  /* it is the hierarchy's root, which has next to no figures of its own */
};

/* The folders of the version 1 controllers, and that of version 2. */
struct cgroup_place {
	struct cgroup_folder memory, cpu, cpuacct, unified;
};

/* Finds them for the process whose /proc/PID/cgroup says `membership`. 0, also where there are none; fails only where
 * this process's mounts cannot be read. */
int cgroup_find(const char *membership, struct cgroup_place *ret, struct error *err);

/* Opens a file of the group for reading; the descriptor, or -errno. */
int cgroup_open_in(const struct cgroup_folder *folder, const char *name);

/* Whether figures can be asked for there. */
bool cgroup_usable(const struct cgroup_folder *folder);

#endif
