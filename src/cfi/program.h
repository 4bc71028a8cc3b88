/* Running the call frame program of an entry up to one address. No memory but the tables is read; runs inside a signal
 * handler, too. */
#ifndef ASSAY_CFI_PROGRAM_H
#define ASSAY_CFI_PROGRAM_H

#include "cfi/row.h"
#include "cfi/tables.h"

/* Room for the rows that a program has remembered at once; compilers need one. */
struct cfi_states {
	struct cfi_row *rows;
	unsigned room;
};

/* The row for `address`, which the entry holds. Returns false, with *row spoilt, for a program that is broken, needs
 * more states, or uses what x86-64 code does not. */
bool cfi_run(const struct cfi_section *section, const struct cfi_common *common, const struct cfi_entry *entry,
	     uint64_t address, const struct cfi_states *states, struct cfi_row *row);

#endif
