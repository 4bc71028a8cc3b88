/* The unwind tables (.eh_frame) of an x86-64 ELF file: for an address in its code, where the caller's registers are.
 *
 * Read from outside the process, into memory of ours, from files that nobody vouches for: every offset is checked and
 * every loop bounded. Knows neither processes nor stacks. */
#ifndef ASSAY_RECORD_CFI_H
#define ASSAY_RECORD_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/perf_registers.h"

struct cfi;

/* NULL where the file has no usable tables, is of another machine, or memory is short. */
struct cfi *cfi_read(int fd);
struct cfi *cfi_of_image(const void *image, size_t size); /* a file's bytes in memory: the vdso */
/* The bytes of .eh_frame themselves, loaded at p_vaddr `address`. */
struct cfi *cfi_of_tables(const void *bytes, size_t size, uint64_t address);
void cfi_free(struct cfi *c); /* NULL accepted */

size_t cfi_size(const struct cfi *c); /* bytes of memory that it takes */

enum cfi_kind {
	CFI_SAME = 0,         /* the register is what it was */
	CFI_UNDEFINED,        /* cannot be had; of the return address: there is no caller */
	CFI_OFFSET,           /* saved at CFA + offset */
	CFI_VALUE_OFFSET,     /* is CFA + offset */
	CFI_REGISTER,         /* is what `other` was */
	CFI_EXPRESSION,       /* saved at what the expression gives */
	CFI_VALUE_EXPRESSION, /* is what the expression gives */
};

struct cfi_rule {
	uint8_t kind;  /* enum cfi_kind */
	uint8_t other; /* a register */
	uint16_t length;
	int64_t offset;
	const uint8_t *expression; /* in the tables */
};

/* The canonical frame address (CFA), the stack pointer before the call, is `cfa.other` + offset, or an expression. */
struct cfi_row {
	struct cfi_rule cfa; /* CFI_VALUE_OFFSET of register `other`, or CFI_VALUE_EXPRESSION */
	struct cfi_rule rules[CFI_REGISTERS];
	bool signal; /* the caller was interrupted at its address, and made no call */
};

/* The row for an address (p_vaddr); false: the tables do not tell. */
bool cfi_find(const struct cfi *c, uint64_t address, struct cfi_row *ret);

/* Memory that an expression may read; false: not to be had. */
typedef bool (*cfi_memory)(void *context, uint64_t address, uint64_t *ret);

/* `first`: the CFA where the rule is a register's, else nothing is on the stack at the beginning. */
bool cfi_evaluate(const struct cfi_rule *rule, const uint64_t registers[CFI_REGISTERS], const uint64_t *first,
		  cfi_memory memory, void *context, uint64_t *ret);

#endif
