/* Linked without any shared library, so that none can be preloaded: burns one second of CPU time in sorting, which
 * calls back from libc's code. */
#include <stdint.h>
#include <stdlib.h>

#include "truth.h"

#define COUNT 20000

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(void)
{
	static uint32_t values[COUNT];
	uint64_t seed = 1;

	while (cpu_ns() < 1000000000) {
		for (size_t i = 0; i < COUNT; i++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			values[i] = (uint32_t)(seed >> 33);
		}
		qsort(values, COUNT, sizeof *values, by_value);
	}
	return values[0] > values[COUNT - 1];
}
