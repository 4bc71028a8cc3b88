#include "exec/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* Where execvp looks when there is no PATH. */
#define DEFAULT_PATH "/bin:/usr/bin"

extern char **environ;

/* What the target's process sends through `report`: the time, and after it exec's errno if exec fails. */
struct report {
	int64_t t;
	int32_t code;
	int32_t reserved;
};

static void write_fully(int fd, const void *bytes, size_t length)
{
	/* Less than PIPE_BUF into an empty pipe: whole or not at all. Where it fails, the reader is gone. */
	while (write(fd, bytes, length) < 0 && errno == EINTR)
		;
}

/* Reads what was written in one piece of `length` bytes. 0 at the end of the file, negative where nothing is there. */
static ssize_t read_piece(int fd, void *bytes, size_t length)
{
	ssize_t n;

	while ((n = read(fd, bytes, length)) < 0 && errno == EINTR)
		;
	return n;
}

/* The target's process. It shares all signals that were pressed meanwhile, blocked; they come through before exec. */
static _Noreturn void become_target(char *const *argv, char *const *environment, const struct caller *caller, int out,
				    int err_fd, int hold, int report)
{
	struct report r = {.code = 0};
	char go;

	if (read_piece(hold, &go, 1) != 1)
		_exit(126);
	if (out >= 0)
		dup2(out, STDOUT_FILENO);
	if (err_fd >= 0)
		dup2(err_fd, STDERR_FILENO);
	caller_restore(caller);
	environ = (char **)environment; /* execvp looks into the PATH of environ */
	r.t = clock_mono_ns();
	write_fully(report, &r.t, sizeof r.t);
	sigprocmask(SIG_SETMASK, &caller->mask, NULL);
	execvp(argv[0], argv);
	r.code = errno;
	write_fully(report, &r.code, sizeof r.code);
	_exit(r.code == ENOENT ? 127 : 126);
}

int spawn_held(char *const *argv, char *const *environment, const struct caller *caller, int out, int err_fd,
	       struct spawn *ret, struct error *err)
{
	CLEANUP(fd_cleanup) int hold_read = -1;
	CLEANUP(fd_cleanup) int report_write = -1;
	int hold[2], report[2];
	pid_t pid;

	if (pipe2(hold, O_CLOEXEC) < 0)
		return error_set(err, "the command's process cannot be made: pipe: %m");
	hold_read = hold[0];
	if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0) {
		close(hold[1]);
		return error_set(err, "the command's process cannot be made: pipe: %m");
	}
	report_write = report[1];
	pid = fork();
	if (pid == 0) {
		close(hold[1]); /* or it would wait for itself */
		close(report[0]);
		become_target(argv, environment, caller, out, err_fd, hold[0], report[1]);
	}
	if (pid < 0) {
		error_set(err, "the command's process cannot be made: fork: %m");
		close(hold[1]);
		close(report[0]);
		return -1;
	}
	*ret = (struct spawn){.pid = pid, .hold = hold[1], .report = report[0]};
	return 0;
}

void spawn_go(struct spawn *s)
{
	write_fully(s->hold, "", 1);
	close(s->hold);
	s->hold = -1;
}

int spawn_report(struct spawn *s)
{
	struct report r = {.code = 0};
	ssize_t n;

	if (!s->t) {
		n = read_piece(s->report, &r.t, sizeof r.t);
		if (n < 0 && errno == EAGAIN)
			return SPAWN_PENDING;
		s->t = n > 0 ? r.t : clock_mono_ns(); /* killed while it was held */
	}
	n = read_piece(s->report, &r.code, sizeof r.code);
	if (n < 0 && errno == EAGAIN)
		return SPAWN_PENDING;
	close(s->report);
	s->report = -1;
	return n > 0 ? r.code : 0;
}

const char *spawn_path(char *const *environment)
{
	for (char *const *e = environment; *e; e++)
		if (strncmp(*e, "PATH=", 5) == 0)
			return *e + 5;
	return DEFAULT_PATH;
}

/* The file that the name means: itself with a slash in it, else the first of that name along PATH, one that may be
 * executed before one that may not. False where there is none. */
static bool find_command(const char *name, const char *path, char *ret, size_t size)
{
	bool found = false;
	struct stat st;

	if (strchr(name, '/')) {
		snprintf(ret, size, "%s", name);
		return stat(name, &st) == 0;
	}
	if (!*name)
		return false;
	for (const char *dir = path;; dir++) {
		size_t length = strcspn(dir, ":");
		char file[PATH_MAX];

		snprintf(file, sizeof file, "%.*s%s%s", (int)length, dir, length ? "/" : "", name);
		if (stat(file, &st) == 0 && !S_ISDIR(st.st_mode)) {
			bool executable = access(file, X_OK) == 0;

			if (executable || !found)
				snprintf(ret, size, "%s", file);
			if (executable)
				return true;
			found = true;
		}
		dir += length;
		if (!*dir)
			return found;
	}
}

/* The interpreter that a script names in its first line; false where the file is no script. */
static bool read_interpreter(const char *path, char *ret, size_t size)
{
	CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char line[256], *word;
	ssize_t n;

	if (fd < 0 || (n = read(fd, line, sizeof line - 1)) < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	word = line + 2 + strspn(line + 2, " \t");
	word[strcspn(word, " \t")] = 0;
	snprintf(ret, size, "%s", word);
	return *word != 0;
}

int spawn_explain(const char *name, const char *path, int code, struct error *err)
{
	char file[PATH_MAX], interpreter[256];
	struct stat st;

	if (!find_command(name, path, file, sizeof file)) {
		if (code == ENOENT || !strchr(name, '/')) {
			error_set(err, "%s: command not found", name);
			return 127;
		}
		error_set(err, "%s: %s", name, strerror(code));
		return 126;
	}
	if (stat(file, &st) == 0 && S_ISDIR(st.st_mode)) {
		error_set(err, "%s: is a directory", file);
	} else if ((code == ENOENT || code == EACCES || code == ENOTDIR || code == ELOOP) && access(file, X_OK) == 0 &&
		   read_interpreter(file, interpreter, sizeof interpreter)) {
		error_set(err, "%s: bad interpreter: %s: %s", file, interpreter, strerror(code));
	} else if (code == ENOENT) {
		error_set(err, "%s: the program loader that it names is not here", file);
	} else if (code == EACCES) {
		error_set(err, "%s: permission denied", file);
	} else {
		error_set(err, "%s: %s", file, strerror(code));
	}
	return 126;
}
