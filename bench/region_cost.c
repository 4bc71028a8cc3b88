/* What a call of a region costs, beside the floor: two raw reads of the clock and a store of 24 bytes.
 *
 * Arms take turns in blocks of some pairs. Prints one line per round and arm: ROUND ARM NS_PER_PAIR. The arms of the
 * library are those of the mode that it was started in. "pair" is each round's median block, most of which take no new
 * pages into use; "fresh" is the CPU time of all blocks, new pages and the kernel's work for them included. */
#include <assay.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define PAIRS 1000u
#define BLOCKS_MAX 20000u

struct record {
	uint64_t start, end;
	uint32_t region;
	uint16_t depth;
	uint8_t flags, kind;
};

static struct assay_region region = ASSAY_REGION("measured");

static int64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static inline uint64_t raw_clock(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return (uint64_t)now();
#endif
}

static void floor_block(void)
{
	static struct record records[4096];

	for (unsigned i = 0; i < PAIRS; i++) {
		struct record *record = &records[i % 4096];

		record->start = raw_clock();
		__asm__ volatile("" : : : "memory");
		*record = (struct record){.start = record->start, .end = raw_clock(), .region = 1};
		__asm__ volatile("" : : : "memory");
	}
}

static void pair_block(void)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		assay_region_begin(&region);
		assay_region_end(&region);
	}
}

static void token_block(void)
{
	for (unsigned i = 0; i < PAIRS; i++)
		assay_token_end(assay_token_begin(&region));
}

static void empty_block(void)
{
	for (unsigned i = 0; i < PAIRS; i++)
		__asm__ volatile("" : : : "memory");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct arm {
	const char *name, *cpu_name; /* cpu_name: NULL: of no interest */
	void (*block)(void);
	double *times;
	int64_t cpu;
};

static void run_round(unsigned number, struct arm *arms, size_t arm_count, unsigned blocks)
{
	for (size_t i = 0; i < arm_count; i++)
		arms[i].cpu = 0;
	for (unsigned block = 0; block < blocks; block++)
		for (size_t i = 0; i < arm_count; i++) {
			/* A system call, which leaves the branch predictors cold. */
			int64_t cpu = arms[i].cpu_name ? read_clock(CLOCK_THREAD_CPUTIME_ID) : 0, from = now();

			arms[i].block();
			arms[i].times[block] = (double)(now() - from) / PAIRS;
			if (arms[i].cpu_name)
				arms[i].cpu += read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
		}
	for (size_t i = 0; i < arm_count; i++) {
		qsort(arms[i].times, blocks, sizeof *arms[i].times, compare);
		printf("%u %s %.3f\n", number, arms[i].name, arms[i].times[blocks / 2]);
		if (arms[i].cpu_name)
			printf("%u %s %.3f\n", number, arms[i].cpu_name, (double)arms[i].cpu / blocks / PAIRS);
	}
}

int main(int argc, char **argv)
{
	static double times[4][BLOCKS_MAX];
	struct arm arms[] = {
		{"floor", "floor-cpu", floor_block, times[0], 0},
		{"pair", "fresh", pair_block, times[1], 0},
		{"token", NULL, token_block, times[2], 0},
		{"empty", NULL, empty_block, times[3], 0},
	};
	unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	unsigned blocks = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;

	if (rounds == 0 || blocks == 0 || blocks > BLOCKS_MAX) {
		fprintf(stderr, "usage: bench_region_cost ROUNDS BLOCKS (at most %u)\n", BLOCKS_MAX);
		return 2;
	}
	pair_block();
	for (size_t i = 0; assay_get_mode() != ASSAY_TRACE && i < sizeof arms / sizeof *arms; i++)
		arms[i].cpu_name = NULL;
	for (unsigned i = 0; i < rounds; i++)
		run_round(i, arms, sizeof arms / sizeof *arms, blocks);
	return 0;
}
