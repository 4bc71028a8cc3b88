/* Any bytes as an .eh_frame at a small address: no table makes the walk read what is not there, or go on without end.
 * The same bytes serve as the stack, too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/perf_unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TABLES_AT 0x1000
#define FRAMES_MAX 64

static void require(int condition)
{
	if (!condition)
		abort();
}

static bool code_at(void *context, uint64_t address, const struct perf_tables **ret_tables, uint64_t *ret_bias)
{
	*ret_tables = context;
	*ret_bias = 0;
	return address < 0x1000000;
}

static void walk_from(struct perf_tables *tables, uint64_t address, const uint8_t *data, size_t size)
{
	static struct perf_unwinder *u; /* one for all: it is large */
	struct perf_stack stack = {.bytes = data, .size = size};
	enum perf_unwind_end end;
	uint64_t frames[FRAMES_MAX];
	size_t count;

	u = u ? u : perf_unwinder_new();
	require(u != NULL);
	for (size_t i = 0; i < CFI_REGISTERS; i++)
		stack.registers[i] = 0x10000 + 8 * i;
	stack.registers[CFI_RIP] = address;
	count = perf_unwind(u, &stack, code_at, tables, frames, FRAMES_MAX, &end);
	require(count >= 1 && count <= FRAMES_MAX && frames[0] == address);
	perf_unwinder_forget(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_tables *tables = perf_tables_of_bytes(data, size, TABLES_AT);
	struct perf_tables *image = perf_tables_of_image(data, size);

	for (uint64_t address = 0; tables && address < 0x3000; address += 0x111) {
		struct cfi_row row;

		if (perf_tables_find(tables, address, &row))
			walk_from(tables, address, data, size);
	}
	perf_tables_free(tables);
	perf_tables_free(image);
	return 0;
}
