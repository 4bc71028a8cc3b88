/* Running the call frame program of an unwind table's entry up to one address. No memory but the table is read. */
#ifndef ASSAY_PRELOAD_UNWIND_PROGRAM_H
#define ASSAY_PRELOAD_UNWIND_PROGRAM_H

#include "preload/unwind_reader.h"
#include "preload/unwind_tables.h"

/* What entries have in common. */
struct unwind_cie {
	const uint8_t *program, *end;
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t pointer_encoding;
	bool signal_frame, has_augmentation;
};

/* Returns false for a program that is broken or uses what x86-64 code does not. */
bool unwind_program_run(const struct unwind_cie *cie, const struct unwind_reader *program, uintptr_t pc,
			const struct unwind_entry *entry, struct unwind_row *ret_row);

#endif
