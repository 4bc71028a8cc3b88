#include "record/ring_folder.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/fs.h"

#define MEMORY "/dev/shm"
#define MEMORY_NAME MEMORY "/assay-rings-XXXXXX"
/* A ring takes 0.1 MiB, and the target may need this file system for itself (in containers it often has 64 MiB). */
#define MEMORY_LEAST (UINT64_C(256) << 20)

static bool has_memory(void)
{
	struct statfs st;

	return statfs(MEMORY, &st) == 0 && st.f_type == TMPFS_MAGIC &&
	       (uint64_t)st.f_bavail * (uint64_t)st.f_bsize >= MEMORY_LEAST;
}

static char *in_memory(const char *place)
{
	char *path = has_memory() ? strdup(MEMORY_NAME) : NULL;

	if (path && mkdtemp(path)) {
		if (symlink(path, place) == 0)
			return path;
		rmdir(path);
	}
	free(path);
	return NULL;
}

char *ring_folder_make(const char *place, struct error *err)
{
	char *path = in_memory(place);

	if (path)
		return path;
	path = fs_absolute(place);
	if (path && (mkdir(path, 0777) == 0 || errno == EEXIST))
		return path;
	error_set(err, "%s: cannot make the folder: %s", place, strerror(errno));
	free(path);
	return NULL;
}

void ring_folder_remove(const char *place)
{
	char path[PATH_MAX];
	ssize_t length = readlink(place, path, sizeof path - 1);

	if (length < 0) {
		rmdir(place);
		return;
	}
	path[length] = '\0';
	/* After a restart of the machine the folder is gone, and the link leads nowhere. */
	if (rmdir(path) == 0 || errno == ENOENT)
		unlink(place);
}
