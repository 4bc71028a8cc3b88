/* daemonise MS: a daemon in the classical way (fork, setsid, fork), which lives for MS milliseconds. The program itself
 * prints the daemon's pid and ends at once. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int become_daemon(long ms, int report)
{
	pid_t pid;

	setsid();
	pid = fork();
	if (pid != 0)
		_exit(pid < 0 ? 1 : 0);
	pid = getpid();
	if (write(report, &pid, sizeof pid) != sizeof pid)
		_exit(1);
	for (int fd = 0; fd < 64; fd++)
		close(fd);
	usleep((useconds_t)ms * 1000);
	_exit(0);
}

int main(int argc, char **argv)
{
	long ms = argc > 1 ? atol(argv[1]) : 500;
	int report[2];
	pid_t middle, daemon;

	if (pipe2(report, O_CLOEXEC) < 0 || (middle = fork()) < 0) {
		perror("daemonise");
		return 1;
	}
	if (middle == 0)
		return become_daemon(ms, report[1]);
	if (waitpid(middle, NULL, 0) != middle || read(report[0], &daemon, sizeof daemon) != sizeof daemon)
		return 1;
	printf("%d\n", (int)daemon);
	return 0;
}
