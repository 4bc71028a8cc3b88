/* Many cheap calls: two functions that are called in turn below one that is called often, as programs are. Compiled
 * once plain and once with -finstrument-functions. Prints the calls and the seconds that they took. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef WITH_ASSAY
#include <assay.h>
#endif

#define BARE __attribute__((no_instrument_function))
#define KEPT __attribute__((noinline, noclone))

static volatile uint64_t sink;
static uint64_t rounds;

KEPT static void left(void)
{
	sink++;
}

KEPT static void right(void)
{
	sink++;
}

KEPT static void both(void)
{
	left();
	right();
	left();
}

BARE static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

BARE static void work(void *seconds)
{
	double begin = now();

	for (uint64_t i = 0; i < rounds; i++)
		both();
	*(double *)seconds = now() - begin;
}

BARE int main(int argc, char **argv)
{
	double seconds = 0;

	rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
#ifdef WITH_ASSAY
	struct assay_graph *graph = NULL;

	if (assay_profile(work, &seconds, &graph) < 0) {
		fprintf(stderr, "%s\n", assay_last_error());
		return 1;
	}
	assay_graph_free(graph);
#else
	work(&seconds);
#endif
	printf("%" PRIu64 " %.9f\n", 4 * rounds, seconds);
	return 0;
}
