/* What programs with a known distribution of CPU time share: work that is measured while it is done, and the words in
 * which they tell at their end how much each function burnt. C and C++. It knows nothing of who measures it. */
#ifndef ASSAY_TESTS_TRUTH_H
#define ASSAY_TESTS_TRUTH_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* A function that stays one of its own: neither inlined nor copied. */
#define APART __attribute__((noinline, noclone))

/* CPU time of this thread. */
static inline int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Arithmetic in registers for `ns` of this thread's CPU time, added to *sum (int64_t; may be shared). A macro, so that
 * the samples are of the function that uses it. A round is some 100 us: asking the clock is a small part of it. */
#define BURN(ns, sum)												\
	do {													\
		const int64_t burn_began = cpu_ns(), burn_end = burn_began + (ns);				\
		int64_t burn_now = burn_began;									\
		uint64_t burn_x = (uint64_t)burn_began;								\
														\
		while (burn_now < burn_end) {									\
			for (int burn_i = 0; burn_i < 100000; burn_i++)						\
				burn_x = burn_x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);\
			__asm__ volatile("" : : "r"(burn_x));							\
			burn_now = cpu_ns();									\
		}												\
		__atomic_fetch_add(sum, burn_now - burn_began, __ATOMIC_RELAXED);				\
	} while (0)

/* 10 to 40 ms, another one each time. Work that came in equal pieces could keep step with the ticks of a timer, and its
 * shares would then be wrong in any sampler. */
static inline int64_t piece_ns(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return 10000000 + (int64_t)((*seed >> 33) % 30000000);
}

/* One line on standard output, in one piece also where several processes write. */
static inline void tell(const char *function, int64_t ns)
{
	char line[128];
	int length = snprintf(line, sizeof line, "truth %d %s %.6f\n", (int)getpid(), function, (double)ns / 1e9);

	if (write(STDOUT_FILENO, line, (size_t)length) != length)
		_exit(3);
}

#endif
