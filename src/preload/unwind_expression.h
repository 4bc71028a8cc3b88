/* DWARF expressions in unwind tables: the few of stubs, of realigned frames and of signal frames. Bounded in steps and
 * in memory; reads the stack only through unwind_memory. */
#ifndef ASSAY_PRELOAD_UNWIND_EXPRESSION_H
#define ASSAY_PRELOAD_UNWIND_EXPRESSION_H

#include "preload/unwind_memory.h"
#include "preload/unwind_tables.h"

/* Registers by DWARF number; those without a bit in `valid` are not known. */
struct unwind_registers {
	uint64_t value[UNWIND_REGISTERS];
	uint32_t valid;
};

/* Evaluates the expression whose length stands at `at`; `cfa`, where `with_cfa`, is on the stack at its start. */
bool unwind_expression(const struct unwind_image *image, uintptr_t at, const struct unwind_registers *registers,
		       struct unwind_memory *memory, bool with_cfa, uint64_t cfa, uint64_t *ret_value);

#endif
