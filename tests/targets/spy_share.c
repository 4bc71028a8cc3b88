/* spy_share MIB CHILDREN MS: writes to every page of MIB of memory, forks CHILDREN processes that share it and read all
 * of it, prints "ready", holds it for MS milliseconds, and ends when all of them have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

static unsigned char read_all(const unsigned char *memory, size_t size)
{
	unsigned char sum = 0;

	for (size_t i = 0; i < size; i += PAGE)
		sum = (unsigned char)(sum + memory[i]);
	return sum;
}

int main(int argc, char **argv)
{
	size_t size = (argc > 1 ? (size_t)atol(argv[1]) : 100) << 20;
	long children = argc > 2 ? atol(argv[2]) : 10, ms = argc > 3 ? atol(argv[3]) : 1000;
	unsigned char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ready[2], status, failed = 0;
	char byte;

	if (memory == MAP_FAILED || pipe(ready) < 0) {
		perror("spy_share");
		return 1;
	}
	memset(memory, 1, size);
	for (long i = 0; i < children; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (pid == 0) {
			byte = (char)read_all(memory, size);
			if (write(ready[1], &byte, 1) != 1)
				_exit(1);
			usleep((useconds_t)ms * 1000);
			_exit(0);
		}
	}
	for (long i = 0; i < children; i++)
		failed |= read(ready[0], &byte, 1) != 1;
	puts("ready");
	fflush(stdout);
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
