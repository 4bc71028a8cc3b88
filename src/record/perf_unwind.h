/* From the registers and the copied piece of stack of a perf sample to the addresses of its callers.
 *
 * Goes by the unwind tables of the code's file, and by frame pointers where it has none (code made at run time, Go).
 * Knows neither rings nor processes: who calls tells what lies at an address. */
#ifndef ASSAY_RECORD_PERF_UNWIND_H
#define ASSAY_RECORD_PERF_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/perf_tables.h"

struct perf_stack {
	uint64_t registers[CFI_REGISTERS];
	const uint8_t *bytes; /* what lies at the stack pointer and above */
	size_t size;
};

/* What lies at an address: false where nothing is known to be mapped there as code. *ret_tables: its tables, NULL for
 * none; *ret_bias: an address less this is the tables'. */
typedef bool (*perf_unwind_code)(void *context, uint64_t address, const struct perf_tables **ret_tables,
				 uint64_t *ret_bias);

enum perf_unwind_end {
	PERF_UNWIND_COMPLETE, /* reached code that says it has no caller */
	PERF_UNWIND_CUT,      /* more frames than there is room for, or than the copied stack holds */
	PERF_UNWIND_STUCK,
};

struct perf_unwinder;

/* NULL when out of memory. It remembers rows of tables between walks (below 1 MiB). */
struct perf_unwinder *perf_unwinder_new(void);
void perf_unwinder_free(struct perf_unwinder *u); /* NULL accepted */

/* Tables that it may remember are about to be freed. */
void perf_unwinder_forget(struct perf_unwinder *u);

/* Fills `frames`, innermost first: the first as it is, a caller's less 1, one that a signal interrupted as it was.
 * Returns their number, at least 1 (room >= 1). */
size_t perf_unwind(struct perf_unwinder *u, const struct perf_stack *stack, perf_unwind_code code, void *context,
		   uint64_t *frames, size_t room, enum perf_unwind_end *ret_end);

#endif
