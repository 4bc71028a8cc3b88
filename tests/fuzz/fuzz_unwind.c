/* Any bytes as a loaded module: its unwind tables, the expressions in them and its code are read, and nothing outside
 * the bytes is. An input starts with the address to look up (8 bytes, from the module's start) and the place of
 * .eh_frame_hdr in the module (4 bytes). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cfi/frame.h"
#include "preload/unwind_cache.h"
#include "preload/unwind_code.h"
#include "preload/unwind_memory.h"
#include "preload/unwind_tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static bool read_memory(void *context, uint64_t at, uint64_t *ret_value)
{
	return unwind_read(context, at, ret_value);
}

/* Looks for whatever a row says, be it by expressions. */
static void find_all(const struct unwind_entry *entry, const struct cfi_row *row)
{
	static const uint64_t stack[8] = {1, 2, 3};
	struct unwind_options options = {.known = {(uintptr_t)stack, (uintptr_t)(stack + 8)}};
	struct cfi_registers registers = {.valid = CFI_ALL_VALID};
	struct unwind_memory memory;
	struct cfi_frame frame = {&entry->section, row, &registers, read_memory, &memory};
	uint64_t cfa, value;

	unwind_memory_init(&memory, &options);
	for (unsigned i = 0; i < CFI_REGISTERS; i++)
		registers.value[i] = (uintptr_t)(stack + i % 8);
	if (!cfi_frame_cfa(&frame, &cfa))
		cfa = registers.value[CFI_RSP];
	for (unsigned i = 0; i < CFI_REGISTERS; i++)
		cfi_frame_find(&frame, i, cfa, &value);
}

static void read_code(const struct unwind_image *image, const uint8_t *module, size_t size)
{
	struct unwind_instruction instruction;
	uintptr_t target;

	for (size_t i = 0; i < size && i < 64; i++) {
		if (unwind_code_decode(module + i, module + size, &instruction))
			require(instruction.length >= 1 && instruction.length <= 15 && instruction.length <= size - i);
		if (unwind_code_call_before(image, (uintptr_t)module + i, &target) == CALL_DIRECT)
			require(unwind_image_is_code(image, target));
		unwind_code_is_sigreturn(image, (uintptr_t)module + i);
		unwind_code_stub_pointer(image, (uintptr_t)module + i);
	}
	unwind_code_step(image, (uintptr_t)module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_image image = {.segments = 1, .code = 1};
	struct unwind_entry entry;
	struct cfi_row row;
	uint64_t pc;
	uint32_t header;
	uint8_t *module;

	if (size < 13 || size > UINT32_MAX)
		return 0;
	memcpy(&pc, data, sizeof pc);
	memcpy(&header, data + 8, sizeof header);
	size -= 12;
	module = malloc(size);
	require(module != NULL);
	memcpy(module, data + 12, size);
	image.base = (uintptr_t)module;
	image.high[0] = (uint32_t)size;
	image.header = image.base + header;
	pc += image.base;
	if (unwind_tables_find(&image, pc, &entry, &row)) {
		require(pc >= entry.code.start && pc - entry.code.start < entry.code.size);
		find_all(&entry, &row);
	}
	read_code(&image, module, size);
	free(module);
	return 0;
}
