/* What sampler-cost watches: a fixed amount of work on some threads, measured by the program itself.
 *
 * sampler_target SLICES THREADS: each thread does SLICES pieces of work, about a millisecond each; then one line of
 * JSON tells CPU time, wall time and, while all threads still exist, the memory that the process has resident, in all
 * and in mappings of files that samplers bring along.
 *
 * Built a second time as C++ (sampler_target_deep.cc): the work is then done at the bottom of 50 frames that vary from
 * call to call. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define THREADS_MAX 256
#define SLICE_STEPS 700000 /* about 1 ms on the machines of today */

#ifdef DEEP
#define DEPTH 50
#define CALLS_PER_SLICE 20

struct level {
	virtual ~level() = default;
	virtual uint64_t descend(level *const *rest, unsigned depth, uint64_t x) const = 0;
};

/* Which of the two a level is depends on the data, so that stacks are as alike as those of a real program. */
template <int N> struct step : level {
	uint64_t descend(level *const *rest, unsigned depth, uint64_t x) const override
	{
		if (depth == 0) {
			for (int i = 0; i < SLICE_STEPS / CALLS_PER_SLICE; i++)
				x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			return x;
		}
		/* Something is left to do, so that this is no jump. */
		return rest[x >> 63]->descend(rest, depth - 1, x * UINT64_C(2862933555777941757) + N) + N;
	}
};

static uint64_t slice(uint64_t x)
{
	static const step<1> one;
	static const step<2> two;
	static level *const both[] = {const_cast<step<1> *>(&one), const_cast<step<2> *>(&two)};

	for (int call = 0; call < CALLS_PER_SLICE; call++)
		x = both[x >> 63]->descend(both, DEPTH, x);
	return x;
}
#else
static uint64_t slice(uint64_t x)
{
	for (int i = 0; i < SLICE_STEPS; i++)
		x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return x;
}
#endif

static long slices;
static pthread_barrier_t done, told;

static void work(void)
{
	volatile uint64_t result;
	uint64_t x = 1;

	for (long i = 0; i < slices; i++)
		x = slice(x);
	result = x;
	(void)result;
}

static void *run(void *unused)
{
	(void)unused;
	work();
	pthread_barrier_wait(&done);
	pthread_barrier_wait(&told);
	return NULL;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Resident KiB of all mappings and of those that observers brought along; -1 where that cannot be read. */
static void resident(long *ret_all, long *ret_brought)
{
	FILE *in = fopen("/proc/self/smaps", "r");
	char line[8192];
	long kib, brought = 0, all = 0;
	int named = 0;

	while (in && fgets(line, sizeof line, in)) {
		unsigned long from, to;

		if (sscanf(line, "Rss: %ld kB", &kib) == 1) {
			all += kib;
			brought += named ? kib : 0;
		} else if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
			const char *path = strchr(line, '/');

			named = path && (strstr(path, "libassay") || strstr(path, ".ring") || strstr(path, "profiler"));
		}
	}
	*ret_all = in ? all : -1;
	*ret_brought = in ? brought : -1;
	if (in)
		fclose(in);
}

int main(int argc, char **argv)
{
	long threads = argc > 2 ? atol(argv[2]) : 0, all, brought;
	double began = now();
	pthread_t ids[THREADS_MAX];
	struct rusage r;

	slices = argc > 1 ? atol(argv[1]) : 0;
	if (slices < 1 || threads < 1 || threads > THREADS_MAX) {
		fprintf(stderr, "usage: sampler_target SLICES THREADS\n");
		return 2;
	}
	pthread_barrier_init(&done, NULL, (unsigned)threads);
	pthread_barrier_init(&told, NULL, (unsigned)threads);
	for (long i = 1; i < threads; i++)
		if (pthread_create(&ids[i], NULL, run, NULL) != 0) {
			fprintf(stderr, "sampler_target: a thread could not be made\n");
			return 3;
		}
	work();
	pthread_barrier_wait(&done);
	getrusage(RUSAGE_SELF, &r);
	began = now() - began;
	resident(&all, &brought);
	pthread_barrier_wait(&told);
	for (long i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("{\"cpu_s\": %.6f, \"wall_s\": %.6f, \"rss_kib\": %ld, \"brought_kib\": %ld}\n",
	       (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
		       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6,
	       began, all, brought);
	return 0;
}
