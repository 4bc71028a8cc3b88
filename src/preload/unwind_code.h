/* Reading x86-64 machine code where unwind tables say nothing: the length of instructions, whether an address is where
 * a call returns to, and what the code from an address on will still do to the stack until it returns. */
#ifndef ASSAY_PRELOAD_UNWIND_CODE_H
#define ASSAY_PRELOAD_UNWIND_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/unwind_tables.h"

#define UNWIND_NO_BASE 16u

/* Register numbers here are the processor's: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5, rsi 6, rdi 7, r8 .. r15. */
struct unwind_instruction {
	uint8_t length;
	uint8_t map;       /* 0: one-byte opcodes; 1, 2, 3: behind 0f, 0f 38, 0f 3a; what VEX and EVEX select */
	uint8_t opcode;
	bool wide;         /* REX.W */
	bool extended;     /* REX.B: the register in the opcode is one of r8 .. r15 */
	bool vector;       /* VEX or EVEX */
	bool has_modrm;
	uint8_t mod, reg;  /* of the ModRM byte, reg with its REX bit */
	uint8_t rm;        /* with its REX bit: the register of mod 3 */
	uint8_t base;      /* of a memory operand [base + displacement]; UNWIND_NO_BASE for any other */
	int32_t displacement;
	int32_t immediate; /* sign-extended; of jumps and calls: the distance from the instruction's end */
};

/* Decodes what stands in [at, end). Returns false for what it does not know or where it does not end. */
bool unwind_code_decode(const uint8_t *at, const uint8_t *end, struct unwind_instruction *ret);

enum unwind_call { CALL_NONE, CALL_INDIRECT, CALL_DIRECT };

/* Whether a call ends at `at`; of a direct one, *ret_target. */
enum unwind_call unwind_code_call_before(const struct unwind_image *image, uintptr_t at, uintptr_t *ret_target);

/* Whether `at` is where a signal handler returns to: the call of rt_sigreturn. */
bool unwind_code_is_sigreturn(const struct unwind_image *image, uintptr_t at);

/* The address of the pointer that the stub of a procedure linkage table at `at` jumps through, or 0. */
uintptr_t unwind_code_stub_pointer(const struct unwind_image *image, uintptr_t at);

/* How to step from `pc` to its caller, found by following the code to its return. Returns a step (see unwind_cache.h)
 * or STEP_NOTHING. Assumes what holds for hand-written kernels: one size of frame throughout a function's body. */
uint64_t unwind_code_step(const struct unwind_image *image, uintptr_t pc);

#endif
