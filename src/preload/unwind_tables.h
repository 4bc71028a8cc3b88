/* The unwind tables of one loaded module: .eh_frame_hdr, .eh_frame and the programs in them.
 *
 * Everything is read with bounds: a table that is truncated or lies leads to "no answer", never to a fault or to long
 * work. Knows neither threads nor registers' values; runs inside a signal handler. */
#ifndef ASSAY_PRELOAD_UNWIND_TABLES_H
#define ASSAY_PRELOAD_UNWIND_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNWIND_SEGMENTS_MAX 8u

/* Registers by their DWARF numbers. */
enum { UNWIND_RBX = 3, UNWIND_RBP = 6, UNWIND_RSP = 7, UNWIND_R12 = 12, UNWIND_R15 = 15, UNWIND_RIP = 16 };
#define UNWIND_REGISTERS 17u

/* What of a module can be read, and where its tables start. */
struct unwind_image {
	uintptr_t base;
	uint32_t low[UNWIND_SEGMENTS_MAX], high[UNWIND_SEGMENTS_MAX]; /* from base */
	uint16_t segments; /* in use */
	uint16_t code;     /* bit i: segment i can be executed */
	uint16_t headers_count;
	uintptr_t headers; /* the program headers */
	uintptr_t header;  /* of .eh_frame_hdr; 0: there is none */
};

/* The registers whose rules a row keeps, in this order; the others are not preserved by calls. */
enum unwind_kept { KEPT_RBX, KEPT_RBP, KEPT_R12, KEPT_R13, KEPT_R14, KEPT_R15, KEPT_RSP, KEPT_RIP, UNWIND_KEPT };

enum unwind_rule_kind {
	RULE_SAME,       /* still in its register */
	RULE_AT_CFA,     /* at CFA + value */
	RULE_CFA_PLUS,   /* is CFA + value */
	RULE_REGISTER,   /* is in register `value` */
	RULE_AT,         /* where the expression at `value` says */
	RULE_EXPRESSION, /* is what the expression at `value` says */
	RULE_UNDEFINED,  /* cannot be known; for the return address: there is no caller */
};

/* value * 8 + kind; an expression is found by its distance from entry.base. */
typedef int32_t unwind_rule;

static inline enum unwind_rule_kind unwind_rule_kind(unwind_rule rule)
{
	return (enum unwind_rule_kind)(rule & 7);
}

static inline int32_t unwind_rule_value(unwind_rule rule)
{
	return (rule - (rule & 7)) / 8;
}

/* How to get from a frame to its caller's: the CFA (the stack pointer before the call) and the registers. */
struct unwind_row {
	unwind_rule rules[UNWIND_KEPT];
	int32_t cfa_value;    /* offset from the register, or the expression's place */
	uint8_t cfa_register; /* a DWARF number */
	bool cfa_expression;
	bool signal_frame;    /* the caller was interrupted, it did not call */
	bool bare;            /* the function's entry says nothing but that it starts and ends */
};

/* What encloses a row. */
struct unwind_entry {
	uintptr_t start, end; /* of the code */
	uintptr_t base;       /* a rule's expressions are found by their distance from here */
};

/* The row for `pc`. Returns false where the tables have none or cannot be read. */
bool unwind_tables_find(const struct unwind_image *image, uintptr_t pc, struct unwind_entry *ret_entry,
			struct unwind_row *ret_row);

/* The end of the readable segment that holds `at`, or 0; *ret_low: its start. */
uintptr_t unwind_image_limit(const struct unwind_image *image, uintptr_t at, uintptr_t *ret_low);
bool unwind_image_is_code(const struct unwind_image *image, uintptr_t at);

#endif
