/* Many calls of a small function. Built plainly, and for uftrace with -finstrument-functions: the difference is what
 * tracing a call costs. Prints ns per call. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t __attribute__((no_instrument_function)) now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void __attribute__((noinline)) called(void)
{
	__asm__ volatile("" : : : "memory");
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
	int64_t from = now();

	for (long i = 0; i < calls; i++)
		called();
	printf("%.3f\n", (double)(now() - from) / (double)calls);
	return 0;
}
