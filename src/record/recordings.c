#include "record/recordings.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/procfs.h"

/* One that has ended and was not waited for writes no more. */
static bool is_running(pid_t pid)
{
	char stat[512];
	const char *name_end;

	if (kill(pid, 0) < 0 && errno != EPERM)
		return false;
	if (procfs_read_file(stat, sizeof stat, "%d/stat", (int)pid) <= 0)
		return true;
	name_end = strrchr(stat, ')');
	return !name_end || strncmp(name_end, ") Z", 3) != 0;
}

bool recordings_look(const char *folder, const char *prefix, bool *ret_writing)
{
	DIR *d = opendir(folder);
	size_t length = strlen(prefix);
	bool found = false;

	*ret_writing = false;
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		long pid;

		if (strncmp(e->d_name, prefix, length) != 0)
			continue;
		found = true;
		pid = strtol(e->d_name + length, NULL, 10);
		*ret_writing |= pid > 0 && pid <= INT32_MAX && is_running((pid_t)pid);
	}
	if (d)
		closedir(d);
	return found;
}
