/* What programs under the sampler share: work by CPU time, and a report of the CPU time that they used. */
#ifndef ASSAY_TESTS_SAMPLED_H
#define ASSAY_TESTS_SAMPLED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static volatile uint64_t sampled_sink;

static inline int64_t sampled_cpu(clockid_t clock)
{
	struct timespec used;

	clock_gettime(clock, &used);
	return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

/* Keeps a CPU busy for so many milliseconds of this thread's CPU time. */
static inline void sampled_burn(long ms)
{
	int64_t until = sampled_cpu(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000;

	do
		for (int i = 0; i < 20000; i++)
			sampled_sink = sampled_sink * 6364136223846793005u + 1442695040888963407u;
	while (sampled_cpu(CLOCK_THREAD_CPUTIME_ID) < until);
}

static inline int sampled_fail(const char *what)
{
	perror(what);
	return 1;
}

#endif
