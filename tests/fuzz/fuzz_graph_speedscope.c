/* Any bytes as a profile for speedscope: refused with a sentence that names it, or a graph that fits together. */
#include <stdint.h>

#include "graph_fits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	require_fitting(&graph_reader_speedscope, data, size);
	return 0;
}
