/* Any bytes as a loaded module: its unwind tables, the expressions in them and its code are read, and nothing outside
 * the bytes is. An input starts with the address to look up (8 bytes, from the module's start) and the place of
 * .eh_frame_hdr in the module (4 bytes). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "preload/unwind_cache.h"
#include "preload/unwind_code.h"
#include "preload/unwind_expression.h"
#include "preload/unwind_tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

/* Evaluates whatever a row says by expressions. */
static void evaluate(const struct unwind_image *image, const struct unwind_entry *entry, const struct unwind_row *row)
{
	static const uint64_t stack[8] = {1, 2, 3};
	struct unwind_options options = {.known = {(uintptr_t)stack, (uintptr_t)(stack + 8)}};
	struct unwind_registers registers = {.valid = (1u << UNWIND_REGISTERS) - 1};
	struct unwind_memory memory;
	uint64_t value;

	unwind_memory_init(&memory, &options);
	for (unsigned i = 0; i < UNWIND_REGISTERS; i++)
		registers.value[i] = (uintptr_t)(stack + i % 8);
	for (unsigned i = 0; i < UNWIND_KEPT; i++)
		if (unwind_rule_kind(row->rules[i]) == RULE_AT || unwind_rule_kind(row->rules[i]) == RULE_EXPRESSION)
			unwind_expression(image, entry->base + (uintptr_t)(intptr_t)unwind_rule_value(row->rules[i]),
					  &registers, &memory, true, registers.value[UNWIND_RSP], &value);
	if (row->cfa_expression)
		unwind_expression(image, entry->base + (uintptr_t)(intptr_t)row->cfa_value, &registers, &memory, false,
				  0, &value);
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
	struct unwind_row row;
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
		require(pc >= entry.start && pc < entry.end);
		evaluate(&image, &entry, &row);
	}
	read_code(&image, module, size);
	free(module);
	return 0;
}
