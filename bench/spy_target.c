/* What spy-cost watches: maps 1 MiB, writes to each of its pages and unmaps it, ROUNDS times, and prints the CPU and
 * wall seconds of that as JSON. Readers of its memory map have to wait for it, and it for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SIZE (1UL << 20)

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 10000;
	double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);

	for (long i = 0; i < rounds; i++) {
		char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED) {
			perror("mmap");
			return 3;
		}
		for (size_t at = 0; at < SIZE; at += 4096)
			memory[at] = 1;
		munmap(memory, SIZE);
	}
	printf("{\"cpu_s\": %.6f, \"wall_s\": %.6f}\n", seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu,
	       seconds(CLOCK_MONOTONIC) - wall);
	return 0;
}
