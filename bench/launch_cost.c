/* launch_cost MODE RUNS MIB COMMAND [ARG...]: starts the command RUNS times and prints "FIGURE TURN" for each, in ns.
 *
 * MODE bare: posix_spawn and wait4, FIGURE and TURN are the time around both. fork: the same with fork and exec. timed:
 * through assay's starter, FIGURE is the time that it reports, TURN how long a run took in all. MIB of memory are
 * touched before, in timed after the starter is made, as in a program that has grown since. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/timed.h"

extern char **environ;

static int fail(const char *what)
{
	fprintf(stderr, "launch_cost: %s\n", what);
	return 1;
}

static int touch(size_t mib)
{
	char *memory = mmap(NULL, (mib << 20) + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -1;
	madvise(memory, mib << 20, MADV_NOHUGEPAGE);
	memset(memory, 1, mib << 20);
	return 0;
}

static pid_t start(bool by_fork, char **argv, const posix_spawn_file_actions_t *actions, int null)
{
	pid_t pid = -1;

	if (!by_fork)
		return posix_spawnp(&pid, argv[0], actions, NULL, argv, environ) == 0 ? pid : -1;
	pid = fork();
	if (pid == 0) {
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

static int plain_loop(bool by_fork, long runs, char **argv, int null)
{
	posix_spawn_file_actions_t actions;

	posix_spawn_file_actions_init(&actions);
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_adddup2(&actions, null, fd);
	for (long i = 0; i < runs; i++) {
		int64_t from = clock_mono_ns(), took;
		pid_t pid = start(by_fork, argv, &actions, null);
		struct rusage usage;
		int status;

		if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
			return fail("the command cannot be started");
		took = clock_mono_ns() - from;
		printf("%" PRId64 " %" PRId64 "\n", took, took);
	}
	posix_spawn_file_actions_destroy(&actions);
	return 0;
}

static int timed_loop(struct timed *t, long runs, char **argv, int null)
{
	const struct timed_options o = {.argv = argv, .in = null, .out = null, .err = null};

	for (long i = 0; i < runs; i++) {
		int64_t from = clock_mono_ns();
		struct timed_result r;
		struct error err;

		if (timed_run(t, &o, NULL, &r, &err) != 0)
			return fail(err.text);
		printf("%" PRId64 " %" PRId64 "\n", r.wall_ns, clock_mono_ns() - from);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), status;
	struct timed *t = NULL;
	struct error err;

	if (argc < 5 || null < 0)
		return fail("expected MODE RUNS MIB COMMAND");
	if (strcmp(argv[1], "timed") == 0 && !(t = timed_new(&err)))
		return fail(err.text);
	if (touch((size_t)atol(argv[3])) < 0)
		return fail("no memory to touch");
	status = t ? timed_loop(t, atol(argv[2]), argv + 4, null)
		   : plain_loop(strcmp(argv[1], "fork") == 0, atol(argv[2]), argv + 4, null);
	timed_free(t);
	return status;
}
