/* What cfi.c (which finds an address's entry) and cfi_rows.c (which runs it) share. For these two only. */
#ifndef ASSAY_RECORD_CFI_TABLES_H
#define ASSAY_RECORD_CFI_TABLES_H

#include "record/cfi.h"
#include "record/cfi_bytes.h"

/* What functions have in common. */
struct cfi_common {
	uint64_t code_unit;
	int64_t data_unit;
	uint64_t return_register;
	uint8_t encoding;     /* of addresses in its entries */
	bool augmented;       /* entries have augmentation data of a told length */
	bool signal;
	struct cfi_bytes program; /* the rows' beginning */
};

/* A function's entry. */
struct cfi_entry {
	struct cfi_common common;
	uint64_t start, length;
	struct cfi_bytes program;
};

/* An address as `encoding` says; `at` (p_vaddr) is where it stands in memory. Sets bad for encodings that no linker's
 * .eh_frame has. */
uint64_t cfi_pointer(struct cfi_bytes *b, uint8_t encoding, uint64_t at);

/* Runs the entry up to the address. `base`: p_vaddr of what `origin` points to. */
bool cfi_run(const struct cfi_entry *entry, uint64_t address, const uint8_t *origin, uint64_t base,
	     struct cfi_row *ret);

#endif
