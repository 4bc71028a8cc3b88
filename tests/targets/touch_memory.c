/* touch_memory MIB MS: writes to every page of MIB of fresh memory, holds it for MS milliseconds, and gives it back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	size_t size = (argc > 1 ? (size_t)atol(argv[1]) : 400) << 20;
	long ms = argc > 2 ? atol(argv[2]) : 30;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	memset(memory, 1, size);
	usleep((useconds_t)ms * 1000);
	munmap(memory, size);
	return 0;
}
