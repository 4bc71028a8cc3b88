#include "record/ring_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/cleanup.h"
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

/* Where the folder is, owned; NULL where the link is none that was made here (or there is no memory). */
static char *find(const char *place)
{
	char path[PATH_MAX];
	ssize_t length = readlink(place, path, sizeof path - 1);
	size_t prefix = sizeof MEMORY_NAME - 7;

	if (length < 0)
		return errno == EINVAL ? strdup(place) : NULL;
	path[length] = '\0';
	return strncmp(path, MEMORY_NAME, prefix) == 0 && !strchr(path + prefix, '/') ? strdup(path) : NULL;
}

int ring_folder_open(const char *place)
{
	CLEANUP(free_cleanup) char *path = find(place);
	int fd;

	if (!path)
		return -ENOENT;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void ring_folder_clear(const char *place)
{
	int fd = ring_folder_open(place);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		fd_cleanup(&fd);
		return;
	}
	/* One that is a folder refuses; what stays is seen when the folder itself is to be removed. */
	while ((entry = readdir(dir)))
		unlinkat(fd, entry->d_name, 0);
	closedir(dir);
}

static void say_left(const char *path, struct warnings *warnings)
{
	if (warnings)
		warnings_add(warnings,
			     "The folder for files of samples stays, since something else was put into it or in its "
			     "place: %s.",
			     path);
}

void ring_folder_remove(const char *place, struct warnings *warnings)
{
	CLEANUP(free_cleanup) char *path = find(place);
	struct stat st;

	if (!path) {
		/* Whatever a link leads to now is not ours. */
		if (lstat(place, &st) == 0)
			say_left(place, warnings);
		return;
	}
	/* After a restart of the machine the folder is gone, and the link leads nowhere. */
	if (rmdir(path) == 0 || errno == ENOENT)
		unlink(place);
	else
		say_left(path, warnings);
}
