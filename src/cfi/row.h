/* What unwind tables say about one address: how to get from a frame to its caller's. Plain data, small enough for a
 * signal handler's stack; x86-64 only. */
#ifndef ASSAY_CFI_ROW_H
#define ASSAY_CFI_ROW_H

#include <stdbool.h>
#include <stdint.h>

/* Registers by their DWARF numbers; the last is the return address, in a frame itself the place in the code. */
enum { CFI_RBX = 3, CFI_RBP = 6, CFI_RSP = 7, CFI_RIP = 16 };
#define CFI_REGISTERS 17u

enum cfi_rule_kind {
	CFI_SAME,       /* still in its register */
	CFI_AT_CFA,     /* saved at CFA + value */
	CFI_CFA_PLUS,   /* is CFA + value */
	CFI_REGISTER,   /* is in register `value` */
	CFI_AT,         /* saved where the expression at `value` says */
	CFI_EXPRESSION, /* is what the expression at `value` says */
	CFI_UNDEFINED,  /* cannot be known; for the return address: there is no caller */
};

/* value * 8 + kind; an expression is found by its distance from the tables' origin. */
typedef int32_t cfi_rule;

static inline enum cfi_rule_kind cfi_rule_kind(cfi_rule rule)
{
	return (enum cfi_rule_kind)(rule & 7);
}

static inline int32_t cfi_rule_value(cfi_rule rule)
{
	return (rule - (rule & 7)) / 8;
}

/* The CFA is the stack pointer before the call. */
struct cfi_row {
	cfi_rule rules[CFI_REGISTERS];
	int32_t cfa_value;    /* offset from the register, or the expression's place */
	uint8_t cfa_register; /* CFI_REGISTERS: not told; only where the return address is undefined */
	bool cfa_expression;
	bool signal_frame;    /* the caller was interrupted, it did not call */
	bool bare;            /* the function's entry says nothing but that it starts and ends */
};

#endif
