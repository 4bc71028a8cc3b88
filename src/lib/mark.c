/* Marks of phases, from inside the program that is measured. It knows libc only and keeps nothing between calls: the
 * file is opened for each mark, so that a fork, a daemon that closes all its descriptors, or a program that counts them
 * sees no difference. Nothing is allocated, errno stays as it was, and no signal is provoked. */
#include <assay.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/export.h"
#include "lib/last_error.h"

#define NAME_MAX_BYTES 4000u
#define TIME_MAX_BYTES 24u /* 19 digits of an int64_t, a blank, and some to spare */

/* "NS NAME\n"; returns its length. A name that is too long is cut between two characters of UTF-8. */
static size_t compose(char line[TIME_MAX_BYTES + NAME_MAX_BYTES + 1], int64_t ns, const char *name)
{
	size_t length = strnlen(name, NAME_MAX_BYTES + 1), used;

	if (length > NAME_MAX_BYTES) {
		length = NAME_MAX_BYTES;
		while (length > NAME_MAX_BYTES - 4 && ((unsigned char)name[length] & 0xc0) == 0x80)
			length--;
	}
	used = (size_t)snprintf(line, TIME_MAX_BYTES, "%" PRId64 " ", ns);
	for (size_t i = 0; i < length; i++)
		line[used++] = name[i] == '\n' || name[i] == '\r' ? ' ' : name[i];
	line[used++] = '\n';
	return used;
}

/* Whether a write of `length` bytes at the end of the file is sure to bring no signal: a pipe could answer with
 * SIGPIPE, a file above the limit on sizes with SIGXFSZ. Says why not. */
static bool is_harmless(int fd, const char *path, size_t length)
{
	struct rlimit limit;
	struct stat st;

	if (fstat(fd, &st) < 0) {
		last_error_set("%s: %s", path, strerror(errno));
		return false;
	}
	if (!S_ISREG(st.st_mode)) {
		last_error_set("%s: ASSAY_MARKERS names something that is not a file", path);
		return false;
	}
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && (uint64_t)st.st_size + length > limit.rlim_cur) {
		last_error_set("%s: %s", path, strerror(EFBIG));
		return false;
	}
	return true;
}

static int append_line(const char *path, const char *line, size_t length)
{
	/* Without O_CREAT: a run directory that was removed must not come back as a stray file. */
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), result = 0;
	ssize_t done;

	if (fd < 0)
		return last_error_set("%s: %s", path, strerror(errno));
	if (!is_harmless(fd, path, length)) {
		result = -1;
	} else {
		/* One write with O_APPEND: lines of several threads and processes never mix. */
		do
			done = write(fd, line, length);
		while (done < 0 && errno == EINTR);
		if (done < 0)
			result = last_error_set("%s: %s", path, strerror(errno));
		else if ((size_t)done < length)
			result = last_error_set("%s: %s", path, strerror(ENOSPC));
	}
	close(fd);
	return result;
}

ASSAY_EXPORT int assay_mark(const char *name)
{
	char line[TIME_MAX_BYTES + NAME_MAX_BYTES + 1];
	struct timespec now;
	const char *path;
	int saved = errno, result;

	clock_gettime(CLOCK_MONOTONIC, &now);
	/* Not for programs with more rights than their user: they must not append to a file of his choice. */
	path = secure_getenv("ASSAY_MARKERS");
	if (!name || !*name)
		result = last_error_set("a mark needs a name");
	else if (!path || !*path)
		result = last_error_set("nothing is being recorded: ASSAY_MARKERS is not set");
	else
		result = append_line(path, line, compose(line, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, name));
	errno = saved;
	return result;
}

ASSAY_EXPORT const char *assay_version(void)
{
	return ASSAY_VERSION;
}
