/* orphans N: makes N children that live until this process has ended, and ends. All are re-parented at once, and then
 * end at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int count = argc == 2 ? atoi(argv[1]) : 0, ends[2];
	char c;

	if (count <= 0 || pipe(ends) < 0)
		return 2;
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			fprintf(stderr, "orphans: %s\n", strerror(errno));
			return 1;
		}
		if (pid == 0) {
			close(ends[1]);
			_exit(read(ends[0], &c, 1) == 0 ? 0 : 1);
		}
	}
	return 0;
}
