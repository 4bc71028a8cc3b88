/* many_children COUNT [MS [AT_ONCE]]: forks COUNT children that each live for MS milliseconds (0: not at all), AT_ONCE
 * of them at the same time (1), and waits for all. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 200, ms = argc > 2 ? atol(argv[2]) : 0,
	     at_once = argc > 3 ? atol(argv[3]) : 1;
	long living = 0;

	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (pid == 0) {
			usleep((useconds_t)ms * 1000);
			_exit(0);
		}
		if (++living == at_once && wait(NULL) > 0)
			living--;
	}
	while (wait(NULL) > 0)
		living--;
	return living == 0 ? 0 : 1;
}
