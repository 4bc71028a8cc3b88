/* sampled_process HOW MS: work in other processes, each of which uses MS milliseconds of CPU time. HOW is fork, _fork,
 * raw (the system call; a thread of the child works), clone, thread (a fork by a thread), vfork, spawn, exec, daemon
 * (closes all descriptors, and the work is done after the program itself has ended), or limit (a file-size limit). */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampled.h"

extern char **environ;

static long ms;
static char *program;
static char stack[256 << 10];

static int wait_for(pid_t pid)
{
	int status = -1;

	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : sampled_fail("a child");
}

static int work(void *unused)
{
	(void)unused;
	sampled_burn(ms);
	return 0;
}

static void *work_thread(void *unused)
{
	sampled_burn(ms);
	return unused;
}

static int work_in_thread(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, work_thread, NULL) != 0 || pthread_join(thread, NULL) != 0;
}

static void *fork_in_thread(void *unused)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(work(NULL));
	return wait_for(pid) == 0 ? unused : NULL;
}

static int forked(const char *how)
{
	pid_t pid = strcmp(how, "fork") == 0 ? fork() : strcmp(how, "_fork") == 0 ? _Fork() : (pid_t)syscall(SYS_fork);

	if (pid == 0)
		_exit(strcmp(how, "raw") == 0 ? work_in_thread() : work(NULL));
	return wait_for(pid);
}

static int executed(const char *how, char *const *argv)
{
	pid_t pid;

	if (strcmp(how, "exec") == 0)
		return execv(program, argv);
	if (strcmp(how, "spawn") == 0)
		return posix_spawn(&pid, program, NULL, NULL, argv, environ) == 0 ? wait_for(pid) : 1;
	pid = vfork();
	if (pid == 0) {
		execv(program, argv);
		_exit(1);
	}
	return wait_for(pid);
}

static int daemonised(void)
{
	if (daemon(0, 0) < 0)
		return sampled_fail("daemon");
	for (int fd = 0; fd < 256; fd++)
		close(fd);
	sampled_burn(ms);
	return work_in_thread();
}

static int limited(void)
{
	struct rlimit limit = {100000, 100000};

	return setrlimit(RLIMIT_FSIZE, &limit) < 0 ? sampled_fail("setrlimit") : forked("fork");
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "fork";
	char *const again[] = {argv[0], (char[]){"work"}, argc > 2 ? argv[2] : (char[]){"200"}, NULL};
	pthread_t thread;
	void *result = NULL;

	program = argv[0];
	ms = argc > 2 ? atol(argv[2]) : 200;
	if (strcmp(how, "work") == 0)
		return work(NULL);
	if (strcmp(how, "daemon") == 0)
		return daemonised();
	if (strcmp(how, "limit") == 0)
		return limited();
	if (strcmp(how, "clone") == 0)
		return wait_for(clone(work, stack + sizeof stack, SIGCHLD, NULL));
	if (strcmp(how, "thread") == 0)
		return pthread_create(&thread, NULL, fork_in_thread, &ms) != 0 ||
		       pthread_join(thread, &result) != 0 || !result;
	if (strstr(how, "fork") == how || strcmp(how, "_fork") == 0 || strcmp(how, "raw") == 0)
		return forked(how);
	return executed(how, again);
}
