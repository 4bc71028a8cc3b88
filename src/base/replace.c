#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BUFFER ((size_t)256 << 10)

void replacement_init(struct replacement *r)
{
	*r = (struct replacement){0};
}

void replacement_release(struct replacement *r)
{
	if (r->out)
		fclose(r->out);
	if (r->beside)
		unlink(r->beside);
	free(r->beside);
	free(r->path);
	free(r->buffer);
	replacement_init(r);
}

/* The descriptor, or -1 and errno. */
static int open_beside(struct replacement *r, mode_t mode)
{
	if (asprintf(&r->beside, "%s.%ld.tmp", r->path, (long)getpid()) < 0) {
		r->beside = NULL;
		errno = ENOMEM;
		return -1;
	}
	/* What a killed process of the same pid left; O_EXCL follows no link that someone put there. */
	unlink(r->beside);
	return open(r->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
}

int replacement_open(struct replacement *r, const char *path, struct error *err)
{
	char *real = realpath(path, NULL);
	struct stat st = {.st_mode = S_IFREG | 0666};
	int fd;

	r->path = real ? real : strdup(path);
	if (!r->path)
		return error_set(err, "%s: out of memory", path);
	/* A descriptor's link in /proc may name what has no path, as a pipe. */
	if (stat(path, &st) < 0) {
		if (real)
			return error_set(err, "%s: %s", path, strerror(errno));
		st.st_mode = S_IFREG | 0666;
	}
	fd = S_ISREG(st.st_mode) ? open_beside(r, st.st_mode & 0777) : open(r->path, O_WRONLY | O_CLOEXEC);
	r->out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!r->out) {
		error_set(err, "%s: %s", path, strerror(errno));
		fd_cleanup(&fd);
		return -1;
	}
	r->buffer = malloc(BUFFER);
	if (r->buffer)
		setvbuf(r->out, r->buffer, _IOFBF, BUFFER);
	return 0;
}

int replacement_commit(struct replacement *r, struct error *err)
{
	int failed;

	errno = 0;
	failed = ferror(r->out);
	if (fclose(r->out) != 0 || failed) {
		r->out = NULL;
		return error_set(err, "%s: it cannot be written: %s", r->path,
				 errno ? strerror(errno) : "an earlier write failed");
	}
	r->out = NULL;
	if (r->beside && rename(r->beside, r->path) < 0)
		return error_set(err, "%s: %s", r->path, strerror(errno));
	free(r->beside);
	r->beside = NULL;
	return 0;
}
