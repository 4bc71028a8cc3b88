#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

int fs_read_file(const char *path, size_t limit, struct buf *ret, struct error *err)
{
	/* Opening a FIFO that nobody writes to would wait for ever. */
	CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t total = 0;

	if (fd < 0)
		return error_set(err, "%s: %s", path, strerror(errno));
	for (;;) {
		char *to = buf_reserve(ret, 65536);
		ssize_t got;

		if (!to)
			return error_set(err, "%s: out of memory", path);
		got = read(fd, to, 65536);
		if (got < 0 && errno == EAGAIN)
			poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0)
			return error_set(err, "%s: %s", path, strerror(errno));
		if (got == 0)
			break;
		total += (size_t)got;
		if (total > limit)
			return error_set(err, "%s: larger than the %zu bytes that are read of such a file", path,
					 limit);
		ret->length += (size_t)got;
	}
	ret->text[ret->length] = '\0';
	return 0;
}

int fs_open_unnamed(void)
{
	const char *folder = getenv("TMPDIR");
	CLEANUP(free_cleanup) char *path = fs_join(folder && *folder ? folder : "/tmp", "assay-XXXXXX");
	int fd;

	if (!path)
		return -ENOMEM;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

int fs_write_all(int fd, const void *bytes, size_t length)
{
	const char *from = bytes;

	while (length > 0) {
		ssize_t done = write(fd, from, length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		from += done;
		length -= (size_t)done;
	}
	return 0;
}

/* Writes all and closes; returns 0 or -errno. Some file systems report a full disk only at the close. */
static int write_and_close(int fd, const void *bytes, size_t length)
{
	int failed = fs_write_all(fd, bytes, length);

	if (close(fd) < 0 && !failed)
		failed = -errno;
	return failed;
}

/* Beside `path`, then renamed to it. Returns 0 or -errno. */
static int replace_file(const char *path, mode_t mode, const void *bytes, size_t length)
{
	CLEANUP(free_cleanup) char *beside = NULL;
	int fd, failed;

	if (asprintf(&beside, "%s.%ld.tmp", path, (long)getpid()) < 0) {
		beside = NULL;
		return -ENOMEM;
	}
	unlink(beside); /* what a killed process of the same pid left; O_EXCL follows no link that someone put there */
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	failed = write_and_close(fd, bytes, length);
	if (!failed && rename(beside, path) < 0)
		failed = -errno;
	if (failed)
		unlink(beside);
	return failed;
}

int fs_write_file(const char *path, const void *bytes, size_t length, struct error *err)
{
	CLEANUP(free_cleanup) char *real = realpath(path, NULL);
	struct stat st;
	int failed;

	if (real && stat(real, &st) == 0 && !S_ISREG(st.st_mode)) {
		/* A terminal, a pipe, /dev/null: it must not be replaced by a file. */
		int fd = open(real, O_WRONLY | O_CLOEXEC);

		failed = fd < 0 ? -errno : write_and_close(fd, bytes, length);
	} else {
		failed = replace_file(real ? real : path, real ? st.st_mode & 0777 : 0666, bytes, length);
	}
	return failed ? error_set(err, "%s: %s", path, strerror(-failed)) : 0;
}

int fs_make_dirs(const char *path, struct error *err)
{
	CLEANUP(free_cleanup) char *copy = strdup(path);

	if (!copy)
		return error_set(err, "%s: out of memory", path);
	for (char *slash = copy + 1; *copy; slash++) {
		bool end = *slash == '\0';

		if (*slash != '/' && !end)
			continue;
		*slash = '\0';
		if (mkdir(copy, 0777) < 0 && !(errno == EEXIST && fs_is_dir(copy)))
			return error_set(err, "%s: cannot make the folder: %s", copy, strerror(errno));
		if (end)
			return 0;
		*slash = '/';
	}
	return error_set(err, "an empty name cannot be a folder");
}

bool fs_exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

bool fs_is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int fs_dir_is_empty(const char *path, struct error *err)
{
	DIR *dir = opendir(path);
	int empty = 1;

	if (!dir)
		return error_set(err, "%s: %s", path, strerror(errno));
	errno = 0;
	for (struct dirent *entry; empty && (entry = readdir(dir));)
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	if (empty && errno)
		empty = error_set(err, "%s: %s", path, strerror(errno));
	closedir(dir);
	return empty;
}

char *fs_join(const char *dir, const char *name)
{
	size_t length = strlen(dir);
	char *path;

	return asprintf(&path, "%s%s%s", dir, length && dir[length - 1] == '/' ? "" : "/", name) < 0 ? NULL : path;
}

char *fs_absolute(const char *path)
{
	char cwd[PATH_MAX];

	if (*path == '/')
		return strdup(path);
	return getcwd(cwd, sizeof cwd) ? fs_join(cwd, path) : NULL;
}

/* The folder that the program lies in, "" where unknown. Asked once: later, another mount namespace or another program
 * under the same name may have changed the answer. */
static const char *program_folder(void)
{
	static char folder[PATH_MAX];
	static bool asked;
	ssize_t length;

	if (asked)
		return folder;
	asked = true;
	length = readlink("/proc/self/exe", folder, sizeof folder - 1);
	folder[length > 0 ? length : 0] = '\0';
	if (length > 0)
		*strrchr(folder, '/') = '\0';
	return folder;
}

char *fs_find_companion(const char *name)
{
	CLEANUP(free_cleanup) char *moved = fs_join(program_folder(), ASSAY_PLUGIN_FROM_PROGRAM);
	/* Beside the program, as built; where it was installed, also where the whole tree was moved; as configured. */
	const char *const folders[] = {program_folder(), moved ? moved : "", ASSAY_PLUGIN_DIR};

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		char *path = fs_join(folders[i], name);

		if (path && access(path, R_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}
