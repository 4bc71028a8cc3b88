/* What both sides of the timeit benchmark sort: the same integers by the same comparison. */
#ifndef ASSAY_BENCH_TIMEIT_INPUT_H
#define ASSAY_BENCH_TIMEIT_INPUT_H

#define TIMEIT_INTS 1000

static inline void timeit_fill(int *values)
{
	unsigned x = 1;

	for (int i = 0; i < TIMEIT_INTS; i++) {
		x = x * 1103515245u + 12345u;
		values[i] = (int)(x >> 8);
	}
}

static inline int timeit_ascending(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

#endif
