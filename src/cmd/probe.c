#include "cmd/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/parse.h"

#define PROC_FILE_MAX ((size_t)4 << 20)
#define VERSION_WAIT_MS 5000
#define PERF_PARANOID_MAX 2 /* from 3 on, which some distributions have, a user gets no events at all */

int probe_perf(char *about, size_t size, struct error *why_not)
{
	CLEANUP(buf_release) struct buf text;
	int64_t level;

	buf_init(&text);
	if (fs_read_file("/proc/sys/kernel/perf_event_paranoid", PROC_FILE_MAX, &text, why_not) < 0)
		return error_prefix(why_not, "this kernel has no perf events (CONFIG_PERF_EVENTS)");
	text.text[strcspn(text.text, "\n")] = '\0';
	if (!parse_i64(text.text, &level))
		return error_set(why_not, "perf_event_paranoid holds '%.20s', which is no number", text.text);
	if (level > PERF_PARANOID_MAX && geteuid() != 0)
		return error_set(why_not, "perf_event_paranoid is %" PRId64 "; sysctl kernel.perf_event_paranoid=%d",
				 level, PERF_PARANOID_MAX);
	snprintf(about, size, "perf events of one's own processes (perf_event_paranoid is %" PRId64 ")", level);
	return 0;
}

int probe_pty(struct error *why_not)
{
	CLEANUP(fd_cleanup) int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	char name[64];

	if (fd < 0)
		return error_set(why_not, "no pseudo-terminal can be opened (%s); mount devpts at /dev/pts",
				 strerror(errno));
	if (unlockpt(fd) < 0 || ptsname_r(fd, name, sizeof name) != 0 || access(name, R_OK | W_OK) < 0)
		return error_set(why_not,
				 "the other side of a pseudo-terminal is not usable (%s); mount devpts at /dev/pts",
				 strerror(errno));
	return 0;
}

/* Field `number` (from 0) of a line of blank-separated fields; *length 0 where there is none. */
static const char *field(const char *line, int number, size_t *length)
{
	for (; number > 0; number--) {
		line += strcspn(line, " \n");
		line += *line == ' ';
	}
	*length = strcspn(line, " \n");
	return line;
}

/* Where a cgroup hierarchy is mounted: of version 2 (controller ""), else that of version 1 with this controller. The
 * part of it that is mounted (in a container: not all) is *ret_root. */
static bool find_mount(const char *mountinfo, const char *controller, char *point, char *root, size_t size)
{
	for (const char *line = mountinfo; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t line_length = strcspn(line, "\n"), root_length, point_length, options_length;
		const char *dash = memmem(line, line_length, " - cgroup", 9), *root_text, *point_text, *options;

		if (!dash || (dash[9] == '2') != (*controller == '\0'))
			continue;
		options = field(dash + 1, 3, &options_length);
		if (*controller && !memmem(options, options_length, controller, strlen(controller)))
			continue;
		root_text = field(line, 3, &root_length);
		point_text = field(line, 4, &point_length);
		if (root_length >= size || point_length >= size)
			continue;
		snprintf(root, size, "%.*s", (int)root_length, root_text);
		snprintf(point, size, "%.*s", (int)point_length, point_text);
		return true;
	}
	return false;
}

/* This process's path in that hierarchy, from /proc/self/cgroup: "0::/path" or "4:memory:/path". */
static bool find_membership(const char *cgroups, const char *controller, char *path, size_t size)
{
	for (const char *line = cgroups; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t length = strcspn(line, "\n");
		const char *names = memchr(line, ':', length), *colon;

		if (!names)
			continue;
		colon = memchr(names + 1, ':', length - (size_t)(names + 1 - line));
		if (!colon || (size_t)(colon - names - 1) != strlen(controller) ||
		    strncmp(names + 1, controller, strlen(controller)) != 0)
			continue;
		snprintf(path, size, "%.*s", (int)(length - (size_t)(colon + 1 - line)), colon + 1);
		return true;
	}
	return false;
}

/* 1: found and writable; 0: not found; -1 with *why_not. */
static int look_at_cgroup(const char *mountinfo, const char *cgroups, const char *controller, char *path, size_t size,
			  struct error *why_not)
{
	char point[PATH_MAX], root[PATH_MAX], member[PATH_MAX];
	const char *below = member;

	if (!find_mount(mountinfo, controller, point, root, sizeof point) ||
	    !find_membership(cgroups, controller, member, sizeof member))
		return 0;
	if (strcmp(root, "/") != 0 && strncmp(member, root, strlen(root)) == 0)
		below += strlen(root);
	snprintf(path, size, "%s%s", point, strcmp(below, "/") == 0 ? "" : below);
	if (access(path, W_OK) == 0)
		return 1;
	return error_set(why_not, "%s is not writable (%s); as root, or 'systemd-run --user --scope -p Delegate=yes'",
			 path, strerror(errno));
}

int probe_cgroup(char *path, size_t size, struct error *why_not)
{
	CLEANUP(buf_release) struct buf mountinfo;
	CLEANUP(buf_release) struct buf cgroups;
	static const char *const controllers[] = {"memory", ""};

	buf_init(&mountinfo);
	buf_init(&cgroups);
	if (fs_read_file("/proc/self/mountinfo", PROC_FILE_MAX, &mountinfo, why_not) < 0 ||
	    fs_read_file("/proc/self/cgroup", PROC_FILE_MAX, &cgroups, why_not) < 0)
		return -1;
	for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++) {
		int got = look_at_cgroup(mountinfo.text, cgroups.text, controllers[i], path, size, why_not);

		if (got != 0)
			return got < 0 ? -1 : 0;
	}
	return error_set(why_not, "no cgroup file system is mounted here; mount cgroup2 at /sys/fs/cgroup");
}

int probe_program(const char *name, char *path, size_t size, struct error *why_not)
{
	const char *folders = getenv("PATH");

	for (const char *folder = folders ? folders : ""; *folder;) {
		size_t length = strcspn(folder, ":");
		struct stat st;

		snprintf(path, size, "%.*s/%s", (int)length, length ? folder : ".", name);
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
			return 0;
		folder += length;
		folder += *folder == ':';
	}
	return error_set(why_not, "%s is not in $PATH", name);
}

/* Reads the first line that arrives in time; the rest is of no interest. */
static size_t read_line(int fd, char *text, size_t size)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t used = 0;

	while (used + 1 < size && poll(&p, 1, VERSION_WAIT_MS) > 0) {
		ssize_t got = read(fd, text + used, size - 1 - used);

		if (got <= 0)
			break;
		used += (size_t)got;
		if (memchr(text, '\n', used))
			break;
	}
	text[used] = '\0';
	used = strcspn(text, "\r\n");
	text[used] = '\0';
	return used;
}

int probe_version(const char *name, char *version, size_t size, struct error *why_not)
{
	posix_spawn_file_actions_t actions;
	char path[PATH_MAX];
	char *argv[] = {path, (char[]){"--version"}, NULL};
	int ends[2], failed;
	pid_t pid;

	if (probe_program(name, path, sizeof path, why_not) < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(why_not, "%s cannot be asked for its version: %s", path, strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	failed = posix_spawn(&pid, path, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (failed) {
		close(ends[0]);
		return error_set(why_not, "%s cannot be executed: %s", path, strerror(failed));
	}
	failed = read_line(ends[0], version, size) == 0;
	close(ends[0]);
	kill(pid, SIGKILL); /* it has said what was asked, or it hangs */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return failed ? error_set(why_not, "%s does not say its version", path) : 0;
}
