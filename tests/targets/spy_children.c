/* spy_children COUNT MIB MS: COUNT children, each with MIB of memory of its own that it writes to and holds
 * for MS milliseconds after all have theirs. Prints "ready" when all have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void child(size_t size, long ms, int ready, int go)
{
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char byte = 0;

	if (memory == MAP_FAILED)
		_exit(1);
	memset(memory, 1, size);
	/* The parent closes its end of `go` when all are ready. */
	if (write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 0)
		_exit(1);
	usleep((useconds_t)ms * 1000);
	_exit(0);
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 300, ms = argc > 3 ? atol(argv[3]) : 500;
	size_t size = (argc > 2 ? (size_t)atol(argv[2]) : 1) << 20;
	int ready[2], go[2], status, failed = 0;
	char byte;

	if (pipe(ready) < 0 || pipe(go) < 0) {
		perror("pipe");
		return 1;
	}
	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (pid == 0) {
			close(go[1]);
			child(size, ms, ready[1], go[0]);
		}
	}
	for (long i = 0; i < count; i++)
		failed |= read(ready[0], &byte, 1) != 1;
	puts("ready");
	fflush(stdout);
	close(go[1]);
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
