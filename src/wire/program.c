#include "wire/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/graph.h"

/* The environment without what would have the program recorded, or would load this library into it. Owned, as an
 * array; NULL without memory. */
static char **plain_environment(void)
{
	static const char *const without[] = {"ASSAY_DIR=", CALLS_FOLDER_VARIABLE "=", "LD_PRELOAD="};
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

/* This program may have blocked or ignored signals: the other one begins without that. */
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

int program_run(char *const *argv)
{
	const char *named = secure_getenv("ASSAY_PROGRAM");
	char **environment = plain_environment();
	int status = -1;
	pid_t pid = -1, got;

	if (!environment)
		return -1;
	if (named && *named) {
		pid = start(named, argv, environment);
	} else {
		pid = start(ASSAY_INSTALLED_PROGRAM, argv, environment);
		if (pid < 0)
			pid = start("assay", argv, environment);
	}
	free(environment);
	if (pid < 0)
		return -1;
	while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		;
	/* A program that collects all its children may have taken this one: what it left tells. */
	if (got < 0)
		return 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
