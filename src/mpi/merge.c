/* Runs `assay merge` after MPI has ended, as a process of its own: the library links nothing that writes such files.
 * The program that merges says itself what went wrong; where it cannot be started there is no file, and no more. */
#include "mpi/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The environment without what would have the program recorded, or would load this library into it. Owned, as an
 * array; NULL without memory. */
static char **plain_environment(void)
{
	static const char *const without[] = {"ASSAY_DIR=", "LD_PRELOAD="};
	size_t count = 0, used = 0;
	char **plain;

	while (environ && environ[count])
		count++;
	plain = calloc(count + 1, sizeof *plain);
	for (size_t i = 0; plain && i < count; i++) {
		bool keep = true;

		for (size_t j = 0; j < sizeof without / sizeof *without; j++)
			keep = keep && strncmp(environ[i], without[j], strlen(without[j])) != 0;
		if (keep)
			plain[used++] = environ[i];
	}
	return plain;
}

/* What it prints for a person must not be mixed with what this program prints; its errors may. The program may have
 * blocked or ignored signals: the other one begins without that. */
static pid_t start(const char *program, char *const *argv, char *const *environment)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	pid_t pid = -1;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return -1;
	if (posix_spawnattr_init(&attributes) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return -1;
	}
	sigemptyset(&none);
	sigfillset(&all);
	if (posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) != 0 ||
	    posix_spawnattr_setsigmask(&attributes, &none) != 0 ||
	    posix_spawnattr_setsigdefault(&attributes, &all) != 0 ||
	    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) != 0 ||
	    posix_spawnp(&pid, program, &actions, &attributes, argv, environment) != 0)
		pid = -1;
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

void merge_run(const char *folder, const char *out)
{
	/* "--": a folder's name may begin with a dash. */
	char *const argv[] = {(char *)"assay", (char *)"merge", (char *)"-q", (char *)"-o", (char *)out, (char *)"--",
			      (char *)folder, NULL};
	const char *named = secure_getenv("ASSAY_PROGRAM");
	char **environment = plain_environment();
	int saved = errno;
	pid_t pid = -1;

	if (!environment)
		return;
	if (named && *named) {
		pid = start(named, argv, environment);
	} else {
		pid = start(ASSAY_INSTALLED_PROGRAM, argv, environment);
		if (pid < 0)
			pid = start("assay", argv, environment);
	}
	/* A program that collects all its children may take this one, too: that is then no error. */
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(environment);
	errno = saved;
}
