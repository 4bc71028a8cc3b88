/* Which registers perf copies with a sample, and in what order they come: as DWARF numbers them where there is an
 * unwinder for the machine. */
#ifndef ASSAY_RECORD_PERF_REGISTERS_H
#define ASSAY_RECORD_PERF_REGISTERS_H

#include <stdint.h>

#include "cfi/row.h"

/* Bytes of the stack that a sample copies, what lies at the stack pointer first. */
#define PERF_STACK_BYTES 16384u

#ifdef __x86_64__
#include <asm/perf_regs.h>

#define PERF_CAN_UNWIND 1
#define PERF_BIT(name) (UINT64_C(1) << PERF_REG_X86_##name)
#define PERF_REGISTER_MASK                                                                                            \
	(PERF_BIT(AX) | PERF_BIT(BX) | PERF_BIT(CX) | PERF_BIT(DX) | PERF_BIT(SI) | PERF_BIT(DI) | PERF_BIT(BP) |     \
	 PERF_BIT(SP) | PERF_BIT(IP) | PERF_BIT(R8) | PERF_BIT(R9) | PERF_BIT(R10) | PERF_BIT(R11) | PERF_BIT(R12) |  \
	 PERF_BIT(R13) | PERF_BIT(R14) | PERF_BIT(R15))

/* The DWARF number of each, in the order of their bits: ax bx cx dx si di bp sp ip r8 ... r15. */
static const uint8_t perf_register_order[CFI_REGISTERS] = {0, 3, 2, 1, 4, 5, CFI_RBP, CFI_RSP, CFI_RIP,
							   8, 9, 10, 11, 12, 13, 14, 15};
#else
#define PERF_CAN_UNWIND 0
#define PERF_REGISTER_MASK UINT64_C(0)
static const uint8_t perf_register_order[CFI_REGISTERS];
#endif

#endif
