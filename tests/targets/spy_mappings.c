/* spy_mappings COUNT KIB MS: makes COUNT mappings of KIB each with gaps between them, writes to every page, prints
 * "ready" and holds them for MS milliseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GAP (64UL << 10) /* neighbours with the same rights would become one */

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 2000, ms = argc > 3 ? atol(argv[3]) : 300;
	size_t size = (argc > 2 ? (size_t)atol(argv[2]) : 64) << 10;

	for (long i = 0; i < count; i++) {
		char *memory = mmap(NULL, size + GAP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED || mprotect(memory, size, PROT_READ | PROT_WRITE) < 0) {
			perror("mmap");
			return 1;
		}
		memset(memory, 1, size);
	}
	puts("ready");
	fflush(stdout);
	usleep((useconds_t)ms * 1000);
	return 0;
}
