// The peer of `assay timeit`: the same statements under Google Benchmark.
#include <benchmark/benchmark.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "timeit_input.h"

static volatile double half = 0.5;

static void empty(benchmark::State &state)
{
	for (auto _ : state) {
	}
}
BENCHMARK(empty);

static void cosine(benchmark::State &state)
{
	for (auto _ : state)
		benchmark::DoNotOptimize(cos(half));
}
BENCHMARK(cosine);

static void copy(benchmark::State &state)
{
	char from[4096], to[4096];

	memset(from, 1, sizeof from);
	benchmark::DoNotOptimize(&from[0]);
	for (auto _ : state) {
		memcpy(to, from, sizeof to);
		benchmark::DoNotOptimize(&to[0]);
		benchmark::ClobberMemory();
	}
}
BENCHMARK(copy);

static void sort(benchmark::State &state)
{
	int input[TIMEIT_INTS], work[TIMEIT_INTS];

	timeit_fill(input);
	for (auto _ : state) {
		memcpy(work, input, sizeof work);
		qsort(work, TIMEIT_INTS, sizeof *work, timeit_ascending);
	}
}
BENCHMARK(sort);

BENCHMARK_MAIN();
