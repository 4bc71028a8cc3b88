/* truth_two SECONDS THREADS [kill]: two functions that burn 70% and 30% of the CPU time, in each of the threads, for so
 * many CPU seconds in all. With `kill` it ends by SIGKILL. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "truth.h"

static int64_t hot_ns, cool_ns, each_ns;

static APART void burn_seventy(int64_t ns)
{
	BURN(ns, &hot_ns);
}

static APART void burn_thirty(int64_t ns)
{
	BURN(ns, &cool_ns);
}

static APART void *work(void *seed_of)
{
	uint64_t seed = (uint64_t)(uintptr_t)seed_of;
	int64_t end = cpu_ns() + each_ns;

	while (cpu_ns() < end) {
		int64_t ns = piece_ns(&seed);

		burn_seventy(ns * 7 / 5);
		burn_thirty(ns * 3 / 5);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[2]) : 0;
	pthread_t threads[64];

	if (count < 1 || count > 64)
		return 2;
	each_ns = (int64_t)(atof(argv[1]) * 1e9 / (double)count);
	for (long i = 1; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i) != 0)
			return 3;
	work(NULL);
	for (long i = 1; i < count; i++)
		pthread_join(threads[i], NULL);
	tell("burn_seventy", hot_ns);
	tell("burn_thirty", cool_ns);
	if (argc > 3 && strcmp(argv[3], "kill") == 0)
		raise(SIGKILL);
	return 0;
}
