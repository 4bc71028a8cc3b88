/* From the row for a frame's place to what its caller has: the CFA and where each register is. Reads memory only by
 * what it is given; runs inside a signal handler, too. */
#ifndef ASSAY_CFI_FRAME_H
#define ASSAY_CFI_FRAME_H

#include "cfi/row.h"
#include "cfi/tables.h"

#define CFI_ALL_VALID ((1u << CFI_REGISTERS) - 1)

/* Registers by DWARF number; those without a bit in `valid` are not known. */
struct cfi_registers {
	uint64_t value[CFI_REGISTERS];
	uint32_t valid;
};

/* Eight bytes of the thread's memory; false: not to be had. */
typedef bool (*cfi_memory)(void *context, uint64_t address, uint64_t *ret_value);

struct cfi_frame {
	const struct cfi_section *section; /* of the row */
	const struct cfi_row *row;
	const struct cfi_registers *registers;
	cfi_memory memory;
	void *context; /* of memory */
};

bool cfi_frame_cfa(const struct cfi_frame *frame, uint64_t *ret_cfa);

enum cfi_found { CFI_NOT_FOUND, CFI_FOUND_VALUE, CFI_FOUND_SAVED };

/* What the caller's register `number` is, or with CFI_FOUND_SAVED: the address of the memory that it was saved in. */
enum cfi_found cfi_frame_find(const struct cfi_frame *frame, unsigned number, uint64_t cfa, uint64_t *ret);

#endif
